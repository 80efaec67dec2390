"""HTML of the page Train SemSim, and the files of a SemSim to take away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from semsim.base.jobs.folders import JobState
from semsim.base.metric_spec import START
from semsim.lab.curves import Chart, Curve
from semsim.lab.markup import pieces, rooted
from semsim.learning.advice import expectation
from semsim.learning.baselines import SHUFFLED, verdict_of
from semsim.learning.card import (
    card_paths,
    heads,
    learned_words,
    note_of,
    table_rows,
    weights_words,
)
from semsim.learning.evaluation import auc_of
from semsim.learning.splits import HoldOut, SplitCounts
from semsim.learning.triplets import Inventory, JudgedOriginal
from semsim.ui import ScienceContext
from semsim.ui.answers import GoneError, worded
from semsim.ui.jobpanel import when

FOLDER = "/studio/train-files"
HTML = pieces("learn.html", "semsim.ui")
_FILES = ("Weights", "Card", "Card as JSON")
_ENDINGS = (".safetensors", ".card.md", ".card.json")
_SHOWN_IDS = 12  # originals named in a list before the rest is only counted
_STATE_WORDS = {
    JobState.QUEUED: "waiting",
    JobState.RUNNING: "running",
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.STOPPED: "stopped, can be resumed",
    JobState.LOST: "interrupted, can be resumed",
}


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One line of the list of trainings.

    Attributes:
        study: Whose votes it learns from.
        result: Empty until it is done.
        promoted: Whether it is the SemSim of this workspace.
    """

    created: str
    name: str
    study: str
    simulated: bool
    state: JobState
    result: Mapping[str, Any]
    promoted: bool = False


def stock_html(inventory: Inventory, simulated: bool) -> str:
    """Return HTML of a study's usable originals, by number, and of what the others lack."""
    lacking = (
        ("no unrecognisable reconstruction", inventory.only_recognisable),
        ("no recognisable reconstruction", inventory.only_unrecognisable),
        ("no reconstruction on which a majority agrees yet", inventory.undecided),
    )
    rows = [_lacking(words, originals) for words, originals in lacking if originals]
    return HTML.stock(inventory, rows, simulated)


def split_html(counts: SplitCounts, hold_out: HoldOut, pace: str = "", last: str = "") -> str:
    """Return what is left to learn from and what it will be judged by, and what both lack.

    Args:
        pace: What trainings take here, as sentences.
        last: What the last training like it took here, as a sentence.
    """
    said = [part for part in (expectation(counts), pace, last) if part]
    return HTML.split(counts, hold_out.words, said)


def judged_html(judged: Mapping[str, Any], title: str) -> str:
    """Every metric on the same images, as a table with 95% intervals."""
    away = [f"{name} is left out: {why.split(';')[0]}" for name, why in judged["left_out"].items()]
    said = [*filter(None, [note_of(judged)]), *away]
    return HTML.judged(judged, title, heads(judged), table_rows(judged), said)


def result_html(
    result: Mapping[str, Any], studies: Mapping[str, str], files: Sequence[tuple[str, str]] = ()
) -> str:
    """Return HTML of what a training made, its quality on held-out originals, and its path.

    Args:
        studies: Names by id of those it learned from; each gets a link to Compare.
        files: Words and address of each that can be taken away.
    """
    results = result["results"]
    parts: list[str] = []
    if "validation_accuracy" in results:  # else only the test has any
        kept, chose = round(results["n_held_out"]), result["settings"]["patience"] > 0
        parts.append(HTML.validation(results["validation_accuracy"], kept, chose))
    if said := weights_words(results):
        parts.append(HTML.weights(said))
    unseen = judged_html(result["held_out"], f"Held out: {result['split']['words']}")
    parts.append(HTML.held_out(unseen, judged_html(result["in_sample"], "In sample")))
    links = _compare_links(result["name"], studies)
    return HTML.result(result, learned_words(result, results), parts, files, links)


def verdict_html(result: Mapping[str, Any]) -> str:
    """Return what the test says of a finished training, the first sentence large."""
    return HTML.verdict(verdict_of(result["held_out"]).sentences, result["simulated"])


def _compare_links(semsim: str, studies: Mapping[str, str]) -> list[tuple[str, str]]:
    """Words and queries of Compare: one a study, under its name where there are several."""
    queries = [{"study": study, "semsim": semsim} for study in studies] or [{"semsim": semsim}]
    words = studies.values() if len(queries) > 1 else ["Use it in Compare"]
    return list(zip(words, map(urlencode, queries), strict=True))


def trainings_html(rows: Sequence[TrainingRow]) -> str:
    """All trainings, newest first, as a table."""
    head = (
        *("Started (UTC)", "Name", "Study", "State", "Held out"),
        *("AUC", "of MSE", "of SSIM", "of initial weights", "of shuffled votes"),
    )
    return HTML.trainings(head, [_training(row) for row in rows])


def charts(course: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Chart]:
    """The course of a training as far as it has one."""
    ends = course["ends"]
    found = (loss_chart(course["batches"]), distance_chart(ends), auc_chart(ends))
    return [one for one in found if one.has_course]


def loss_chart(batches: Sequence[Mapping[str, float]]) -> Chart:
    """The loss of each batch against epochs."""
    curve = Curve(
        name="of a batch",
        x=[row["epoch"] for row in batches],
        y=[row["loss"] for row in batches],
        marked=False,
    )
    return Chart(title="Loss", x="epoch", y="loss", curves=(curve,))


def distance_chart(epochs: Sequence[Mapping[str, float]]) -> Chart:
    """Mean distance to recognisable (d+) and unrecognisable (d−) ones, each epoch.

    Solid on training originals, dashed on those held out.
    """
    curves = (
        ("d_plus", "d+ recognisable", "leaked", False),
        ("d_minus", "d− unrecognisable", "private", False),
        ("validation_d_plus", "d+ held out", "leaked", True),
        ("validation_d_minus", "d− held out", "private", True),
    )
    drawn = [
        Curve(
            name=name,
            x=[row["epoch"] for row in epochs if key in row],
            y=[row[key] for row in epochs if key in row],
            colour=colour,
            dashed=dashed,
        )
        for key, name, colour, dashed in curves
    ]
    return Chart(
        title="Mean distance to the original",
        x="epoch",
        y="distance",
        curves=tuple(one for one in drawn if one.x),
        highest=1.15 * _highest(epochs) if epochs else None,
    )


def auc_chart(epochs: Sequence[Mapping[str, float]]) -> Chart:
    """AUC of the images of the originals kept for validation, each epoch; 0.5 is chance."""
    known = [row for row in epochs if "validation_auc" in row]
    curve = Curve(
        name="all originals together",
        x=[row["epoch"] for row in known],
        y=[row["validation_auc"] for row in known],
        dashed=True,
    )
    title = "AUC on originals kept for validation"
    return Chart(title=title, x="epoch", y="AUC", curves=(curve,), highest=1.05, line=0.5)


def _lacking(words: str, originals: Sequence[JudgedOriginal]) -> tuple[int, str, list[str], int]:
    ids = [original.image_id for original in originals[:_SHOWN_IDS]]
    return len(originals), words, ids, len(originals) - len(ids)


def _training(row: TrainingRow) -> list[str]:
    warned = " ⚠" if row.result.get("warnings") else ""
    judged = row.result.get("held_out")
    compared = ("semsim", "mse", "ssim", f"semsim:{row.name}.{START}", SHUFFLED)
    numbers = [None if judged is None else auc_of(judged, metric) for metric in compared]
    cells = ["" if number is None else f"{number:.2f}" for number in numbers]
    if judged and cells[0] and judged["scale_differs"]:
        cells[0] += " within originals"
    if judged and SHUFFLED in judged["absent"]:
        cells[-1] = "not run"
    return [
        when(row.created),
        row.name + warned + (" ★" if row.promoted else ""),
        HTML.study(row.study, row.simulated),
        _STATE_WORDS[row.state],
        row.result.get("split", {}).get("hold_out", ""),
        *cells,
    ]


def _highest(epochs: Sequence[Mapping[str, float]]) -> float:
    """The top of the axis: in the first epochs, before batch normalisation's averages have
    settled, held-out distances may be far above it and would flatten all else."""
    trained = [row[key] for row in epochs for key in ("d_plus", "d_minus")]
    held_out = [epochs[-1].get(key, 0.0) for key in ("validation_d_plus", "validation_d_minus")]
    return max(*trained, *held_out)


def offered(checkpoint: Path, folder: Path) -> list[tuple[str, str]]:
    """Words and address of each file of a SemSim that is there, where `folder` has it."""
    if checkpoint.parent.resolve() != folder.resolve():
        return []  # what is called so there is another's
    files = zip(_FILES, (checkpoint, *card_paths(checkpoint)), strict=True)
    return [(words, rooted(f"{FOLDER}/{one.name}")) for words, one in files if one.is_file()]


def router(context: ScienceContext) -> APIRouter:
    """The route of the files below `FOLDER`."""
    routes = APIRouter()

    @routes.get(FOLDER + "/{name}")
    @worded
    def file(name: str) -> Response:
        path = Path(context.checkpoints) / Path(name).name
        if not name.endswith(_ENDINGS) or not path.is_file():
            raise GoneError("There is no such file of a SemSim.")
        return FileResponse(path, filename=name)

    return routes
