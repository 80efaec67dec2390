from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_measures import cloud_distance
from made_weights import make_inception, put_in_manifest
from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

from semsim.base.errors import DataError, WeightsError
from semsim.metrics import Pairs, Resources
from semsim.metrics.inception import (
    INCEPTION,
    Fid,
    Kid,
    inception_features,
    kernel_distance,
    remembered,
)


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    make_inception(folder / "inception.pth")
    put_in_manifest(folder, {INCEPTION: folder / "inception.pth"})
    return Resources(checkpoints=folder)


@pytest.fixture(scope="module")
def pairs():
    x, y = torch.rand(2, 3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return Pairs(originals=x, reconstructions=y)


@pytest.fixture(scope="module")
def inception(resources):
    return inception_features(resources.checkpoints / "inception.pth", torch.device("cpu"))


def test_features_are_torch_fidelitys_of_rounded_bytes(resources, inception, pairs):
    path = resources.checkpoints / "inception.pth"
    features = inception(pairs.originals)
    network = FeatureExtractorInceptionV3("x", ["2048"], feature_extractor_weights_path=str(path))
    expected = network((pairs.originals * 255).round().byte())[0].numpy()
    assert features.shape == (3, 2048)
    assert features == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_fid_and_kid_are_distances_of_those_features(resources, inception, pairs):
    clouds = inception(pairs.originals), inception(pairs.reconstructions)
    resources = replace(resources)  # one run: FID and KID share what they look at
    frechet, kid = (metric.prepare(resources)(pairs) for metric in (Fid(), Kid()))
    assert kid.standard_error is None  # of three pictures
    assert frechet.values == pytest.approx([cloud_distance(*clouds)], rel=1e-4)
    assert "3 images for 2048 feature dimensions" in frechet.notes[0]
    assert kid.values == pytest.approx([kernel_distance(*clouds).value], rel=1e-4)


def test_originals_that_sets_share_are_looked_at_once(pairs):
    asked = []

    def features(images):
        asked.append(len(images))
        return images.flatten(1).double().numpy()

    of = remembered(features, most=3)
    first = of(pairs.originals)
    assert of(pairs.originals.clone()) is first
    assert asked == [3]
    assert np.array_equal(of(pairs.reconstructions), features(pairs.reconstructions))
    assert np.array_equal(of(pairs.originals), first)  # another set came between
    assert of(pairs.originals.view(3, 3, 4, 16)).shape == (3, 192)  # same bytes, other images
    assert len(asked) == 5


def test_answers_are_kept_while_there_is_room(pairs):
    asked = []
    of = remembered(lambda images: asked.append(1) or images.flatten(1).double().numpy(), most=6)
    third = pairs.originals / 2
    for images in (pairs.originals, pairs.reconstructions, pairs.originals):
        of(images)
    assert len(asked) == 2
    for images in (third, pairs.originals):  # what was asked for longest ago has gone
        of(images)
    assert len(asked) == 3
    of(pairs.reconstructions)
    assert len(asked) == 4
    tight = remembered(lambda images: images.flatten(1).double().numpy(), most=0)
    assert tight(third) is tight(third)  # the last one is always kept


def test_fid_and_kid_share_one_inception_and_say_what_each_says_alone(
    resources, pairs, monkeypatch
):
    loaded = []

    def pretend(path, device):
        loaded.append(path)
        return lambda images: images.flatten(1).double().numpy()

    monkeypatch.setattr("semsim.metrics.inception.inception_features", pretend)
    alone = [metric.prepare(replace(resources))(pairs) for metric in (Fid(), Kid())]
    assert len(loaded) == 2
    run = replace(resources)
    for metric, before in zip((Fid(), Kid()), alone, strict=True):
        now = metric.prepare(run)(pairs)
        assert np.array_equal(now.values, before.values)
        assert now.standard_error == before.standard_error
    assert len(loaded) == 3
    Fid().prepare(replace(run))  # of another run, which keeps nothing of this one
    assert len(loaded) == 4
    assert replace(run) == run


@pytest.mark.parametrize("metric", [Fid, Kid])
def test_the_judge_looks_at_shared_originals_once(metric, resources, pairs, monkeypatch):
    seen = []

    def pretend(path, device):
        return lambda images: seen.append(images) or images.flatten(1).double().numpy()

    monkeypatch.setattr("semsim.metrics.inception.inception_features", pretend)
    judge = metric().prepare(replace(resources))
    for noise in (0.0, 0.5):
        other = Pairs(originals=pairs.originals, reconstructions=pairs.reconstructions * noise)
        judge(other)
    assert len(seen) == 3


def test_a_file_without_inception_is_refused(tmp_path):
    torch.save({"conv.weight": torch.zeros(1)}, tmp_path / "x.pth")
    with pytest.raises(WeightsError, match="does not hold Inception"):
        inception_features(tmp_path / "x.pth", torch.device("cpu"))


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.integers(2, 10))
def test_a_cloud_is_not_above_zero_from_itself_nor_is_one_side_another_than_the_other(seed, n):
    x, y = np.random.default_rng(seed).normal(size=(2, n, 4))
    assert kernel_distance(x, x).value <= 0
    there, back = kernel_distance(x, y), kernel_distance(y, x)
    assert there.value == pytest.approx(back.value, rel=1e-9, abs=1e-9)


def test_unbiased_around_zero_and_far_from_it_for_another_distribution():
    draw = np.random.default_rng(0)
    same = [
        kernel_distance(draw.normal(size=(20, 4)), draw.normal(size=(20, 4))) for _ in range(300)
    ]
    values = np.array([found.value for found in same])
    # 4 standard errors of the mean over 300 repetitions; a biased estimate would sit 0.4 above
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(300)
    other = kernel_distance(draw.normal(size=(20, 4)), draw.normal(2.0, size=(20, 4)))
    assert other.value > 5 * other.standard_error


def test_the_standard_error_is_the_spread_over_repetitions():
    draw = np.random.default_rng(1)
    found = [
        kernel_distance(draw.normal(size=(60, 3)), draw.normal(1.0, size=(60, 3)))
        for _ in range(200)
    ]
    spread = np.std([one.value for one in found])
    typical = np.median([one.standard_error for one in found])
    assert typical == pytest.approx(spread, rel=0.25)  # 200 repetitions know a spread to 10%


def test_five_images_have_a_value_but_no_error():
    found = kernel_distance(np.arange(5.0)[:, None], np.arange(5.0)[:, None] + 2)
    assert found.standard_error is None


def test_unequal_counts_are_refused():
    with pytest.raises(DataError, match="equal counts"):
        kernel_distance(np.zeros((3, 2)), np.zeros((2, 2)))


def test_a_cloud_that_moves_away_is_farther():
    rng = np.random.default_rng(3)
    cloud, other = rng.normal(size=(2, 40, 5))
    distances = [kernel_distance(cloud, other + shift).value for shift in (0.0, 0.5, 1.0, 2.0)]
    assert distances == sorted(distances)
    assert distances[0] < 0.2 < distances[-1]
