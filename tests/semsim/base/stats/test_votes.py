import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_votes import said, table_of

from semsim.base.stats.votes import majority

TABLES = arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.sampled_from([0, 0.5, 1, np.nan]),
)


@given(TABLES, st.data())
def test_votes_are_a_table_without_its_empty_cells(table, data):
    """Sums, counts and means of all annotators and of some are those of the table."""
    chosen = np.array(
        data.draw(st.lists(st.booleans(), min_size=table.shape[1], max_size=table.shape[1]))
    )
    for votes, dense in ((said(table), table), (said(table).by(chosen), table[:, chosen])):
        counts = (~np.isnan(dense)).sum(axis=1)
        np.testing.assert_array_equal(votes.counts, counts)
        np.testing.assert_array_equal(votes.totals, np.nansum(dense, axis=1))
        means = [
            np.mean(row[~np.isnan(row)]) if n else np.nan
            for row, n in zip(dense, counts, strict=True)
        ]
        np.testing.assert_allclose(votes.means, means)
        assert len(votes) == counts.sum()


@given(TABLES)
def test_votes_in_step_may_say_something_else(table):
    votes = said(table)
    np.testing.assert_array_equal(table_of(votes), table)
    np.testing.assert_array_equal(table_of(votes.of(votes.values + 1)), table + 1)


def test_a_vote_may_say_nothing_of_one_thing():
    votes = said([[1, 0], [1, np.nan]])
    named = votes.of([np.nan, 1, np.nan])
    assert named.counts.tolist() == [1, 0]
    assert named.totals.tolist() == [1, 0]
    np.testing.assert_array_equal(named.means, [1, np.nan])
    assert (len(votes), len(named)) == (3, 1)


@pytest.mark.parametrize(
    ("yes", "no", "k", "verdict"),
    [
        (3, 2, 5, True), (2, 3, 5, False), (3, 0, 5, True), (0, 3, 5, False), (2, 2, 5, None),
        (0, 0, 5, None), (2, 2, 4, None), (3, 1, 4, True), (1, 3, 4, False), (1, 0, 1, True),
        (0, 1, 1, False), (1, 1, 2, None), (2, 0, 2, True), (1, 0, 2, None),
        (3, 3, 5, None), (4, 2, 5, True), (2, 4, 5, False), (2, 2, 3, None),
    ],
)  # fmt: skip
def test_majority(yes, no, k, verdict):
    (got,) = majority(np.array([yes]), np.array([yes + no]), k)
    assert (None if np.isnan(got) else bool(got)) == verdict
