"""One rule of the majority in both halves, which meet in files only.

Votes go through the store and its exports to everything that says what the majority says: the
labels and rates of the human study, Compare, an import of the exported file, and the triplets that
SemSim learns from. All must say the same of every count of votes a study can come to.
"""

import numpy as np
import pandas as pd
import pytest
from contracts.store_invariants import make_study
from study_factory import START, answer_to, fresh_database

from annotation.domain import VoteStatus
from annotation.formats.plain import write_csv
from annotation.spec import Task
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from annotation.votes.aggregate import ballots_of, summary_table
from annotation.votes.rates import rate_table
from semsim.base.columns import SCORE_COLUMNS
from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import human_score
from semsim.importers.table import Table
from semsim.learning.triplets import Inventory, take_stock

NO_SCORES = pd.DataFrame(columns=list(SCORE_COLUMNS))
SAID = {True: "same", False: "different"}


def counts_of(k):
    """Every (votes that recognise, votes that do not) of an item that is to get `k` votes.

    An odd k above 1 allows an extra vote, for items that are split as evenly as can be.
    """
    within = [(yes, n - yes) for n in range(k + 1) for yes in range(n + 1)]
    extra = [(k // 2 + more, k // 2 + 2 - more) for more in range(3)] if k > 1 and k % 2 else []
    return within + extra


def answers(yes, no):
    """Yes and no by turns, the rarer one first: split after K votes wherever the counts can be."""
    rare = yes < no
    turns = [rare, not rare] * min(yes, no)
    return [*turns, *[not rare] * abs(yes - no)]


def decided(yes, no, k):
    """By hand: True, False or None; more than half of K votes, or of all where there are more."""
    half = max(k, yes + no) / 2
    return True if yes > half else False if no > half else None


def collect(store, folder, k):
    """A study of which image i has got the i-th of `counts_of(k)`, with its tables."""
    wanted = [answers(*counts) for counts in counts_of(k)]
    study = make_study(store, len(wanted), Task.PAIR, votes_per_item=k, extra_vote=k % 2 == 1)
    stimuli = read_study(store, study.id, folder).stimuli
    image_of = dict(zip(stimuli["item"], stimuli["image_id"].astype(int), strict=True))
    for turn in range(max(map(len, wanted))):
        person = join(store, study.token, f"p{turn}").annotator
        for item in next_items(store, person, "tab", 2 * len(wanted), START):
            said = wanted[image_of[item.item]]
            if turn < len(said):
                answer = answer_to(item.item, SAID[said[turn]])
                assert vote(store, person, answer, START).status is VoteStatus.COUNTED
    return read_study(store, study.id, folder)


@pytest.fixture(params=range(1, 6))
def collected(request, tmp_path):
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        yield request.param, collect(store, tmp_path, request.param)


def by_image(images, verdicts):
    """{image: True, False or None}."""
    values = pd.Series(list(verdicts), dtype="object")
    named = [None if pd.isna(one) else bool(one) for one in values]
    return dict(zip((int(image) for image in images), named, strict=True))


def of_triplets(inventory: Inventory):
    """{image: True, False or None} as the originals of `inventory` have it; one model made them."""
    found = {}
    for part, verdict in (
        (inventory.only_recognisable, True),
        (inventory.only_unrecognisable, False),
        (inventory.undecided, None),
    ):
        found |= {int(original.image_id): verdict for original in part}
    assert len(found) == inventory.n_originals
    return found


def test_both_halves_say_the_same_of_all_counts_of_votes(collected, tmp_path):
    k, data = collected
    expected = {i: decided(*counts, k) for i, counts in enumerate(counts_of(k))}
    labels = data.labels
    against = labels["n_votes"] - labels["n_recognised"]
    came = list(zip(labels["n_recognised"], against, strict=True))
    assert came == [counts_of(k)[int(image)] for image in labels["image_id"]]
    assert by_image(labels["image_id"], labels["recognisable"]) == expected

    voted = {image: verdict for image, verdict in expected.items() if sum(counts_of(k)[image])}
    ballots = ballots_of(data.votes, np.random.default_rng(0), bootstraps=9)
    summary = summary_table(ballots, k)
    assert by_image(summary["image_id"], summary["recognisable"]) == voted
    (rates,) = rate_table(ballots, k).to_dict("records")
    verdicts = [verdict for verdict in voted.values() if verdict is not None]
    assert rates["n_decided"] == len(verdicts)
    assert rates["rate"] == pytest.approx(np.mean(verdicts))

    compared = gather(data.votes, NO_SCORES, (), labels=labels)
    majority = human_score(compared, "majority")
    assert by_image(compared.images["image_id"], majority) == expected
    alone = gather(data.votes, NO_SCORES, ())
    assert by_image(alone.images["image_id"], human_score(alone, "majority")) == voted

    assert of_triplets(take_stock(labels)) == expected
    write_csv(data.votes, tmp_path / "votes.csv")
    imported = Table()(tmp_path / "votes.csv", "again")
    assert imported.unread == ()
    again = imported.tables.labels
    assert by_image(again["image_id"], again["recognisable"]) == voted
    pictures = again.assign(original="o-" + again["image_id"], reconstruction=again["item"])
    assert of_triplets(take_stock(pictures)) == voted
