"""The model, its distance, and its file."""

import struct

import numpy as np
import pytest
import torch
from made_weights import make_classifier, make_semsim
from safetensors import safe_open
from safetensors.torch import load_file

from semsim.base.errors import DataError, SettingsError, UnknownNameError, WeightsError
from semsim.base.metric_spec import CALIBRATED
from semsim.metrics import Pairs, Resources
from semsim.metrics.calibrated import NAMES, PixelBlocks, pixel_blocks
from semsim.metrics.network import (
    ModelSettings,
    SemSimModel,
    load_semsim,
    resize,
    save_semsim,
    semsim_distance,
)
from semsim.metrics.pixel import mse
from semsim.metrics.provenance import FORMAT, Provenance, read_training
from semsim.metrics.semsim import SemSimDistance
from semsim.targets.chance import CLASSIFIER
from semsim.weights import read_facts, write_tensors

TRAINING = Provenance(
    n_originals=19,
    n_triplets=162,
    simulated=True,
    created="2026-01-31T14:05:00+00:00",
    versions={"torch": "2"},
    settings={"lr": 0.1},
    study="Études",
    warnings=("collapsed",),
    results={"loss": 0.1},
    start="ab12",
    pixels={"symbols/1": ["8x8:ab"]},
)


def make(backbone="lenet", seed=0, **settings):
    torch.manual_seed(seed)
    model = SemSimModel(
        ModelSettings(backbone=backbone, **settings), mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.4]
    )
    return model.eval()


def images(n=5, side=32, seed=0):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def saved(tmp_path):
    model = make()
    save_semsim(model, tmp_path / "deep" / "a.safetensors", TRAINING)
    return model, tmp_path / "deep" / "a.safetensors"


def test_the_distance_is_the_euclidean_one_of_the_features():
    model, x, y = make(), images(seed=1), images(seed=2)
    with torch.no_grad():
        features = model(x).numpy(), model(y).numpy()
    expected = [float(((a - b) ** 2).sum() ** 0.5) for a, b in zip(*features, strict=True)]
    assert semsim_distance(model, x, y).tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("backbone", ["lenet", "resnet18"])
def test_an_image_is_at_distance_zero_from_itself(backbone):
    assert semsim_distance(make(backbone, small_stem=False), images(), images()).tolist() == [0] * 5


def test_the_distance_does_not_depend_on_the_batch(monkeypatch):
    model, x, y = make("resnet18", small_stem=False), images(seed=1), images(seed=2)
    whole = semsim_distance(model, x, y)
    monkeypatch.setattr("semsim.metrics.network._BATCH", 2)
    parts = semsim_distance(model, x, y)
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-5)


def test_scoring_leaves_the_model_as_it_was():
    model = make("resnet18", small_stem=False).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    distance = semsim_distance(model, images(), images(seed=1))
    assert model.training
    assert not distance.requires_grad
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_originals_and_reconstructions_may_differ_in_size():
    large = torch.nn.functional.interpolate(images(), scale_factor=2, mode="nearest")
    assert semsim_distance(make(), large, images()).shape == (5,)
    assert make(input_size=48)(images()).shape == (5, 84)


def test_normalised_features_have_length_one():
    features = make(normalize=True)(images())
    assert torch.linalg.vector_norm(features, dim=1).tolist() == pytest.approx([1] * 5)
    assert semsim_distance(make(normalize=True), images(), images(seed=1)).max() <= 2


def test_resizing_stays_in_range_and_keeps_what_fits():
    x = images().round()  # black and white: bicubic would overshoot
    assert resize(x, (32, 32)) is x
    assert 0 <= resize(x, (20, 20)).min() <= resize(x, (20, 20)).max() <= 1


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda x: (x * 255).to(torch.uint8), "must be float32 in.*got torch.uint8"),
        (lambda x: x * 255, "must lie in"),
        (lambda x: x - 0.5, "must lie in"),
        (lambda x: x.where(x < 0.9, torch.nan), "must lie in"),
        (lambda x: x.numpy(), "originals must be a torch tensor; got ndarray.*torch.from_numpy"),
    ],
)
def test_anything_but_numbers_in_0_to_1_is_refused(made, words):
    with pytest.raises(DataError, match=words):
        semsim_distance(make(), made(images()), images(seed=1))
    with pytest.raises(DataError, match=words.replace("originals", "reconstructions")):
        semsim_distance(make(), images(seed=1), made(images()))


def test_double_precision_is_as_good():
    found = semsim_distance(make(), images().double(), images(seed=1).double())
    assert torch.equal(found, semsim_distance(make(), images(), images(seed=1)))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.rand(2, 3, 32, 32), torch.rand(3, 3, 32, 32)),
        (torch.rand(2, 1, 32, 32), torch.rand(2, 1, 32, 32)),
        (torch.rand(3, 32, 32), torch.rand(3, 32, 32)),
        (torch.rand(0, 3, 32, 32), torch.rand(0, 3, 32, 32)),
    ],
)
def test_images_that_are_no_pairs_are_refused(x, y):
    with pytest.raises(DataError):
        semsim_distance(make(), x, y)


def test_an_unknown_backbone_names_the_known():
    with pytest.raises(UnknownNameError, match="resnet50"):
        make("vgg")


@pytest.mark.parametrize("backbone", ["lenet", "resnet18"])
def test_a_checkpoint_gives_the_same_distances(tmp_path, backbone):
    model = make(backbone, small_stem=False, normalize=True, input_size=40)
    save_semsim(model, tmp_path / "a.safetensors", TRAINING)
    torch.manual_seed(99)
    loaded = load_semsim(tmp_path / "a.safetensors")
    assert loaded.settings == model.settings
    assert not loaded.training
    x, y = images(seed=1), images(seed=2)
    assert torch.equal(semsim_distance(loaded, x, y), semsim_distance(model, x, y))


def test_a_checkpoint_says_where_it_comes_from(saved):
    assert read_training(saved[1]) == TRAINING
    with safe_open(str(saved[1]), framework="pt") as file:
        assert file.metadata()["format"] == FORMAT
    assert [path.name for path in saved[1].parent.iterdir()] == ["a.safetensors"]


def test_a_missing_checkpoint_says_who_makes_one(tmp_path):
    with pytest.raises(WeightsError, match="Train SemSim"):
        load_semsim(tmp_path / "a.safetensors")


@pytest.mark.parametrize("content", [b"", b"not weights", struct.pack("<Q", 2**40) + b"{}"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"a\.safetensors"):
        load_semsim(path)


def test_a_cut_file_is_refused(saved):
    saved[1].write_bytes(saved[1].read_bytes()[:-100])
    with pytest.raises(WeightsError):
        load_semsim(saved[1])


def rewrite(path, change_weights=lambda w: w, change_config=lambda c: c, form=FORMAT):
    config = change_config(read_facts(path, FORMAT))
    write_tensors(path, change_weights(load_file(str(path))), form, config)


def without_first(weights):
    return dict(list(weights.items())[1:])


def with_nan(weights):
    first = next(name for name, value in weights.items() if value.ndim == 4)
    weights[first][0] = float("nan")
    return weights


@pytest.mark.parametrize(
    "changes",
    [
        {"form": CLASSIFIER},
        {"change_weights": without_first},
        {"change_weights": lambda w: {**w, "extra": torch.zeros(1)}},
        {"change_weights": with_nan},
        {"change_config": lambda c: {**c, "settings": {"backbone": "resnet18"}}},
        {"change_config": lambda c: {**c, "settings": {"backbone": "vgg"}}},
        {"change_config": lambda c: {**c, "settings": {"colour": "red"}}},
        {"change_config": lambda c: {"settings": c["settings"]}},
        {"change_config": lambda c: []},
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(saved, changes):
    rewrite(saved[1], **changes)
    with pytest.raises(WeightsError, match=r"a\.safetensors"):
        load_semsim(saved[1])


def test_a_checkpoint_without_origin_is_told(saved):
    rewrite(saved[1], change_config=lambda c: {**c, "training": {"n_originals": 1}})
    load_semsim(saved[1])
    with pytest.raises(WeightsError, match="how it was trained"):
        read_training(saved[1])


def gaps(a, b):
    pairs = zip(pixel_blocks(a), pixel_blocks(b), strict=True)
    return [(x - y).square().sum(1) for x, y in pairs]


def test_the_first_block_is_the_mean_squared_error():
    a, b = images(3), images(3, seed=1)
    torch.testing.assert_close(gaps(a, b)[0].double(), mse(a, b))


def test_coarse_pixels_do_not_see_fine_noise_and_structure_does():
    a = torch.full((1, 3, 32, 32), 0.5)
    checks = a.clone()
    checks[..., ::2, ::2] += 0.1
    checks[..., 1::2, 1::2] += 0.1
    checks[..., ::2, 1::2] -= 0.1
    checks[..., 1::2, ::2] -= 0.1
    pixels, coarse, structure, _ = gaps(a, checks)
    assert pixels == pytest.approx(0.01, rel=1e-4)
    assert coarse < 1e-10
    assert structure > 0.5


def test_structure_does_not_see_another_brightness_or_contrast():
    a = images(3)
    other = 0.3 * a + 0.5
    pixels, _, structure, _ = gaps(a, other)
    assert (pixels > 0.03).all()
    assert (structure < 0.05).all()
    assert (gaps(a, images(3, seed=1))[2] > 1).all()


@pytest.mark.parametrize("side", [1, 5, 8, 13, 32])
def test_any_size_of_image_has_every_block(side):
    blocks = pixel_blocks(images(3, side))
    assert len(blocks) == len(NAMES)
    assert all(block.isfinite().all() and len(block) == 3 for block in blocks)


def test_the_squared_distance_is_the_weighted_sum_of_the_blocks():
    a, b, body = images(3), images(3, seed=1), PixelBlocks()
    body.weights.copy_(torch.tensor([0.5, 0.0, 2.0, 1.0]))
    together = (body(a) - body(b)).square().sum(1)
    torch.testing.assert_close(together, body.weights @ torch.stack(gaps(a, b)))


def test_a_calibrated_baseline_scores_as_the_one_that_was_saved(tmp_path):
    settings = ModelSettings(backbone=CALIBRATED)
    model = SemSimModel(settings, mean=[0.0] * 3, std=[1.0] * 3).eval()
    model.body.weights.copy_(torch.tensor([1.0, 0.0, 0.5, 0.25]))
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": ""}
    training = Provenance(**facts, versions={}, settings={}, pixels={"symbols/000": [""]})
    save_semsim(model, tmp_path / "m.safetensors", training)
    a, b = images(3), images(3, seed=1)
    found = semsim_distance(load_semsim(tmp_path / "m.safetensors"), a, b)
    assert torch.equal(found, semsim_distance(model, a, b))
    assert model(a).shape == (3, model.width)


def test_it_is_the_distance_of_features(tmp_path):
    model = make_semsim(tmp_path / "tiny.safetensors")
    x, y = images(3, 16), images(3, 16, seed=1)
    judge = SemSimDistance(checkpoint="tiny").prepare(Resources(checkpoints=tmp_path))
    values = judge(Pairs(originals=x, reconstructions=y)).values
    with torch.no_grad():
        expected = [
            float((model(a[None]) - model(b[None])).norm()) for a, b in zip(x, y, strict=True)
        ]
    assert values.dtype == np.float64
    assert values == pytest.approx(expected, rel=1e-4)
    assert judge(Pairs(originals=x, reconstructions=x)).values.tolist() == [0, 0, 0]


def test_originals_that_sets_share_are_passed_once(tmp_path):
    make_semsim(tmp_path / "tiny.safetensors")
    x, y = images(3, 16), images(3, 16, seed=1)
    passed = []
    watch = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, given: (
            passed.append(len(given[0])) if isinstance(module, SemSimModel) else None
        )
    )
    try:
        judge = SemSimDistance(checkpoint="tiny").prepare(Resources(checkpoints=tmp_path))
        judge(Pairs(originals=x, reconstructions=y))
        judge(Pairs(originals=x.clone(), reconstructions=1 - y))
    finally:
        watch.remove()
    assert sum(passed) == 3 * len(x)


def test_a_checkpoint_that_is_not_there_says_where_it_belongs(tmp_path):
    with pytest.raises(WeightsError, match=r"No SemSim called 'none'.*none.safetensors"):
        SemSimDistance(checkpoint="none").files(Resources(checkpoints=tmp_path))


def test_another_kind_of_file_is_refused(tmp_path):
    make_classifier(tmp_path / "other.safetensors")
    with pytest.raises(WeightsError, match="has format 'semsim-classifier"):
        SemSimDistance(checkpoint="other").prepare(Resources(checkpoints=tmp_path))


def test_a_name_is_never_a_path():
    with pytest.raises(SettingsError):
        SemSimDistance(checkpoint="../x")
