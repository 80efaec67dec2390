"""Weights to start from: asked for, whole, and of the right network."""

import pytest
import torch
from safetensors.torch import save_file
from torchvision.models import ResNet18_Weights, resnet18

from semsim.base.errors import SettingsError, WeightsError
from semsim.learning.initial import (
    absolute,
    check_initial,
    identify,
    load_initial,
    seen_before,
    starts,
)
from semsim.metrics.network import ModelSettings, SemSimModel, save_semsim
from semsim.metrics.provenance import FORMAT, Provenance, read_config
from semsim.weights import write_tensors

STATS = {"mean": [0.5] * 3, "std": [0.2] * 3}


def model(backbone="lenet", small_stem=False, seed=1):
    torch.manual_seed(seed)
    return SemSimModel(ModelSettings(backbone=backbone, small_stem=small_stem), **STATS)


def of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


@pytest.fixture
def whole():
    """A network as torchvision makes it, classifier and all."""
    torch.manual_seed(7)
    return of(resnet18(weights=None))


def without_classifier(state):
    return {name: value for name, value in state.items() if not name.startswith("fc.")}


@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_a_file_is_taken_without_its_classifier(tmp_path, whole, suffix):
    path = tmp_path / f"mine.{suffix}"
    save_file(whole, path) if suffix == "safetensors" else torch.save(whole, path)
    made = model("resnet18")
    load_initial(made, str(path))
    assert same(of(made.body), without_classifier(whole))


def test_a_stem_for_small_images_stays_fresh(tmp_path, whole):
    save_file(whole, tmp_path / "mine.safetensors")
    made = model("resnet18", small_stem=True)
    stem = made.body.conv1.weight.clone()
    load_initial(made, str(tmp_path / "mine.safetensors"))
    assert torch.equal(made.body.conv1.weight, stem)
    assert torch.equal(made.body.layer1[0].conv1.weight, whole["layer1.0.conv1.weight"])


def test_a_semsim_can_be_trained_further(tmp_path):
    first, second = model(seed=1), model(seed=2)
    settings = {"backbone": "lenet"}
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": "", "versions": {}}
    origin = Provenance(**facts, settings=settings, pixels={"symbols/000": [""]})
    save_semsim(first, tmp_path / "a.safetensors", origin)
    (tmp_path / "b.pth").touch()
    (tmp_path / "c.card.json").touch()
    assert starts(tmp_path) == {
        "a.safetensors": "lenet, SemSim of no named study",
        "b.pth": "network not stated",
    }
    load_initial(second, str(tmp_path / "a.safetensors"))
    assert same(of(first.body), of(second.body))


def test_a_semsim_that_does_not_say_what_it_learned_from_is_no_start(tmp_path):
    path, made = tmp_path / "a.safetensors", model()
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": "", "versions": {}}
    save_semsim(made, path, Provenance(**facts, settings={}, pixels={"symbols/000": [""]}))
    assert list(seen_before(str(path)).pictures) == ["symbols/000"]
    config = read_config(path)
    del config["training"]["pixels"]
    write_tensors(path, made.state_dict(), FORMAT, config)
    with pytest.raises(WeightsError, match=r"does not say how it was trained .*lacks pixels"):
        seen_before(str(path))


def test_scratch_changes_nothing():
    made = model()
    before = of(made)
    load_initial(made, "scratch")
    assert same(before, of(made))


def test_imagenet_is_torchvisions_own_file(tmp_path, whole, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    name = ResNet18_Weights.DEFAULT.url.rpartition("/")[2]
    (tmp_path / "hub/checkpoints").mkdir(parents=True)
    torch.save(whole, tmp_path / "hub/checkpoints" / name)
    made = model("resnet18")
    load_initial(made, "imagenet")
    assert same(of(made.body), without_classifier(whole))
    assert identify("resnet18", "imagenet") == "ResNet18_Weights.IMAGENET1K_V1"


def test_what_is_bound_to_fail_is_told_before():
    with pytest.raises(SettingsError, match="torchvision has no weights for 'lenet'"):
        check_initial("lenet", "imagenet")
    with pytest.raises(WeightsError, match="No weights at nowhere"):
        check_initial("lenet", "nowhere")
    check_initial("lenet", "scratch")


@pytest.mark.parametrize("content", [b"", b"text", b"\x80\x02]."])
@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_a_broken_file_is_named(tmp_path, content, suffix):
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"mine\."):
        load_initial(model(), str(path))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: {n: v for n, v in s.items() if n != "0.bias"},
        lambda s: {**s, "0.weight": s["0.weight"][:1].clone()},
        lambda s: {**s, "more.weight": torch.zeros(1), "still.weight": torch.zeros(1)},
    ],
)
def test_weights_of_another_network_are_refused_and_change_nothing(tmp_path, change):
    made = model()
    before = of(made)
    save_file(change(of(model(seed=3).body)), tmp_path / "other.safetensors")
    with pytest.raises(WeightsError, match="not of 'lenet'"):
        load_initial(made, str(tmp_path / "other.safetensors"))
    assert same(before, of(made))


def test_a_file_is_told_by_its_content(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    names = {identify("lenet", str(tmp_path / name)) for name in "ab"}
    assert len(names) == 2
    assert all(name.startswith("sha256:") for name in names)


def test_only_a_file_has_a_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("a.pth") == str(tmp_path / "a.pth")
    assert (absolute("scratch"), absolute("imagenet")) == ("scratch", "imagenet")
