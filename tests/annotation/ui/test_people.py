"""What the page People has on screen after each look."""

from datetime import UTC, datetime

import gradio as gr
from study_factory import small_study

from annotation.study import labelling, participants
from annotation.ui import people


def test_a_look_that_began_before_an_erasure_takes_nobody_from_the_screen(context, tmp_path):
    study = small_study(context.store, tmp_path)
    labelling.join(context.store, study.token, "Ada")
    seen = people._look(context, study.id, "Ada", "")[2]
    erased = participants.erase(
        context.store, study.id, "Ada", datetime.now(UTC), keep_votes=False
    ).name
    late = people._look(context, study.id, "Ada", seen, patient=True)
    assert late[2] == people.GONE
    assert [one for at, one in enumerate(late) if at != 2] == [gr.skip()] * 11
    # What the press that erased says, and what is left where nobody says it.
    assert people._look(context, study.id, erased, people.GONE)[1] == erased
    assert people._look(context, study.id, "Ada", people.GONE)[1] == ""
