"""HTML of the page Reconstruct from plain values, and pictures by the cell's key."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import Response

from semsim.base.words import counted
from semsim.campaign.forecast import Outlook
from semsim.campaign.store import PieceStore
from semsim.device import cores
from semsim.grid.previews import STEPS
from semsim.images import png_of
from semsim.reporting.writing import png_address
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import STATISTIC, recognised_words
from semsim.ui import ScienceContext, lab_page
from semsim.ui.answers import KEPT, GoneError, worded
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.lab_sets import METHOD, chip
from semsim.ui.markup import pieces, rooted
from semsim.ui.reconstruct_data import CellState, CellView, Pictures, SetView, UnderAttack

FOLDER = "/studio/reconstruct-files"
_KEY = re.compile(r"[0-9a-f]{20}")
ROWS = 6  # images on one page of the grid
_STRIP = 8  # pictures that came back last
_SQUARES = 64  # images of a set shown one by one before only a bar fits
_WORDS = {
    CellState.WAITING: "waiting",
    CellState.RUNNING: "being attacked",
    CellState.OK: "done",
    CellState.FAILED: "failed",
}
_HTML, _LAB = pieces("reconstruct.html"), pieces("lab.html")
_NO_STEPS = (
    "Here is what an attack makes of a picture, step by step. Targets are trained first; R-GAP and "
    "COPA have a picture at their end only."
)


def outlook_html(view: Outlook, last: str, *, measuring: bool) -> str:
    """Return what a plan takes before it is started, as HTML; last: see `jobpanel.last_words`."""
    reused = f" ({view.cells_done} are done already)" if view.cells_done else ""
    over = "Everything is done; starting it only writes the reconstruction sets."
    return lab_page.outlook_html(
        counted(view.targets, "target"),
        f", {view.to_train} of them to train",
        f"{counted(view.cells, 'picture')} to attack{reused}",
        view.disk,
        over if view.cells == view.cells_done else "",
        last,
        time=_time(view, measuring=measuring),
    )


def _time(view: Outlook, *, measuring: bool) -> str:
    """Return the time of a plan in words; the cores here share it."""
    if view.seconds is None:
        return "being measured on a few steps" if measuring else "not measured"
    return f"about {words_for_seconds(view.seconds / cores())} on {cores()} cores"


def sets_html(views: Sequence[SetView]) -> str:
    """A row for every target under every attack, with a square for every image."""
    states = [(state.value, words) for state, words in _WORDS.items()]
    return str(_LAB.sets(states, [_set_row(view) for view in views]))


def steps_html(now: UnderAttack | None) -> str:
    """The picture that is being attacked: as it was, and what the attack made of it so far."""
    if now is None:
        return str(_HTML.no_steps(_NO_STEPS))
    steps = [(f"{share:.0%}", png_address(png)) for share, png in now.steps]
    waiting = STEPS - len(steps)
    original = png_address(png_of(now.original))
    return str(_HTML.steps(now.name, now.model, original, steps, waiting))


def strip_html(views: Sequence[SetView]) -> str:
    """The pictures that came back last, each beside what was attacked."""
    done = [(cell, view) for view in views for cell in view.cells if cell.state is CellState.OK]
    newest = sorted(done, key=lambda one: one[0].changed)[: -_STRIP - 1 : -1]
    pairs = [
        {
            "original": address(cell.key, "attacked", cell.changed),
            "result": address(cell.key, "picture", cell.changed),
            "words": view.planned.model,
            "chip": chip(cell.shown),
        }
        for cell, view in newest
    ]
    return str(_LAB.pairs(pairs)) if pairs else ""


def grid_html(views: Sequence[SetView], images: Mapping[str, Pictures], page: int) -> str:
    """Originals of one page with what each model gave back beside them."""
    parts = []
    for dataset in dict.fromkeys(view.planned.target.dataset for view in views):
        mine = [view for view in views if view.planned.target.dataset == dataset]
        parts.append(_grid(mine, images[dataset], page))
    return "".join(parts)


def pages(images: Mapping[str, Pictures]) -> int:
    """Count the pages of the grid, 0 without images."""
    return max((-(-len(one.names) // ROWS) for one in images.values()), default=0)


def verdict_html(views: Sequence[SetView], named: Mapping[str, Any] | None) -> str:
    """Return what can be recognised, then the statistic, in all and by model.

    named: as `semsim.metrics.reference_classifier.recognition`, None until the campaign is done.
    """
    if not _count(views).over:
        return ""
    rows = [(view.planned.model, _target_words(view), _count([view]).short) for view in views]
    lead = recognised_words(named, [] if named is None else named["sets"])
    said = (lead, verdict_words(views))
    return str(_LAB.verdict(said, METHOD, rows))


def verdict_words(views: Sequence[SetView]) -> str:
    """The statistic in a sentence, and what follows where nothing came of undefended models."""
    first = f"{STATISTIC}what came back is {_count(views).words}."
    plain = [view for view in views if view.planned.target.plan.defence.name == "none"]
    mine = _count(plain)
    if len(plain) < len(views) and mine.over and not mine.comes_back:
        return (
            f"{first} Of the undefended models it is so on {mine.clearer} of {mine.over} only: the "
            "attacks fail there too, and nothing can be said of a defence."
        )
    return first


def gone_html(error: Exception) -> str:
    """Return why a finished campaign has no table of its pictures, as HTML."""
    return str(_HTML.gone(str(error)))


def result_html(result: Mapping[str, Any]) -> str:
    """Return what a finished campaign made, as HTML."""
    crashed = result["n_crashed"]
    broke = f", {crashed} of them broke with an error that is in the set's table" if crashed else ""
    undone = result["undone"]
    return lab_page.made_html(_HTML.result(result, broke, undone), result["sets"])


def _count(views: Iterable[SetView]) -> Count:
    ended = (CellState.OK, CellState.FAILED)
    return Count.of(cell.shown for view in views for cell in view.cells if cell.state in ended)


def _set_row(view: SetView) -> tuple[Any, ...]:
    done, failed = view.count(CellState.OK), view.count(CellState.FAILED)
    words = f"{done} of {len(view.cells)} done" + (f", {failed} failed" if failed else "")
    share, squares = None, [(cell.state.value, _cell_words(cell)) for cell in view.cells]
    if len(squares) > _SQUARES:
        share, squares = sum(cell.share for cell in view.cells) / len(view.cells), []
    return view.planned.model, _target_words(view), words, share, squares


def _target_words(view: SetView) -> str:
    if view.failure:
        return f"failed: {view.failure.strip().splitlines()[-1]}"
    if view.training is not None:
        return f"training, {view.training:.0%}"
    return view.target or "not trained"


def _cell_words(cell: CellView) -> str:
    share = f" {cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return f"{cell.image_id}: {_WORDS[cell.state]}{share}"


def _grid(views: Sequence[SetView], images: Pictures, page: int) -> str:
    start = (page - 1) * ROWS
    rows = [
        (
            images.names[place],
            png_address(png_of(images.pixels[place])),
            [_picture(view, view.cells[place], images.names[place]) for view in views],
        )
        for place in range(start, min(start + ROWS, len(images.names)))
    ]
    return str(_HTML.grid(images.dataset, [view.planned.model for view in views], rows))


def _picture(view: SetView, cell: CellView, name: str) -> dict[str, Any]:
    if cell.state is CellState.OK:
        words = chip(cell.shown)
        flags = {
            words: bool(words),
            "worse than grey": cell.worse_than_grey,
            "blew up": cell.blown_up,
        }
        return {
            "address": address(cell.key, "picture", cell.changed),
            "alt": f"{name}, reconstructed from {view.planned.model}",
            "flags": [flag for flag, holds in flags.items() if holds],
        }
    share = f"{cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return {"address": "", "words": _WORDS[cell.state], "share": share}


def address(key: str, kind: str, changed: int) -> str:
    """Return a picture's address: `kind` is attacked or picture; `changed` tells versions apart."""
    return rooted(f"{FOLDER}/{key}/{kind}.png?v={changed}")


def router(context: ScienceContext) -> APIRouter:
    """The route of the pictures below `FOLDER`."""
    routes = APIRouter()
    store = PieceStore(context.data)

    @routes.get(FOLDER + "/{key}/{kind}.png")
    @worded
    def picture(key: str, kind: Literal["attacked", "picture"]) -> Response:
        if not _KEY.fullmatch(key):
            raise GoneError("No such cell.")
        result = store.cells.read(key).result
        found = result.attacked if kind == "attacked" else result.picture
        if found is None:
            raise GoneError("This attack gave no picture.")
        return Response(png_of(found), media_type="image/png", headers=KEPT)

    return routes
