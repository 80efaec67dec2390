"""What every metric promises, whatever it is."""

import functools
import re
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
import torch
from made_weights import CLASSES, MADE, make_checkpoints

from semsim.base.errors import DataError, UnknownNameError, WeightsError
from semsim.metrics import METRICS, Pairs, Resources, all_metrics, find_metric
from semsim.weights import read_manifest

NAMES = [*METRICS, "semsim:tiny"]
# Networks of hundreds of MB are not made for a test: LPIPS shares all but those with the small one.
RUNNABLE = [name for name in NAMES if set(find_metric(name).spec.weights) <= set(MADE)]
OF_IMAGES = [name for name in RUNNABLE if find_metric(name).spec.per_image]


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    return make_checkpoints(tmp_path_factory.mktemp("weights"), MADE)


@pytest.fixture(scope="module")
def judge(resources):
    """The judge of a metric by name; loaded once, as Inception takes seconds."""
    return functools.cache(lambda name: find_metric(name).prepare(resources))


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))


def pairs(noise, name="mse"):
    """Four pairs that the metric called `name` can judge; of a set two, as Inception is slow."""
    spec, generator = find_metric(name).spec, torch.Generator().manual_seed(0)
    n, side = 4 if spec.per_image else 2, max(20, spec.smallest_side)
    x, other = torch.rand(2, n, 3, side, side, generator=generator)
    made = (1 - noise) * x + noise * other
    return Pairs(originals=x, reconstructions=made, class_names=CLASSES[:n])


@pytest.mark.parametrize("name", RUNNABLE)
def test_shape_dtype_repeatability_and_images_left_alone(name, judge):
    given, before = pairs(0.5, name), pairs(0.5, name)
    scores = judge(name)(given)
    assert scores.values.shape == ((4,) if find_metric(name).spec.per_image else (1,))
    assert scores.values.dtype == np.float64
    assert np.isfinite(scores.values).all()
    assert np.array_equal(scores.values, judge(name)(pairs(0.5, name)).values)
    assert torch.equal(given.originals, before.originals)
    assert torch.equal(given.reconstructions, before.reconstructions)


@pytest.mark.parametrize("name", RUNNABLE)
def test_no_image_leaks_more_than_itself(name, judge):
    """The orientation a metric claims is the one it has."""
    spec = find_metric(name).spec
    perfect, poor = (judge(name)(pairs(noise, name)).values for noise in (0.0, 0.8))
    if spec.yes_or_no:  # an untrained classifier has no opinion worth ordering
        assert {*perfect, *poor} <= {0.0, 1.0}
        return
    assert (perfect > poor).all() if spec.higher_means_more_leakage else (perfect < poor).all()
    if spec.per_image:  # as good as can be, whatever the image shows
        best = perfect[0] if spec.higher_means_more_leakage else 0.0
        assert perfect == pytest.approx(np.full(len(perfect), best), abs=1e-9)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_a_score_does_not_depend_on_batch_mates_nor_order(name, judge):
    together, given = judge(name)(pairs(0.5, name)).values, pairs(0.5, name)
    for i in (3, 1):
        alone = Pairs(
            originals=given.originals[i : i + 1],
            reconstructions=given.reconstructions[i : i + 1],
            class_names=CLASSES[i : i + 1],
        )
        # Networks compute in float32, and differently for batches of different sizes.
        assert judge(name)(alone).values == pytest.approx(together[i : i + 1], rel=1e-4)


@pytest.mark.parametrize("name", RUNNABLE)
def test_against_the_attacked_image_it_is_the_same_metric_under_another_name(name, judge):
    plain, attacked = find_metric(name).spec, find_metric(f"{name}@attacked").spec
    assert attacked.name == f"{name}@attacked"
    assert attacked.title == f"{plain.title}, attacked image as reference"
    assert (plain.reference, attacked.reference) == ("clean", "attacked")
    assert replace(attacked, name=plain.name, title=plain.title, reference="clean") == plain
    values = [judge(n)(pairs(0.5, name)).values for n in (name, attacked.name)]
    assert np.array_equal(*values)


@pytest.mark.parametrize("name", RUNNABLE)
def test_an_image_too_small_is_refused_with_its_size(name, judge):
    side = find_metric(name).spec.smallest_side
    if side > 1:
        x = torch.zeros(1, 3, side, side - 1)
        with pytest.raises(DataError, match=rf"at least {side} pixels .*got {side - 1}×{side}"):
            judge(name)(Pairs(originals=x, reconstructions=x))


@pytest.mark.parametrize("name", NAMES)
def test_the_name_finds_the_metric_and_the_spec_is_complete(name):
    spec = find_metric(name).spec
    assert spec.name == name
    assert spec.title
    assert set(spec.weights) <= set(read_manifest())
    assert all(version(library) for library in spec.libraries)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_weights_a_metric_is_an_error_that_names_the_file(name, resources, tmp_path):
    metric, bare = find_metric(name), Resources(checkpoints=tmp_path, classifiers=())
    needed = [read_manifest()[weights].file for weights in metric.spec.weights]
    needed = needed or [path.name for path in metric.files(resources)]
    if not needed:
        assert metric.files(bare) == ()
        return
    for attempt in (metric.files, metric.prepare):
        with pytest.raises(WeightsError, match=needed[0]):
            attempt(bare)


def test_trained_checkpoints_are_metrics_too(resources):
    found = all_metrics(resources)
    assert list(found)[: len(METRICS)] == list(METRICS)
    assert found["semsim:tiny"].spec.per_image
    assert not found["fd:recogniser"].spec.per_image


def test_files_that_are_no_checkpoints_are_no_metrics(tmp_path):
    (tmp_path / "half.safetensors").write_bytes(b"\x00" * 10)
    assert list(all_metrics(Resources(checkpoints=tmp_path))) == list(METRICS)


@pytest.mark.parametrize(
    "name", ["mes", "semsim:", "colour:x", "", "mes@attacked", "mse@attacked@attacked", "mse@clean"]
)
def test_an_unknown_metric_names_the_known_ones(name):
    known = re.escape(f"Known: {', '.join(METRICS)}, ")
    with pytest.raises(UnknownNameError, match=rf"{known}.*semsim:<checkpoint>.*@attacked"):
        find_metric(name)
