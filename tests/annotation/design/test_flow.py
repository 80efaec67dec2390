"""Which steps a study has, and what follows what."""

import itertools

import pytest

from annotation.design import flow as phases
from annotation.domain import Step
from annotation.spec import StudySpec, Task
from annotation.tasks import KINDS
from annotation.tasks.wording import USUAL

SWITCHES = {
    Step.CONSENT: {"consent": "Your part is voluntary."},
    Step.PRACTICE: {"practice": 2, "set_aside": 1},
    Step.CHECK: {"check": True},
}
FINAL = (Step.DONE, Step.FAILED)


def spec(*steps: Step, **more: object) -> StudySpec:
    settings = {key: value for step in steps for key, value in SWITCHES[step].items()}
    return StudySpec(name="s", task=Task.RECOGNITION, **settings, **more)  # type: ignore[arg-type]


ALL = [
    spec(*chosen)
    for n in range(len(SWITCHES) + 1)
    for chosen in itertools.combinations(SWITCHES, n)
]


def test_a_plain_study_is_the_main_step_alone():
    assert phases.steps(spec()) == (Step.MAIN,)
    assert phases.place(spec(), Step.MAIN) is None


def test_a_full_study_goes_all_the_way():
    assert phases.steps(spec(*SWITCHES)) == (
        Step.CONSENT,
        Step.INSTRUCTIONS,
        Step.PRACTICE,
        Step.CHECK,
        Step.MAIN,
    )


@pytest.mark.parametrize("step", SWITCHES)
def test_each_step_brings_the_instructions_with_it(step):
    assert set(phases.steps(spec(step))) == {step, Step.INSTRUCTIONS, Step.MAIN}


def test_a_text_of_instructions_is_shown_though_nothing_else_is():
    assert phases.steps(spec(instructions="Look.")) == (Step.INSTRUCTIONS, Step.MAIN)
    assert phases.steps(spec(consent=" \n", instructions=" ")) == (Step.MAIN,)


@pytest.mark.parametrize("settings", ALL)
def test_going_on_from_the_first_step_passes_every_step_and_ends(settings):
    step, passed = phases.first(settings), []
    while step is not Step.DONE:
        passed.append(step)
        step = phases.after(settings, step)
    assert tuple(passed) == phases.steps(settings)


@pytest.mark.parametrize("settings", ALL)
def test_nobody_stays_at_a_step_that_was_left_out_since(settings):
    for step in Step:
        now = phases.current(settings, step)
        assert now in (*phases.steps(settings), *FINAL, Step.DECLINED)
        assert phases.current(settings, now) is now


def test_somebody_at_a_step_left_out_goes_on_to_the_next():
    assert phases.current(spec(Step.CHECK), Step.PRACTICE) is Step.CHECK
    assert phases.current(spec(), Step.CONSENT) is Step.MAIN


@pytest.mark.parametrize("step", FINAL)
def test_nothing_follows_the_end(step):
    assert phases.after(spec(*SWITCHES), step) is step


def test_who_declined_begins_again():
    assert phases.after(spec(*SWITCHES), Step.DECLINED) is Step.CONSENT


def test_the_place_is_counted_from_one():
    assert phases.place(spec(*SWITCHES), Step.PRACTICE) == (3, 5)
    assert phases.place(spec(*SWITCHES), Step.FAILED) is None


def test_every_task_and_step_has_its_texts():
    for kind in KINDS.values():
        assert all([kind.about, kind.question, kind.check, *kind.rules]), kind.name
    assert {f"way.{step}" for step in phases.steps(spec(*SWITCHES))} <= set(USUAL)
