"""Settings of a study as they are stored, which is what a protocol's hash is made of."""

import re
from dataclasses import asdict

import pytest

from annotation.errors import StudyError
from annotation.spec import StudySpec, Task

# What is stored of each setting.
KEPT = {
    "title": "",
    "votes_per_item": 5,
    "extra_vote": False,
    "list_size": 20,
    "decoy_rate": 0.0,
    "headline": "majority",
    "seed": 0,
    "simulated": False,
    "voter": "",
    "lease_seconds": 600,
    "password": None,
    "min_rt_ms": 150,
    "balanced": True,
    "max_views": None,
    "min_lag": 0,
    "label_originals": False,
    "items_per_person": None,
    "set_aside": 0,
    "practice": 0,
    "catch_rate": 0.0,
    "catch_warn_after": 2,
    "catch_pause_after": 0,
    "gold_rate": 0.0,
    "repeat_rate": 0.05,
    "repeat_lag": 50,
    "consent": "",
    "instructions": "",
    "check": False,
    "check_attempts": 2,
    "completion_code": "",
    "completion_url": "",
    "texts": {},
    "class_names": {},
    "view": "smooth-and-small",
    "image_scale": 0,
    "background": "grey",
}


@pytest.mark.parametrize("task", ["recognition", "pair"])
def test_the_usual_settings_are_stored_as_ever(task):
    kept = asdict(StudySpec(name="x", task=Task(task)))
    assert {name: kept[name] for name in ("name", "task", *KEPT)} == {
        "name": "x",
        "task": task,
        **KEPT,
    }
    assert StudySpec(**kept) == StudySpec(name="x", task=Task(task))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"join.begin": "Los"}, "no texts called 'join.begin'"),
        ({"join.start": " "}, "'join.start' should be words"),
        ({"join.start": 3}, "'join.start' should be words"),
        ({"join.start": "a\x00"}, "no control characters"),
        ({"label.of": "{n} von {all}"}, "'label.of' is filled in with {n}, {total}; got {all}"),
    ],
)
def test_a_text_that_nobody_could_read_is_refused_when_a_study_is_made(texts, words):
    with pytest.raises(StudyError, match=re.escape(words)):
        StudySpec(name="x", task=Task.PAIR, texts=texts)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"sun": "Stern", "star": "stern "}, "under the same name"),
        ({"sun": ""}, "class 'sun': '' is empty"),
        ({"sun": None}, "are texts by class"),
    ],
)
def test_shown_names_of_classes_tell_them_apart(names, words):
    with pytest.raises(StudyError, match=re.escape(words)):
        StudySpec(name="x", task=Task.PAIR, class_names=names)


def test_a_study_may_have_its_own_words_for_everything():
    spec = StudySpec(
        name="x",
        task=Task.RECOGNITION,
        texts={
            "label.of": "{n} von {total}",
            "label.untitled": "Bilder",
            "recognition.rules": "Eins.\n\nZwei.",
            "recognition.key.not_in_list": "Etwas anderes",
            "recognition.check.nothing.cannot": "Nichts zu sehen",
        },
        class_names={"sun": "Sonne"},
    )
    say, kind = spec.wording, spec.kind
    assert say("label.of", n=1, total=2) == "1 von 2"
    assert spec.shown_title == "Bilder"
    assert say.rules(kind) == ("Eins.", "Zwei.")
    assert [key.label for key in say.keys(kind)] == ["I can’t make it out", "Etwas anderes"]
    asked = say.question(kind, kind.check[0])
    assert dict(asked.options)["cannot"] == "Nichts zu sehen"
    assert asked.right == kind.check[0].right
    assert [say.class_name(name) for name in ("sun", "chess_pawn")] == ["Sonne", "chess pawn"]
    assert spec == StudySpec(**asdict(spec))
