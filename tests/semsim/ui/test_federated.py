"""The page Federated without a browser: its form, and what it draws of a finished job."""

from pathlib import Path

import pytest

from semsim.errors import SettingsError
from semsim.federated.arms import REFERENCE, RESCALED
from semsim.federated.comparison import carry_out
from semsim.federated.comparison_job import out_of, queue_comparison
from semsim.federated.settings import FederatedOrder
from semsim.jobs import folders as jobs
from semsim.ui import federated

TINY = FederatedOrder(
    data="symbols:train_per_class=1,test_per_class=1,size=16",
    network="mlp-3",
    clients=2,
    rounds=1,
    arms=("uplink-closed-form",),
    images=2,
    attack="invgrad:steps=1",
)


def values(order: FederatedOrder) -> tuple[object, ...]:
    return tuple(getattr(order, name) for name in federated.FORM)


def test_the_form_means_an_order():
    order = federated.order_of(values(TINY))
    assert order.arms == (REFERENCE, RESCALED, "uplink-closed-form")
    assert order.data == TINY.data
    assert federated.order_of(values(FederatedOrder())) == FederatedOrder()


def test_an_empty_field_is_named():
    given = list(values(TINY))
    given[federated.FORM.index("clients")] = None
    with pytest.raises(SettingsError, match="clients is empty"):
        federated.order_of(tuple(given))


def test_one_image_each_is_refused_in_the_words_of_the_form(tmp_path: Path):
    given = list(values(FederatedOrder()))
    given[federated.FORM.index("images")] = 1
    with pytest.raises(SettingsError, match=r"Images each is 1.* 'Who looks, and how'"):
        queue_comparison(federated.order_of(tuple(given)), tmp_path)
    assert not (tmp_path / "jobs").exists()


def test_a_finished_comparison_is_drawn(tmp_path: Path):
    job = queue_comparison(TINY, tmp_path)
    assert federated.draw(job)[3] == ""
    jobs.run_as_job(job.folder, lambda report: carry_out(TINY, out_of(job), report))
    summary, _, words, grid = federated.draw(job)
    assert "eavesdropper on the uplink alone: no protection" in summary
    assert "A client finds γ" in words
    assert grid.count("<img") == 2 * (1 + 3)
    assert "SSIM" in grid


def test_without_a_job_the_page_says_so():
    assert "Nothing has been compared" in federated.draw(None)[0]
