"""Votes of others as a study: what their table says becomes its protocol."""

import pytest
from made_ballots import random_votes, table, vote
from made_results import write_import

from annotation.domain import StudyStatus
from annotation.errors import NotFoundError
from annotation.spec import HeadlineRule, Task
from annotation.study import imported
from annotation.study.imported import Brought
from annotation.tasks.kind import Scale


def brought(votes, name="Paper") -> Brought:
    return Brought(name=name, votes=votes, state=10**18)


def test_a_table_of_votes_is_a_closed_study():
    study = imported.study_of("import:paper", brought(random_votes()))
    assert (study.id, study.name, study.task) == ("import:paper", "Paper", Task.RECOGNITION)
    assert study.status is StudyStatus.CLOSED
    assert study.models == ("m0", "m1", "m2")
    assert (study.n_items, study.n_reconstructions, study.spec.votes_per_item) == (60, 60, 5)
    assert not study.spec.simulated


def test_decoys_are_no_reconstructions_and_marks_are_kept():
    rows = [vote("m/1", "Al", "same"), vote("m/2", "Al", "same", kind="decoy")]
    votes = table(rows).assign(task="pair", simulated=True)
    study = imported.study_of("import:p", brought(votes))
    assert (study.task, study.n_decoys, study.n_reconstructions) == (Task.PAIR, 1, 1)
    assert study.spec.simulated


@pytest.mark.parametrize("told", ["naming", "rating", ""])
def test_a_task_that_nobody_knows_is_the_usual_one(told):
    study = imported.study_of("import:p", brought(random_votes().assign(task=told)))
    assert study.task is Task.RECOGNITION


def test_numbers_are_ratings():
    votes = random_votes().assign(answer="3", task="recognition", headline="mean-rating")
    study = imported.study_of(
        "import:p", brought(votes.assign(rating_levels=5, rating_threshold=2.5))
    )
    assert study.task is Task.RATING
    assert study.kind.scale.levels == 5
    assert study.spec.headline is HeadlineRule.MEAN_RATING


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"votes_per_item": 150}, lambda spec: spec.votes_per_item == 150),
        (
            {"answer": "6", "rating_levels": 7, "rating_threshold": 4.5},
            lambda spec: spec.kind.scale == Scale(levels=7, threshold=4.5),
        ),
    ],
    ids=["many votes", "a longer scale"],
)
def test_what_no_study_here_asks_for_may_have_been_asked_elsewhere(told, said):
    assert said(imported.study_of("import:p", brought(random_votes().assign(**told))).spec)


def test_names_of_originals_and_nothing_at_all():
    votes = random_votes().assign(headline="as-original-named")
    assert imported.study_of("i", brought(votes)).spec.headline is HeadlineRule.AS_ORIGINAL_NAMED
    assert imported.study_of("i", brought(votes.head(0))).n_items == 0


def test_imports_are_found_by_their_id_and_trouble_is_ours(tmp_path):
    imports = write_import(tmp_path, random_votes())
    assert imported.choices(imports) == {"import:paper": ("Paper", "votes")}
    assert imported.find(imports, "import:paper").name == "Paper"
    with pytest.raises(NotFoundError, match="There is no import 'other'"):
        imported.find(imports, "import:other")
    with pytest.raises(NotFoundError):
        imported.find([tmp_path / "nowhere"], "import:paper")
