"""What is said of a study's lists: whether words are random, and what they tell."""

from study_factory import write_set

from annotation.design.candidates import RANDOM_LISTS, CandidateList, list_facts
from annotation.formats.card import card
from annotation.spec import StudySpec
from annotation.study import exports
from annotation.study.create import create_study, examine
from annotation.ui.study_view import versions_table


def made(words, true_position=0, true_rank=1):
    return CandidateList(
        classes=tuple(words), true_position=true_position, true_rank=true_rank, forced=False
    )


def test_random_words_are_said_first_and_counted():
    facts = list_facts([made("abx"), made("bcx", true_rank=None), made("cax", 1, None)])
    assert facts.said[0] == f"{RANDOM_LISTS} (2 of 3 lists.)"
    assert "(chance 33.3%)" in facts.said[1]


def test_nothing_is_random_where_a_judge_ranked_all_or_all_words_are_on_all_lists():
    assert list_facts([made("abx"), made("bcx")]).n_random == 0
    assert list_facts([made("abc", true_rank=None), made("abc", 1, None)]).n_random == 0
    assert list_facts([made("abc", true_rank=None)]).n_random == 1


def test_the_best_guesser_is_of_those_who_see_lists_only():
    facts = list_facts([made("axy"), made("bxy"), made("cxy")])
    assert (facts.most.name, facts.most.rate) == ("rarest", 1)
    assert "Warning" in facts.said[-1]


def test_a_task_without_lists_has_nothing_to_say():
    assert list_facts([]) is None


def test_a_stored_study_says_of_its_lists_what_its_plan_said(store, images, tmp_path):
    spec = StudySpec(name="s", task="recognition", list_size=4)
    folder = write_set(tmp_path / "set")
    planned = examine(spec, [folder])
    study = create_study(store, spec, [folder], images)
    said = exports.facts_of_lists(store, study.id).said
    assert said == planned.notes
    assert f"- Candidate lists: {' '.join(said)}" in card(
        exports.read_study(store, study.id, images), ""
    )
    assert said[-1] in versions_table([], said)
