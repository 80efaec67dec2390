import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.attacks.observe import assigned


def pictures(count, seed=0):
    return torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=30)
@given(st.permutations(range(6)), st.floats(0, 0.2))
def test_it_undoes_a_shuffle_under_noise(order, noise):
    originals = pictures(6)
    found = originals[list(order)] + noise * pictures(6, seed=1)
    places = assigned(found, originals)
    assert [order[place] for place in places] == list(range(6))


def test_it_is_a_permutation_even_where_all_are_nearest_to_one():
    found = pictures(1).expand(4, 3, 6, 6) + 0.01 * pictures(4, seed=2)
    assert sorted(assigned(found, pictures(4))) == [0, 1, 2, 3]


def test_the_sum_counts_not_the_first_come():
    """The first original is nearest to both; the sum is least where it leaves the other's alone."""
    originals = torch.tensor([0.4, 0.0]).view(2, 1, 1, 1)
    found = torch.tensor([0.3, 0.9]).view(2, 1, 1, 1)
    assert assigned(found, originals) == [1, 0]


def test_where_fewer_are_found_the_others_have_none():
    originals = pictures(4)
    assert assigned(originals[[3, 1]], originals) == [-1, 1, -1, 0]
