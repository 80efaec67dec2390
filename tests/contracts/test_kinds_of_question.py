"""Every kind of question keeps its promises from a study to its labels; a new one needs no edit."""

from functools import partial

import pytest
from study_factory import fresh_database, joined, let_answer, questions_for, small_study

from annotation.domain import Answer
from annotation.errors import AnswerError
from annotation.spec import Task
from annotation.store import Store
from annotation.store.voting import check_answer
from annotation.tasks import KINDS


def clearly(kind, stimulus):
    """The answer of a person who sees all there is to be seen."""
    return kind.expected(stimulus["class_name"], differs=False)


@pytest.fixture(scope="module", params=KINDS)
def asked(request, tmp_path_factory):
    """A kind, the questions on its instructions, and a study in which two of three recognise."""
    folder = tmp_path_factory.mktemp(request.param)
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        study = small_study(store, folder, task=Task(request.param), votes_per_item=3)
        (first,) = joined(store, study, "Anna")
        yield (
            study.spec.kind,
            questions_for(store, first),
            let_answer(
                store,
                folder / "images",
                study,
                partial(clearly, study.spec.kind),
                ("Ben", "Cleo"),
            ),
        )


def test_keys_and_answers_are_one_to_one(asked):
    kind, _, _ = asked
    codes = [key.code for key in kind.keys]
    assert len(codes) == len(set(codes))
    assert set(kind.offered(None)) == {key.answer for key in kind.keys}


def test_each_question_on_the_instructions_has_its_right_option(asked):
    kind, questions, _ = asked
    assert questions
    for one in kind.check:
        assert one.right in {name for name, _ in one.options}
        assert len(one.options) > 1


def test_an_original_is_recognised_and_noise_is_not(asked):
    kind, _, _ = asked
    clear = kind.expected("cat", differs=False)
    assert kind.recognised("cat", clear)
    assert kind.passes(clear, clear)
    assert not kind.recognised("cat", kind.nothing)


def test_answers_that_are_not_offered_are_refused(asked):
    kind, _, _ = asked
    with pytest.raises(AnswerError, match="not offered"):
        check_answer(kind, None, Answer(id="v", item="i", answer="nothing of the kind"))


def test_two_of_three_votes_decide_what_they_say(asked):
    _, _, data = asked
    assert len(data.counted) == 2 * len(data.labels)
    assert data.labels["n_votes"].eq(2).all()
    assert data.labels["recognisable"].eq(True).all()
