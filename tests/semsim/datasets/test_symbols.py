import pytest
import torch

from semsim.datasets import symbols
from semsim.datasets.symbols import GLYPHS, Symbols


@pytest.fixture(scope="module")
def test_split():
    return Symbols(train_per_class=2, test_per_class=2)("test")


@pytest.fixture
def afresh(test_split):
    """Nothing that was drawn before is given again."""
    for kept in (symbols._drawn, symbols._picture):
        kept.cache_clear()


def test_has_at_least_forty_classes_in_equal_number(test_split):
    assert len(test_split.classes) >= 40
    assert torch.bincount(test_split.labels).tolist() == [2] * len(test_split.classes)


def test_same_seed_same_images_other_seed_other_images(test_split, afresh):
    again = Symbols(train_per_class=2, test_per_class=2)("test")
    other = Symbols(train_per_class=2, test_per_class=2, seed=1)("test")
    assert torch.equal(again.images, test_split.images)
    assert not torch.equal(other.images, test_split.images)


def test_an_image_does_not_depend_on_how_many_are_drawn(test_split, afresh):
    more = Symbols(test_per_class=5)("test")
    assert torch.equal(more.images[5], test_split.images[2])  # first image of the second class


def test_train_and_test_share_no_image(test_split):
    train = Symbols(train_per_class=2, test_per_class=2)("train")
    distances = torch.cdist(train.images.flatten(1), test_split.images.flatten(1))
    assert distances.min() > 0.5
    assert not set(train.ids) & set(test_split.ids)


def test_no_two_classes_are_drawn_alike():
    assert len(set(GLYPHS.values())) == len(GLYPHS)
