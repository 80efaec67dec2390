"""The start page: four cases, the way through a study and where one stands, the studies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from annotation.domain import Study
from annotation.study import imported, labelling
from annotation.texts import counted
from annotation.ui import StudyContext
from annotation.ui.results_view import number
from annotation.web.api import routes
from annotation.web.templates import page
from semsim.base.words import first_of

THUMBNAILS = 6
SHOWN = 24  # studies; the frame's list has all


@dataclass(frozen=True, kw_only=True)
class Step:
    """One of the steps through a study: where the workspace stands, and what to do next."""

    title: str
    stands: str
    action: str
    address: str
    main: bool = False


@dataclass(frozen=True, kw_only=True)
class Lab:
    """Facts of the other half that the start page shows.

    Attributes:
        cases: `{"title", "caption", "cases"}` of `semsim-studio examples --rows`.
        people: `answer.json` of `semsim-studio demo people`; without rows nothing is shown.
        semsims: Names of the trained SemSims.
        running: Titles of jobs by the page that watches them.
    """

    cases: Callable[[], dict[str, Any]]
    people: Callable[[], dict[str, Any]]
    semsims: Callable[[], list[str]]
    running: Callable[[], list[Any]]


def router(context: StudyContext, lab: Lab) -> APIRouter:
    """The start page at /studio/."""

    def home(request: Request) -> Response:
        chosen = context.in_hand(request)
        studies = labelling.list_studies(context.store)
        study = next((one for one in studies if one.id == chosen), None)
        return page(
            "home.html",
            note=context.note(),
            told=_told(lab.cases()),
            people=_people(lab.people()),
            steps=_steps(context, lab, study),
            brought=imported.choices(context.imports).items(),
            cards=[_card(context, one) for one in studies[:SHOWN]],
            more=len(studies) - SHOWN,
        )

    return routes(get={"/studio/": home})


def _people(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of people with its numbers in words and in per cent of the width."""
    if not answer["rows"]:
        return {}
    known = [answer["ceiling"], *answer["rows"]]
    lowest = min(0.0, *(one["low"] for one in known if one["low"] is not None))

    def place(value: float) -> float:
        return round(100 * (value - lowest) / (1 - lowest), 2)

    def drawn(one: dict[str, Any]) -> dict[str, Any]:
        low, high = one["low"], one["high"]
        ends = low is not None and high is not None
        return {
            "title": one.get("title", ""),
            "rho": number(one["rho"]),
            "ends": f"{number(low)} to {number(high)}" if ends else "",
            "at": place(one["rho"]),
            "left": place(low) if ends else 0,
            "width": place(high) - place(low) if ends else 0,
        }

    rows = [drawn(one) for one in answer["rows"]]
    ceiling = drawn(answer["ceiling"]) if answer["ceiling"]["rho"] is not None else None
    return {**answer, "rows": rows, "ceiling": ceiling, "zero": place(0)}


def _told(cases: dict[str, Any]) -> dict[str, Any]:
    """Return the same with how many of those asked recognised each."""
    told = [_case(one) for one in cases["cases"]]
    return {**cases, "cases": told, "simulated": any(one["simulated"] for one in told)}


def _case(case: dict[str, Any]) -> dict[str, Any]:
    people = case["people"].removeprefix("recognised by ")
    yes, of = map(int, people.removesuffix(" simulated").split(" of "))
    simulated = people.endswith(" simulated")
    side = "open" if simulated else "leaked" if 2 * yes > of else "private"
    return {**case, "yes": yes, "of": of, "simulated": simulated, "side": side}


def _steps(context: StudyContext, lab: Lab, study: Study | None) -> Sequence[Step]:
    sets, semsims = len(context.find_sets()), lab.semsims()
    done, stands = 0, "no study yet"
    if study is not None:
        progress = labelling.progress(context.store, study.id)
        done, spec = progress.votes_done, study.spec
        by = "model " if spec.voter else "simulated " if spec.simulated else ""
        stands = f"{done:,} of {progress.votes_wanted:,} {by}votes"
    runs = {live.address.rsplit("/", 1)[-1]: live for live in reversed(lab.running())}
    return (
        Step(
            title="Reconstruct",
            stands=_running(runs, "reconstruct") or counted(sets, "reconstruction set"),
            action="Attack a model",
            address="reconstruct",
            main=sets == 0,
        ),
        Step(
            title="Label",
            stands=stands,
            action="New study" if study is None else "Open as annotator",
            address="new" if study is None else f"preview?study={study.id}",
            main=sets > 0 and done == 0,
        ),
        Step(
            title="Train SemSim",
            stands=_running(runs, "train") or _listed(semsims),
            action="Watch" if "train" in runs else "Train on the votes",
            address="train",
        ),
        Step(
            title="Compare",
            stands=_running(runs, "compare")
            or ("see which metric agrees with people" if done else "needs votes"),
            action="Compare the metrics",
            address="compare?tab=answer",
            main=done > 0,
        ),
    )


def _running(runs: dict[str, Any], at: str) -> str:
    return f"{runs[at].words}: {runs[at].share:.0%}" if at in runs else ""


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none trained yet"
    return f"{counted(len(names), 'SemSim')}: {first_of(names, 3, last='…')}"


def _card(context: StudyContext, study: Study) -> dict[str, Any]:
    return {
        "study": study,
        "progress": labelling.progress(context.store, study.id),
        "models": counted(len(study.models), "target model"),
        "pictures": labelling.some_pictures(context.store, study.id, THUMBNAILS),
        "asks": study.task.value,
    }
