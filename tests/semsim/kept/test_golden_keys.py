"""Keys of results that lie on people's disks: one that changes throws their finished work away."""

from pathlib import Path

import pytest
import torch
from made_campaign import toy_campaign

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.campaign import demo, jury
from semsim.campaign.demo_plan import DemoSettings
from semsim.campaign.plan import key_of as campaign_key
from semsim.campaign.plan import make_plan
from semsim.defences import DEFENCES
from semsim.defences.none import NoDefence
from semsim.metrics import METRICS
from semsim.metrics.base import Resources
from semsim.registry import build, key_settings, named
from semsim.scores.scoring import score_key
from semsim.split.store import key_of as split_key
from semsim.targets import TARGETS
from semsim.targets.train import Training, _fingerprint
from semsim.targets.train_settings import TrainSettings
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
    cell = campaign_key("cell/1", plan.targets[0].key, {"tv": 0.5, "seeds": (1, 2)}, NoDefence())
    return [plan.targets[0].key, cell, plan.cells[0].key, str(plan.cells[0].draw)]


def strategy_keys() -> dict[str, str]:
    """Of targets, by their strategy: one of several parts is what it was, however it is spelt."""
    campaign = toy_campaign(strategies=tuple(STRATEGY_KEYS), images=2)
    targets = make_plan(campaign, dict.fromkeys(campaign.datasets, grey())).targets
    return {text: one.key for text, one in zip(STRATEGY_KEYS, targets, strict=True)}


def attack_keys() -> dict[str, str]:
    """By attack: of those whose numbers never changed, whatever settings came later."""
    return {t: campaign_key(key_settings(ATTACKS, read_attack(t))) for t in ATTACK_KEYS}


def training_mark() -> str:
    return _fingerprint(
        Training(
            architecture=build(TARGETS, "cnn-small"),
            data=grey(),
            defence=build(DEFENCES, "crop-flip", {"flip": 0.5}),
            settings=TrainSettings(epochs=3),
        )
    )


def demo_keys() -> list[str]:
    """Of a judge and of a juror."""
    settings = DemoSettings(device="cpu")
    judge = demo._judge_order("recogniser", Path("work"), settings)
    juror = jury.juror_path(Path("work"), 0, settings.jury)
    return [judge.checkpoints.as_posix(), juror.as_posix()]


ATTACK_KEYS = {
    "invgrad": "b66304b0e1c9ff03fbbe",
    "invgrad:fast": "4730d4757b52f68ff454",
    "prior:curvature=0,boxed=false": "5b127117699ad46956b2",
    "gradattack": "6b69a57d6f66f9c11bfc",
    "dlg": "7507db25256d5f18fa74",
    "idlg:fast": "b8943a0f2518dd4a1a12",
    "rgap": "0347b2b27fb5473eb6d1",
    "copa-prior": "84cd89f0f5e9a841dd6c",
}
STRATEGY_KEYS = {
    "crop-flip": "6d769e59f68ae3d84362",
    "3-1-7-code": "007762884fef70da4347",
    "pruning-code": "6ef94039906c4a3c2e5c",
    "crop-flip & gradient-pruning:apply_at=train": "6ef94039906c4a3c2e5c",
    "noise-code": "cfd2d5a1c7d9dc420126",
    "crop-flip & gradient-noise:std=0.01": "f0c51bc3537d87c4aaae",
    "crop-flip:padding=4 & gradient-noise:std=1e-2": "f0c51bc3537d87c4aaae",
    "noise": "bc61a49c92fef2e594e6",
}
KEYS = {
    "strategies": (strategy_keys, STRATEGY_KEYS),
    "attacks": (attack_keys, ATTACK_KEYS),
    "campaign": (
        campaign_keys,
        [
            "b3ab8a278b37101a70f5",
            "e983597135d1eb46e071",
            "a94ac43062216c674c52",
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
    "demo": (
        demo_keys,
        [
            "work/judges/f74d4e0595b00341",
            "work/jury/08dba8a23febf953.safetensors",
        ],
    ),
}


@pytest.mark.parametrize("store", KEYS)
def test_a_key_is_what_it_was(store):
    made, known = KEYS[store]
    assert made() == known


def test_an_attack_that_had_wrong_numbers_has_another_key_than_then():
    for text, then in WRONG_THEN.items():
        settings = key_settings(ATTACKS, read_attack(text))
        assert campaign_key(settings) != then
        assert settings.pop("revision")
        assert campaign_key(settings) == then


def test_a_setting_that_came_later_is_in_the_key_where_it_is_not_what_was_before():
    late = {text: key_settings(ATTACKS, read_attack(text)) for text in LATE}
    assert {text: settings.get("curvature") for text, settings in late.items()} == LATE
    assert {text: settings.get("boxed") for text, settings in late.items()} == {
        text: True if text.startswith("prior") and "boxed" not in text else None for text in LATE
    }
    assert named(ATTACKS, read_attack("invgrad"))["settings"]["curvature"] == 0  # records say all


LATE = {
    "invgrad": None,
    "invgrad:curvature=0.1": 0.1,
    "prior": 0.1,
    "prior:boxed=false": 0.1,
    "prior:curvature=0": None,
}
WRONG_THEN = {
    "copa": "087ad1f3de6b1daa9560",
    "gradattack:distance=cosine-per-layer": "1712626134bd9d278b5a",
}
