"""The page Federated without a browser: its form, and what it draws of a finished job."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from semsim.errors import SettingsError
from semsim.federated.arms import ARMS, REFERENCE, RESCALED
from semsim.federated.comparison import carry_out
from semsim.federated.comparison_job import out_of, queue_comparison
from semsim.federated.settings import FederatedOrder
from semsim.jobs import folders as jobs
from semsim.ui import federated, federated_view
from semsim.ui.settings_form import Given, settings_of

TINY = FederatedOrder(
    data="symbols:train_per_class=1,test_per_class=1,size=16",
    network="mlp-3",
    clients=2,
    rounds=1,
    arms=("uplink-closed-form",),
    images=2,
    attack="invgrad:steps=1",
)


def given(order: FederatedOrder = TINY, **changes: str) -> Given:
    names = {one.name for one in settings_of(order)} - {"arms", "data", "attack"}
    fields = {one.name: one.value for one in settings_of(order) if one.name in names}
    lists: dict[str, dict[str, dict[str, str]]] = {
        "datasets": {order.data: {}},
        "attacks": {order.attack: {}},
        "arms": {arm: {} for arm in order.arms},
    }
    return Given(fields=fields | changes, lists=lists)


def test_the_form_means_an_order() -> None:
    order = federated.order_of(given())
    assert order.arms == (REFERENCE, RESCALED, "uplink-closed-form")
    assert order.data == TINY.data
    assert order.attack == TINY.attack
    assert federated.order_of(given(FederatedOrder())) == FederatedOrder()
    assert federated.order_of(given(replace(TINY, arms=()))).arms == ()


def test_the_form_opens_with_a_few_arms_and_the_defaults() -> None:
    html = federated.form_html()
    chosen = re.findall(r'data-list="([a-z]+)" value="([^"]+)" checked', html)
    arms = [item for name, item in chosen if name == "arms"]
    assert 1 < len(arms) < len(ARMS) / 2
    assert ("attacks", FederatedOrder().attack) in chosen
    assert ("datasets", FederatedOrder().data) in chosen
    assert 'name="rounds"' in html


def test_an_empty_field_is_named() -> None:
    with pytest.raises(SettingsError, match="Clients is empty"):
        federated.order_of(given(clients=""))
    bare = replace(given(), lists={**given().lists, "datasets": {}})
    with pytest.raises(SettingsError, match="Choose one of Pictures"):
        federated.order_of(bare)


def test_one_image_each_is_refused_in_the_words_of_the_form(tmp_path: Path) -> None:
    order = federated.order_of(given(FederatedOrder(), images="1"))
    with pytest.raises(SettingsError, match=r"Images each is 1.* 'Who looks, and how'"):
        queue_comparison(order, tmp_path)
    assert "Images each" in federated.form_html()
    assert "Who looks, and how" in federated.form_html()
    assert not (tmp_path / "jobs").exists()


def test_a_finished_comparison_is_drawn(tmp_path: Path):
    job = queue_comparison(TINY, tmp_path)
    assert federated.draw(job) == ["", "", ""]
    jobs.run_as_job(job.folder, lambda report: carry_out(TINY, out_of(job), report))
    summary, training, grid = federated.draw(job)
    assert "eavesdropper on the uplink alone: no protection" in summary
    assert "A client finds γ" in training
    assert training.count("<polyline") == 2  # with masks and without
    assert grid.count("<img") == 2 * (1 + 3)
    assert "SSIM" in grid


def test_without_a_job_the_page_says_so():
    assert "Nothing has been compared" in federated.draw(None)[0]


def score(arm: str, ssim: float, verdict: str) -> dict[str, object]:
    return {"arm": arm, "ssim": ssim, "blank_ssim": 0.1, "verdict": verdict}


def test_the_verdict_names_who_is_kept_from_pictures() -> None:
    words = federated_view.verdict_words(
        [
            score(REFERENCE, 0.5, "reference"),
            score("server-pbpfl", 0.1, "nothing"),
            score("links-naive", 0.1, "nothing"),
            score("links-stripped", 0.5, "as much"),  # the strongest counts
            score("uplink-closed-form", 0.9, "as much"),
            score("client-own-mask", math.nan, "failed"),
        ]
    )
    assert words.startswith("Plain training gives pictures away (SSIM 0.50")
    assert "Masks keep them from the server against this attack." in words
    both = "an eavesdropper on both links and an eavesdropper on the uplink alone"
    assert f"They do not keep them from {both}." in words
    assert "It is open for another client." in words


@pytest.mark.parametrize("ssim", [0.05, 0.2, math.nan])
def test_where_plain_training_gives_nothing_away_nothing_is_said_of_masks(ssim: float) -> None:
    words = federated_view.verdict_words(
        [score(REFERENCE, ssim, "reference"), score("server-pbpfl", 0.1, "too weak")]
    )
    assert words.startswith("The attack failed on plain training too")
    assert "nothing can be said of masks" in words
    assert "keep" not in words
