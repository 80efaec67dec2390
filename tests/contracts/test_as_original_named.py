"""One rule of the original's name in both halves, which meet in files only.

People name reconstructions and originals. What the labels and rates of the human study, Compare, an
import of the exported file and the triplets say must be the rule worked out by hand: an answer
counts where it is what most votes on the original say.
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from contracts.store_invariants import make_study
from contracts.test_majority import NO_SCORES, by_image, of_triplets
from study_factory import CLASSES, START, answer_to, fresh_database

from annotation.domain import StimulusKind
from annotation.errors import StudyError
from annotation.formats.plain import write_csv
from annotation.spec import HeadlineRule, StudySpec, Task
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from annotation.study.participants import preview_exclusion
from annotation.tasks.kind import NONE
from annotation.votes.aggregate import ballots_of, summary_table
from annotation.votes.rates import rate_table
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import human_score, rules_of
from semsim.importers.table import Table
from semsim.learning.triplets import take_stock
from semsim.metrics import find_metric

K = 4
# True, wrong or no class, by turns.
SAID = ("TTTT", "WWWW", "TTTN", "TTWW", "WWWN", "NNNN", "TWNN", "TT", "TTT")
CASES = [(o, r) for o, r in product(SAID, SAID) if len(o) == len(r)]


def word(image, letter):
    """What is answered: the image's class, the next one, or none."""
    at = image % len(CLASSES)
    return {"T": CLASSES[at], "W": CLASSES[(at + 1) % len(CLASSES)], "N": NONE}[letter]


def name_of(said):
    """By hand: the letter of the class that more than half of K votes give, or None."""
    most, n = Counter(said).most_common(1)[0]
    return most if n > K / 2 and most != "N" else None


def decided(case):
    original, shown = case
    name = name_of(original)
    if name is None:
        return None
    yes = shown.count(name)
    return True if yes > K / 2 else False if len(shown) - yes > K / 2 else None


EXPECTED = {image: decided(case) for image, case in enumerate(CASES)}


@pytest.fixture
def collected(tmp_path):
    """The study of all `CASES`, answered, with its tables."""
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        study = make_study(
            store,
            len(CASES),
            Task.RECOGNITION,
            votes_per_item=K,
            label_originals=True,
            headline="as-original-named",
            repeat_rate=0.0,
        )
        stimuli = read_study(store, study.id, tmp_path).stimuli.set_index("item")
        for turn in range(K):
            person = join(store, study.token, f"p{turn}").annotator
            while items := next_items(store, person, "tab", 400, START):
                answered = 0
                for item in items:
                    row = stimuli.loc[item.item]
                    image = int(row["image_id"])
                    said = CASES[image][row["kind"] != StimulusKind.ORIGINAL]
                    if turn < len(said):
                        vote(store, person, answer_to(item.item, word(image, said[turn])), START)
                        answered += 1
                if not answered:
                    break
        yield store, study, read_study(store, study.id, tmp_path)


def test_cases_cover_all_that_can_come():
    assert set(EXPECTED.values()) == {True, False, None}
    wrongly_named = [c for c in CASES if name_of(c[0]) == "W"]
    assert {decided(case) for case in wrongly_named} == {True, False, None}


def test_both_halves_say_the_same(collected, tmp_path):
    _, _, data = collected
    labels, votes = data.labels, data.votes
    assert by_image(labels["image_id"], labels["recognisable"]) == EXPECTED
    named = labels[labels["mean_response"].notna()]
    assert set(named["image_id"].astype(int)) == {
        image for image, (original, _) in enumerate(CASES) if name_of(original)
    }

    ballots = ballots_of(votes, np.random.default_rng(0), bootstraps=9)
    summary = summary_table(ballots, K)
    assert by_image(summary["image_id"], summary["recognisable"]) == EXPECTED
    (rates,) = rate_table(ballots, K).to_dict("records")
    verdicts = [verdict for verdict in EXPECTED.values() if verdict is not None]
    assert rates["n_decided"] == len(verdicts)
    assert rates["rate"] == pytest.approx(np.mean(verdicts))
    assert rates["mean_response"] == pytest.approx(named["mean_response"].mean())

    compared = gather(votes, NO_SCORES, (), labels=labels)
    assert "as-original-named" in rules_of(compared)
    score = human_score(compared, "as-original-named")
    assert by_image(compared.images["image_id"], score) == EXPECTED
    assert by_image(compared.images["image_id"], human_score(compared, "majority")) != EXPECTED

    scores = votes.assign(metric="psnr", value=1.0).drop_duplicates("image_id")
    settings = AnalysisSettings(headline="as-original-named", bootstraps=2, permutations=2)
    psnr = find_metric("psnr").spec
    analysis = analyse(gather(votes, scores, [psnr], labels=labels), [psnr], settings)
    beside = analysis.disagreement.merge(
        analysis.evidence.images["image_id"], left_on="row", right_index=True
    )
    said = labels.dropna(subset=["mean_response"])
    shares = [
        dict(zip(t["image_id"], t[c], strict=True))
        for t, c in ((said, "mean_response"), (beside, "human"))
    ]
    assert shares[0] == shares[1]

    assert of_triplets(take_stock(labels)) == EXPECTED
    unnamed = {str(image) for image, (original, _) in enumerate(CASES) if not name_of(original)}
    stock = take_stock(labels)
    parts = (stock.only_recognisable, stock.only_unrecognisable, stock.undecided)
    assert all(not one.shares for part in parts for one in part if one.image_id in unnamed)
    assert any(one.shares for one in stock.undecided)

    write_csv(votes, tmp_path / "votes.csv")
    again = Table()(tmp_path / "votes.csv", "again").tables.labels
    assert by_image(again["image_id"], again["recognisable"]) == EXPECTED
    both = labels.merge(again, on="image_id", suffixes=("", "_again"))
    assert (both["n_recognised"] == both["n_recognised_again"]).all()


def test_who_is_excluded_takes_their_names_of_originals_along(collected, tmp_path):
    store, study, data = collected
    effect = preview_exclusion(store, study.id, "p0", tmp_path)
    # By hand: the first answer of each case is gone, of the original as of the reconstruction.
    left = {image: decided((o[1:], r[1:])) for image, (o, r) in enumerate(CASES)}
    lost = [image for image in left if EXPECTED[image] is not None and left[image] is None]
    assert effect.n_undecided == len(lost) > 0
    assert effect.n_flipped == 0
    assert data.votes["original_answer"].notna().any()


def test_the_rule_needs_originals_that_are_named():
    with pytest.raises(StudyError, match="let them name the originals too"):
        StudySpec(name="s", task="recognition", headline="as-original-named")
    with pytest.raises(StudyError, match="none of the task pair"):
        StudySpec(name="s", task="pair", headline=HeadlineRule.AS_ORIGINAL_NAMED)
