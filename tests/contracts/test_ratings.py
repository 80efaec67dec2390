"""Ratings on their whole way: from keys through every export to Compare, and back by an import."""

import json
import uuid
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from made_results import results_of
from made_tables import read_typed
from scipy import stats
from study_factory import fresh_database, small_study

from annotation import formats
from annotation.domain import Answer, VoteStatus
from annotation.errors import StudyError
from annotation.formats import What
from annotation.formats.plain import write_csv
from annotation.spec import Task
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from annotation.study.simulate import simulate
from annotation.ui import results as results_page
from annotation.ui import results_view
from semsim.base.columns import SCORE_COLUMNS
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import human_score, rules_of, verdict
from semsim.importers.table import Table
from semsim.metrics import find_metric
from semsim.reporting.methods import Origin
from semsim.reporting.report import report_html

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_SCORES = pd.DataFrame(columns=list(SCORE_COLUMNS))
LEVELS, THRESHOLD, K = 5, 2.75, 3
PEOPLE = ("Anna", "Ben", "Cleo")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Eight reconstructions with three, two, one or no ratings of 1 to 5."""
    folder = tmp_path_factory.mktemp("rated")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        study = small_study(
            store,
            folder,
            task=Task.RATING,
            votes_per_item=K,
            rating_levels=LEVELS,
            rating_threshold=THRESHOLD,
        )
        known = read_study(store, study.id, folder / "images").stimuli["item"]
        place = {item: number for number, item in enumerate(known)}
        wanted = [(5, 5, 5), (5, 5, 1), (3, 3, 2), (5, 2, 1), (4, 1, 1), (1, 2, 2), (4, 4), (1,)]
        for turn, name in enumerate(PEOPLE):
            person = join(store, study.token, name).annotator
            for item in next_items(store, person, "tab", 100, NOW):
                given = wanted[place[item.item]]
                if turn < len(given):
                    said = Answer(id=str(uuid.uuid4()), item=item.item, answer=str(given[turn]))
                    assert vote(store, person, said, NOW).status is VoteStatus.COUNTED
        yield read_study(store, study.id, folder / "images")


def by_image(table, values):
    keys = table["model"] + "/" + table["image_id"].astype(str)
    named = [None if pd.isna(one) else bool(one) for one in pd.Series(list(values), dtype=object)]
    return dict(zip(keys, named, strict=True))


def expected(votes):
    """By hand: whether the mean is at least the threshold, whatever missing votes would say."""
    found = {}
    for (model, image), part in votes.groupby(["model", "image_id"]):
        said = part["answer"].astype(int)
        low, high = (said.sum() + (K - len(said)) * end for end in (1, LEVELS))
        sure = low >= THRESHOLD * K, high >= THRESHOLD * K
        found[f"{model}/{image}"] = bool(sure[0]) if sure[0] == sure[1] else None
    return found


def test_both_halves_give_one_verdict(data, tmp_path):
    hand = expected(data.votes)
    assert {True, False, None} == set(hand.values())
    labels = data.labels
    assert by_image(labels, labels["recognisable"]) == hand
    compared = gather(data.votes, NO_SCORES, (), labels=labels)
    assert by_image(compared.images, human_score(compared, "majority")) == hand
    assert by_image(compared.images, verdict(compared, "mean-rating")) == hand
    rating = data.votes.astype({"answer": float}).groupby(["model", "image_id"])["answer"].mean()
    score = compared.images.assign(human=human_score(compared, "mean-rating"))
    score = score.set_index(["model", "image_id"])["human"]
    np.testing.assert_allclose(score[rating.index], (rating - 1) / (LEVELS - 1))
    shown = labels.set_index(["model", "image_id"])["mean_rating"]
    np.testing.assert_allclose(shown[rating.index], rating)
    assert rules_of(compared)[0] == "mean-rating"

    write_csv(data.votes, tmp_path / "votes.csv")
    imported = Table()(tmp_path / "votes.csv", "again")
    assert imported.unread == ()
    again = imported.tables
    assert again.headline == "mean-rating"
    assert by_image(again.labels, again.labels["recognisable"]) == hand
    assert list(again.votes) == list(data.votes)
    np.testing.assert_allclose(
        again.labels.set_index(["model", "image_id"])["mean_rating"][rating.index], rating
    )


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("what", list(What))
def test_tables_hold_the_ratings_and_their_scale(data, tmp_path, ending, what):
    out = tmp_path / f"table{ending}"
    formats.export(data, out, what=what)
    table = getattr(data, what.value)
    read = read_typed(out, {name: str(kind) for name, kind in table.dtypes.items()})
    pd.testing.assert_frame_equal(read[list(table)], table)
    if what is What.VOTES:
        assert (read["rating_levels"] == LEVELS).all()
        assert (read["rating_threshold"] == THRESHOLD).all()
        assert set(read["answer"]) <= set("12345")
    else:
        assert read["mean_rating"].notna().all()


def test_folders_and_crowd_tables_hold_them_too(data, tmp_path):
    formats.export(data, tmp_path / "crowd.csv", "crowd-kit")
    crowd = pd.read_csv(tmp_path / "crowd.csv", dtype=str)
    assert sorted(crowd["label"]) == sorted(data.counted["answer"])
    formats.export(data, tmp_path / "hf", "hf")
    rows = [json.loads(line) for line in (tmp_path / "hf/train/metadata.jsonl").open()]
    assert sorted(row["mean_rating"] for row in rows) == sorted(data.labels["mean_rating"])
    card = (tmp_path / "hf/README.md").read_text()
    assert "rated from 1 (Nothing of it) to 5 (All of it)" in card
    assert "Recognisable by mean rating" in card
    formats.export(data, tmp_path / "ls", "label-studio")
    tasks = json.loads((tmp_path / "ls/tasks.json").read_text())
    for task in tasks:
        assert [one["value"] for one in task["data"]["choices"]] == list("12345")
        assert {"image", "original"} <= set(task["data"])
    given = [a["result"][0]["value"]["choices"] for t in tasks for a in t["annotations"]]
    assert sorted(one for (one,) in given) == sorted(data.counted["answer"])
    for form in ("triplets", "train-with-ori"):
        formats.export(data, tmp_path / form, form)


def test_results_show_the_mean_its_distribution_and_agreement(data):
    results = results_of(data.study, data.votes)
    rates, agreement = results_view.rates(results), results_view.agreement(results)
    assert "Mean rating recognised" in rates
    assert "recognised from a mean rating of 2.75 on" in rates
    assert "Krippendorff&#39;s ordinal α" in agreement
    assert "mean weighted κ" in agreement
    answers = results_view.confusions(results)
    assert "Ratings by target model" in answers
    assert ">all</th>" in answers
    assert "no repeat has been answered yet" in results_page.repeats(results)
    drawn = results_page.share(results)
    assert "Mean rating" in drawn
    for mean in results.rates["mean_rating"]:
        assert f"{mean:.2f}" in drawn


@pytest.fixture(scope="module")
def analysis(data):
    draw = np.random.default_rng(0)
    labels = data.labels
    noise = draw.normal(0, 0.1, len(labels))
    scores = labels[["dataset", "attack", "model", "image_id"]].assign(
        metric="ssim", value=labels["mean_rating"] + noise
    )
    spec = find_metric("ssim").spec
    evidence = gather(data.votes, scores, (spec,), labels=labels)
    settings = AnalysisSettings(headline="mean-rating", bootstraps=50, permutations=50)
    return analyse(evidence, (spec,), settings)


def test_compare_correlates_images_and_models_with_the_mean_rating(analysis):
    evidence = analysis.evidence
    human = human_score(evidence, "mean-rating")
    pooled = analysis.auc.set_index("scope").loc["pooled"]
    rho = stats.spearmanr(evidence.scores["ssim"], human).statistic
    assert pooled["rho"] == pytest.approx(rho, abs=1e-12)
    assert pooled[["rho_low", "rho_high"]].isna().all()  # four originals tell no spread
    yes = verdict(evidence, "mean-rating")
    assert (pooled["n_positive"], pooled["n_negative"]) == ((yes == 1).sum(), (yes == 0).sum())
    means = evidence.images.assign(human=human).groupby("model")["human"].mean()
    models = analysis.models.set_index("model")["human"]
    np.testing.assert_allclose(models[means.index], means)


def test_the_report_says_it_in_sentences(analysis):
    text = " ".join(report_html(analysis, Origin(protocol="mean-rating")).split())
    assert "votes are ratings of how much of the original can be made out, from 1 to 5" in text
    assert "at or above the threshold" in text
    assert "mean rating, 0 the lowest and 1 the highest" in text
    assert "ρ with the mean rating" in text
    assert "of the votes recognise it" not in text


def test_a_study_without_ratings_can_be_compared(data):
    evidence = gather(data.votes.iloc[:0], NO_SCORES, (), labels=data.labels)
    assert np.isnan(human_score(evidence, "mean-rating")).all()
    assert np.isnan(human_score(evidence, "majority")).all()


def test_programs_do_not_rate(tmp_path):
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        with pytest.raises(StudyError, match="--task recognition"):
            small_study(store, tmp_path, task=Task.RATING, simulated=True)
        study = small_study(store, tmp_path, "s", task=Task.RATING)
        with pytest.raises(StudyError, match="answered by people"):
            simulate(store, study.id)
