"""The page Federated without a browser: its form, and what it draws of a finished job."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_federated import TINY
from made_pages import context_at

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.words import jury_words
from semsim.lab.settings_form import Given, settings_of
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import STATISTIC
from semsim.systems.federated import NETWORKS
from semsim.systems.federated import page as federated
from semsim.systems.federated.comparison import carry_out, load, queue_comparison
from semsim.systems.federated.networks import drawn_network
from semsim.systems.federated.settings import (
    REFERENCE,
    RESCALED,
    FederatedJob,
    FederatedOrder,
)
from semsim.systems.federated.summary import answer_words
from semsim.systems.federated.views import has_linear_start
from semsim.ui import lab_page


def given(order: FederatedOrder = TINY, **changes: str) -> Given:
    names = {one.name for one in settings_of(order)} - {"arms", "data", "attack", "network"}
    fields = {one.name: one.value for one in settings_of(order) if one.name in names}
    lists: dict[str, dict[str, dict[str, str]]] = {
        "datasets": {order.data: {}},
        "attacks": {order.attack: {}},
        "networks": {order.network: {}},
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


def test_an_empty_field_is_named() -> None:
    with pytest.raises(SettingsError, match="Clients is empty"):
        federated.order_of(given(clients=""))
    bare = replace(given(), lists={**given().lists, "datasets": {}})
    with pytest.raises(SettingsError, match="Choose one of Pictures"):
        federated.order_of(bare)


def test_one_image_each_is_refused_in_the_words_of_the_form(tmp_path: Path) -> None:
    order = federated.order_of(given(FederatedOrder(), images="1"))
    with pytest.raises(SettingsError, match=r"Images each is 1.* 'Parties and their attacks'"):
        queue_comparison(order, tmp_path)
    form = federated.page(context_at(tmp_path)).html
    assert "Images each" in form
    assert "Parties and their attacks" in form
    assert not (tmp_path / "jobs").exists()


def test_the_form_says_which_networks_cannot_be_solved() -> None:
    data = load(TINY.data).data
    for name in NETWORKS:
        solved = has_linear_start(drawn_network(name, data, torch.float32, 0))
        assert solved != (("uplink-closed-form", name) in federated.UNSOLVED), name


def text_of(order: FederatedOrder) -> str:
    asked = given(order)
    return json.dumps({"fields": dict(asked.fields), "lists": dict(asked.lists)})


def test_what_an_order_makes_is_told(tmp_path: Path) -> None:
    page = federated.page(context_at(tmp_path))
    words = lab_page.plan_words(page, text_of(TINY))
    assert "<strong>2 trainings</strong> of 1 round with 2 clients" in words
    assert "<strong>3 attacks on 2 pictures each</strong>" in words
    assert "Disk: up to" in words
    assert "ime" not in words
    table = replace(TINY, data="diabetes")
    assert "nothing attacked" in lab_page.plan_words(page, text_of(table))
    lonely = replace(TINY, images=1, arms=("client-own-mask",))
    assert "another client beside it" in lab_page.plan_words(page, text_of(lonely))


def test_a_finished_comparison_is_drawn(tmp_path: Path) -> None:
    page = federated.page(context_at(tmp_path))
    job = queue_comparison(TINY, tmp_path)
    strip, sets, *rest = lab_page.draw(page, job)
    assert (strip, rest[1:]) == ("", ["", "", ""])
    assert "appears here when this is done" in rest[0]
    assert (sets.count("<td>under way</td>"), sets.count("<td>waiting</td>")) == (1, 2)
    out = jobs.read_order(job, FederatedJob).out
    jobs.run_as_job(job.folder, lambda report: carry_out(TINY, out, report))
    strip, sets, verdict, result, grid, training = lab_page.draw(page, job)
    assert sets.count("<td>done</td>") == 3
    assert "eavesdropper on the uplink alone: no protection" in result
    assert "Make a study of these" in result
    lead = "A reference classifier recognises . of 2 pictures from plain training"
    assert re.search(lead, verdict)
    assert "above the no-attack baseline" in verdict
    assert "of 2</span>" in verdict  # above the no-attack baseline, set by set
    assert "A client finds γ" in training
    assert training.count("<polyline") == 2  # with masks and without
    assert strip.count("<img") == 2 * 2 * 3
    assert grid.count("<img") == 2 * (1 + 3)
    assert "SSIM" in grid


def score(arm: str, clearer: int, verdict: str, ssim: float = 0.4) -> dict[str, object]:
    return {
        "arm": arm,
        "ssim": ssim,
        "clearer": clearer,
        "by_shapes": 0,
        "images": 5,
        "verdict": verdict,
        "seeds": 1,
    }


def test_the_verdict_names_who_is_kept_from_pictures() -> None:
    named = {
        "why": "",
        "right": None,
        "sets": {REFERENCE: {"recognised": 1, "grey": 0, "originals": 5, "over": 5}},
    }
    first, words = answer_words(
        [
            score(REFERENCE, 4, "reference"),
            score("server-pbpfl", 1, "little"),
            score("links-naive", 0, "nothing"),
            score("links-stripped", 4, "as much"),  # the strongest counts
            score("uplink-closed-form", 5, "as much"),
            score("client-own-mask", 0, "failed", math.nan),
        ],
        named,
    )
    assert first == (
        "A reference classifier recognises 1 of 5 pictures from plain training, 20% [no interval: "
        "5 originals, fewer than 6] (controls: 0 of 5 grey pictures, 5 of 5 originals). "
    ) + jury_words("classifier")
    assert words.startswith(STATISTIC)
    assert f"plain training is {Count(4, 0, 5).words} (SSIM 0.40)." in words
    assert "gives pictures away" not in words
    assert "Masks keep most below that for the server (1 of 5) against this attack." in words
    both = "an eavesdropper on both links (4 of 5) and an eavesdropper on the uplink alone (5 of 5)"
    assert f"Masks change nothing of it for {both}." in words
    assert "Whether masks change it for another client (0 of 5) is not known." in words


@pytest.mark.parametrize(("clearer", "ssim"), [(0, 0.39), (2, 0.6), (0, math.nan)])
def test_where_plain_training_gives_nothing_away_nothing_is_said_of_masks(
    clearer: int, ssim: float
) -> None:
    """However high the SSIM is of what came back."""
    first, words = answer_words(
        [score(REFERENCE, clearer, "reference", ssim), score("server-pbpfl", 0, "too weak")],
        {"why": "no classifier here knows these classes.", "right": None, "sets": {}},
    )
    assert first == "What can be recognised is not known: no classifier here knows these classes."
    assert words.startswith(f"{STATISTIC}the attack failed on plain training too")
    assert Count(clearer, 0, 5).words in words
    assert "Nothing can be said of masks" in words
    assert "keep" not in words
