"""The SemSim of the workspace."""

import json

import pandas as pd
import pytest
import torch

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.metric_spec import START
from semsim.base.stats.intervals import too_few
from semsim.learning.baselines import difference_rows
from semsim.learning.card import FORMAT
from semsim.learning.default_checkpoint import BUILT_IN, PROMOTED_FILE, doubt, promote, promoted
from semsim.metrics.network import ModelSettings, SemSimModel, save_semsim
from semsim.metrics.provenance import Provenance

CHOSEN = '{"format": "semsim-chosen/1", "semsim": "NAME"}'


@pytest.fixture
def checkpoints(tmp_path):
    torch.manual_seed(0)
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.3] * 3)
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": "", "versions": {}}
    training = Provenance(**facts, settings={}, pixels={"symbols/000": [""]})
    save_semsim(model, tmp_path / "mine.safetensors", training)
    return tmp_path


def test_one_is_promoted_until_its_file_goes(checkpoints):
    assert promoted(checkpoints) is None
    assert promote(checkpoints, "mine") == checkpoints / "mine.safetensors"
    assert promoted(checkpoints) == "mine"
    (checkpoints / "mine.safetensors").unlink()
    assert promoted(checkpoints) is None


def test_the_built_in_one_stands_in_until_another_is_chosen(checkpoints):
    (checkpoints / "mine.safetensors").rename(checkpoints / f"{BUILT_IN}.safetensors")
    assert promoted(checkpoints) == BUILT_IN
    (checkpoints / PROMOTED_FILE).write_text(CHOSEN.replace("NAME", "gone"))
    assert promoted(checkpoints) == BUILT_IN
    (checkpoints / PROMOTED_FILE).write_text("{")
    assert promoted(checkpoints) == BUILT_IN


def test_only_a_semsim_can_be_promoted(checkpoints):
    (checkpoints / "text.safetensors").write_text("no weights")
    for name, error in (("text", WeightsError), ("gone", WeightsError), ("../a", SettingsError)):
        with pytest.raises(error):
            promote(checkpoints, name)
    assert promoted(checkpoints) is None


@pytest.mark.parametrize("content", ["{", "[]", "{}", CHOSEN.replace("NAME", "../mine")])
def test_a_file_edited_by_hand_promotes_nothing(checkpoints, content):
    (checkpoints / PROMOTED_FILE).write_text(content)
    assert promoted(checkpoints) is None


@pytest.mark.parametrize(
    ("aucs", "said"),
    [
        ({"mse": 0.83, "psnr": 0.83, "ssim": 0.5, "lpips-alex": 0.9}, "lost to MSE, PSNR"),
        ({"ssim": 0.6, "semsim:mine.start": 0.67}, "lost to SEMSIM:MINE.START"),
        ({"mse": 0.5, "ssim": 0.6, "lpips-alex": 0.9}, ""),
        ({"mse": None, "lpips-alex": 0.9}, "nobody knows if it lost"),
        ({}, "nobody knows if it lost"),
    ],
)
def test_a_card_says_what_it_lost_to(checkpoints, aucs, said):
    table = pd.DataFrame(
        {
            **{"metric": name, "title": name.upper(), "scope": "pooled"},
            **{"auc": 0.67, "other_auc": auc},
            "difference": None if auc is None else 0.67 - auc,
            **{"low": None, "high": None, "n_originals": 4},
            **{"interval_undefined": too_few(4), "undefined": None},
        }
        for name, auc in aucs.items()
    )
    against = difference_rows(table, {"semsim:mine.start": START})
    judged = {"sample": "held-out", "against": against, "absent": {}}
    judged |= {"moved": True, "shuffled": None, "scale_differs": []}
    card = {"format": FORMAT, "held_out": judged}
    (checkpoints / "mine.card.json").write_text(json.dumps(card))
    assert doubt(checkpoints, "mine").endswith(said)
    assert bool(doubt(checkpoints, "mine")) == bool(said)


def test_where_nobody_judged_there_is_nothing_to_doubt(checkpoints):
    assert doubt(checkpoints, "mine") == ""
