import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.defences.gradient_pruning import GradientPruning


def test_the_smallest_of_each_layer_become_zero():
    large, small = torch.tensor([[-9.0, 1, -2, 3, 4]]), torch.tensor([0.05, -0.01, 0.03, -0.02])
    first, second = GradientPruning(rate=0.5).gradients((large, small), torch.Generator(), "train")
    assert first.tolist() == [[-9, 0, 0, 3, 4]]
    assert torch.equal(second, torch.tensor([0.05, 0, 0.03, 0]))


def test_seventy_percent_are_cut():
    gradient = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    (pruned,) = GradientPruning().gradients((gradient,), torch.Generator(), "attack")
    assert (pruned == 0).sum() == 700
    assert pruned.abs().sort().values[700:].equal(gradient.abs().sort().values[700:])


@pytest.mark.parametrize(("n", "cut"), [(90, 63), (170, 119), (180, 126), (330, 231), (25, 17)])
def test_as_many_are_cut_as_by_the_authors(n, cut):
    """`int(n * 70 * 0.01)` in their program; 0.7 * 90 is a little below 63 in binary."""
    (pruned,) = GradientPruning(rate=0.7).gradients(
        (torch.arange(1.0, n + 1),), torch.Generator(), "train"
    )
    assert (pruned == 0).sum() == cut


def test_equal_entries_are_not_cut_at_random():
    same = torch.ones(6)
    (pruned,) = GradientPruning(rate=0.5).gradients((same,), torch.Generator(), "train")
    assert torch.equal(pruned, same)


@pytest.mark.parametrize("settings", [{"rate": 1.0}, {"rate": -0.1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(SettingsError, match="got"):
        GradientPruning(**settings)


def test_nothing_cut_is_the_identity(is_identity):
    assert is_identity(GradientPruning(rate=0.0))
