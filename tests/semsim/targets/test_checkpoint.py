import pytest
import torch
from safetensors.torch import save_file

from semsim.base.errors import SettingsError, WeightsError
from semsim.targets.checkpoint import TargetState, images_digest, read_state, write_state
from semsim.types import LabelledImages

STATE = TargetState(
    epoch=3,
    lr=0.1 * 0.1,
    model={"w": torch.tensor([1.0, float("nan")]), "n": torch.tensor(7)},
    momentum={"w": torch.tensor([0.5, -0.5])},
    rng=torch.Generator().manual_seed(5).get_state(),
)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "deep" / "t.safetensors"
    write_state(path, STATE, "mine")
    again = read_state(path, "mine")
    assert (again.epoch, again.lr) == (3, 0.1 * 0.1)
    assert again.model.keys() == {"w", "n"}
    assert torch.equal(again.model["w"].nan_to_num(9), torch.tensor([1.0, 9]))
    assert torch.equal(again.momentum["w"], STATE.momentum["w"])
    assert torch.equal(again.rng, STATE.rng)
    assert [p.name for p in path.parent.iterdir()] == ["t.safetensors"]  # no half file stays


def test_no_file_is_no_state(tmp_path):
    assert read_state(tmp_path / "none.safetensors", "mine") is None


def test_others_and_broken_files_are_refused(tmp_path):
    path = tmp_path / "t.safetensors"
    write_state(path, STATE, "mine")
    with pytest.raises(SettingsError, match="other settings"):
        read_state(path, "yours")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(WeightsError, match="not a readable weight file"):
        read_state(path, "mine")
    save_file({"a": torch.zeros(1)}, str(path))
    with pytest.raises(WeightsError, match="has no format"):
        read_state(path, "mine")


def test_digest_sees_every_part_of_the_data():
    def digest(**changes):
        usual = {
            "dataset": "toy",
            "classes": ("a", "b"),
            "ids": ("0", "1"),
            "images": torch.zeros(2, 3, 2, 2),
            "labels": torch.tensor([0, 1]),
        }
        return images_digest(LabelledImages(**{**usual, **changes}))

    changed = torch.zeros(2, 3, 2, 2)
    changed[1, 2, 1, 1] = 1e-6
    different = [
        digest(),
        digest(images=changed),
        digest(labels=torch.tensor([1, 0])),
        digest(ids=("1", "0")),
        digest(classes=("a", "c")),
    ]
    assert len(set(different)) == 5
    assert digest() == different[0]
