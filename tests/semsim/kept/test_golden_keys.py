"""Keys of results that lie on people's disks: one that changes throws their finished work away."""

from pathlib import Path

import pytest
import torch
from made_campaign import toy_campaign

from semsim.campaign import demo
from semsim.campaign.demo_plan import DemoSettings, target_plans
from semsim.campaign.plan import key_of as campaign_key
from semsim.campaign.plan import make_plan
from semsim.defences import DEFENCES
from semsim.defences.none import NoDefence
from semsim.metrics import METRICS
from semsim.metrics.base import Resources
from semsim.registry import build
from semsim.scores.scoring import score_key
from semsim.split.store import key_of as split_key
from semsim.targets import TARGETS
from semsim.targets.train import Training, TrainSettings, _fingerprint
from semsim.types import LabelledImages


def grey(count: int = 2) -> LabelledImages:
    """Two classes of plain pictures: what they look like depends on no library."""
    levels = torch.arange(1, count + 1).float() / 8
    return LabelledImages(
        dataset="grey",
        classes=("a", "ü"),
        ids=tuple(f"grey-{place}" for place in range(count)),
        labels=torch.arange(count) % 2,
        images=levels[:, None, None, None].expand(count, 3, 32, 32).contiguous(),
    )


def campaign_keys() -> list[str]:
    campaign = toy_campaign(images=2)
    plan = make_plan(campaign, dict.fromkeys(campaign.datasets, grey()))
    # Not the key of a cell itself: an attack that gains a setting gives its cells new ones.
    cell = campaign_key("cell/1", plan.targets[0].key, {"tv": 0.5, "seeds": (1, 2)}, NoDefence())
    return [plan.targets[0].key, cell, str(plan.cells[0].draw)]


def training_mark() -> str:
    return _fingerprint(
        Training(
            architecture=build(TARGETS, "cnn-small"),
            data=grey(),
            defence=build(DEFENCES, "crop-flip", {"flip": 0.5}),
            settings=TrainSettings(epochs=3),
        )
    )


def demo_piece() -> str:
    settings = DemoSettings(device="cpu")
    path = demo._attack_path(target_plans(settings)[0], ("a", "b"), settings, Path("work"))
    return path.as_posix()


KEYS = {
    "campaign": (
        campaign_keys,
        [
            "b3ab8a278b37101a70f5",
            "e983597135d1eb46e071",
            "559607678218069445",
        ],
    ),
    "split": (
        lambda: split_key({"data": "ü", "parts": [1, 0.5, None], "seed": 0}),
        "56d5a95608c775e9c7b6",
    ),
    "scores": (
        lambda: score_key(METRICS["ssim"], "0" * 64, Resources()),
        "dbabcef8026f185d968f36acf19c95058a291f59",
    ),
    "training": (
        training_mark,
        "20d2fe4cda108bdcce030a969563e69e562799b4f7d79efe04fd42e592c58088",
    ),
    "demo": (demo_piece, "work/attacks/24e3f803bcfc1cd7.npz"),
}


@pytest.mark.parametrize("store", KEYS)
def test_a_key_is_what_it_was(store):
    made, known = KEYS[store]
    assert made() == known
