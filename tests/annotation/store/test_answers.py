"""Only what an item offers may be answered."""

from dataclasses import replace

import pytest

from annotation.domain import Answer
from annotation.errors import AnswerError
from annotation.spec import Task
from annotation.store.voting import check_answer, shown_under
from annotation.tasks import KINDS
from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition

CANDIDATES = ("cat", "cow")


def answer(text, reason=None, rt_ms=None):
    return Answer(id="x", item="i", answer=text, reason=reason, rt_ms=rt_ms)


@pytest.mark.parametrize(
    ("task", "given"),
    [
        (Task.RECOGNITION, answer("cat", rt_ms=0)),
        (Task.RECOGNITION, answer("none")),
        (Task.RECOGNITION, answer("none", "cannot_make_out")),
        (Task.RECOGNITION, answer("none", "not_in_list")),
        (Task.PAIR, answer("same", rt_ms=812.5)),
        (Task.PAIR, answer("different")),
    ],
)
def test_offered(task, given):
    check_answer(KINDS[task](), CANDIDATES if task is Task.RECOGNITION else (), given)


@pytest.mark.parametrize(
    ("task", "given", "message"),
    [
        (Task.RECOGNITION, answer("dog"), "'dog' is not offered"),
        (Task.RECOGNITION, answer("same"), "not offered"),
        (Task.PAIR, answer("none"), "not offered"),
        (Task.PAIR, answer("cat"), "not offered"),
        (Task.RECOGNITION, answer("cat", "not_in_list"), "Only the answer 'none'"),
        (Task.PAIR, answer("same", "not_in_list"), "Only the answer 'none'"),
        (Task.RECOGNITION, answer("none", "bored"), "Unknown reason 'bored'"),
        (Task.RECOGNITION, answer("cat", rt_ms=-1), "-1 ms"),
        (Task.RECOGNITION, answer("cat", rt_ms=float("nan")), "nan ms"),
    ],
)
def test_not_offered(task, given, message):
    with pytest.raises(AnswerError, match=message):
        check_answer(KINDS[task](), CANDIDATES if task is Task.RECOGNITION else (), given)


def test_an_answer_says_under_which_version_it_was_given():
    assert [shown_under(replace(answer("cat"), version=n), 3) for n in (1, 2, 3)] == [1, 2, 3]
    for never in (0, 4, -1):
        with pytest.raises(AnswerError, match=f"1 to 3 of its settings; got {never}"):
            shown_under(replace(answer("cat"), version=never), 3)


def test_recognised_is_the_true_class_or_same():
    assert Recognition().recognised("cat", "cat")
    assert not Recognition().recognised("cat", "cow")
    assert not Recognition().recognised("cat", "none")
    assert Pair().recognised("cat", "same")
    assert not Pair().recognised("cat", "different")
