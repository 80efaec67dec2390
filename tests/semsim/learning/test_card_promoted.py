"""The SemSim of the workspace."""

import pytest
import torch

from semsim.errors import SettingsError, WeightsError
from semsim.learning.card_promoted import BUILT_IN, PROMOTED_FILE, promote, promoted
from semsim.metrics.network import ModelSettings, SemSimModel, save_semsim
from semsim.metrics.provenance import Training


@pytest.fixture
def checkpoints(tmp_path):
    torch.manual_seed(0)
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.3] * 3)
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": ""}
    save_semsim(model, tmp_path / "mine.safetensors", Training(**facts, versions={}, settings={}))
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
    (checkpoints / PROMOTED_FILE).write_text('{"semsim": "gone"}')
    assert promoted(checkpoints) == BUILT_IN
    (checkpoints / PROMOTED_FILE).write_text("{")
    assert promoted(checkpoints) == BUILT_IN


def test_only_a_semsim_can_be_promoted(checkpoints):
    (checkpoints / "text.safetensors").write_text("no weights")
    for name, error in (("text", WeightsError), ("gone", WeightsError), ("../a", SettingsError)):
        with pytest.raises(error):
            promote(checkpoints, name)
    assert promoted(checkpoints) is None


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"semsim": "../mine"}'])
def test_a_file_edited_by_hand_promotes_nothing(checkpoints, content):
    (checkpoints / PROMOTED_FILE).write_text(content)
    assert promoted(checkpoints) is None
