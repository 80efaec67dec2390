"""What the page Reconstruct draws: plain values in, HTML out."""

from collections.abc import Mapping, Sequence
from typing import Any

from semsim.campaign.probe import Outlook
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.markup import pieces, png_address
from semsim.ui.reconstruct_data import CellState, CellView, Pictures, SetView
from semsim.ui.reconstruct_files import address, png
from semsim.words import agreeing, counted

ROWS = 12  # images on one page of the grid
_SQUARES = 64  # images of a set shown one by one before only a bar fits
_WORDS = {
    CellState.WAITING: "waiting",
    CellState.RUNNING: "being attacked",
    CellState.OK: "done",
    CellState.FAILED: "failed",
}
STYLE = """<style>
.rec-scroll {overflow-x: auto; max-width: 100%}
.rec-table {border-collapse: collapse; margin: .25rem 0}
.rec-table :is(th, td) {padding: .3rem .5rem; border: 0; text-align: left; vertical-align: middle;
  border-bottom: 1px solid var(--border-color-primary); font-weight: 400}
.rec-table thead th {font-weight: 600; vertical-align: bottom}
.rec-table th.rec-first {position: sticky; left: 0; background: var(--body-background-fill)}
.rec-cells {display: flex; flex-wrap: wrap; gap: 2px; min-width: 9rem; max-width: 22rem}
.rec-cell {width: 12px; height: 12px; border-radius: 2px; border: 1px solid #6b7280}
.rec-cell.ok {background: #15803d; border-color: #15803d}
.rec-cell.failed {background: #b91c1c; border-color: #b91c1c; border-radius: 50%}
.rec-cell.running {background: #1d4ed8; border-color: #1d4ed8; opacity: .75}
.rec-picture {width: 72px; height: 72px; image-rendering: pixelated; display: block;
  border-radius: 3px}
.rec-empty {width: 72px; height: 72px; border: 1px dashed #6b7280; border-radius: 3px;
  display: flex; align-items: center; justify-content: center;
  font-size: .75rem; text-align: center}
.rec-name {font-size: .8rem; max-width: 7rem; overflow-wrap: anywhere}
.rec-key {display: inline-flex; gap: .35rem; align-items: center; margin-right: 1rem}
</style>"""
_HTML = pieces("reconstruct.html")


def outlook_html(view: Outlook, workers: int, measuring: bool) -> str:
    """What a plan takes before it is started."""
    reused = f" ({view.cells_done} are done already)" if view.cells_done else ""
    time = _time_words(view.seconds, workers, measuring)
    return _HTML.outlook(view, counted(view.cells, "image"), reused, time)


def sets_html(views: Sequence[SetView]) -> str:
    """A row for every target under every attack, with a square for every image."""
    states = [(state.value, words) for state, words in _WORDS.items()]
    return _HTML.sets(states, [_set_row(view) for view in views])


def grid_html(views: Sequence[SetView], images: Mapping[str, Pictures], page: int) -> str:
    """Originals of one page with what each model gave back beside them."""
    parts = []
    for dataset in dict.fromkeys(view.planned.target.dataset for view in views):
        mine = [view for view in views if view.planned.target.dataset == dataset]
        parts.append(_grid(mine, images[dataset], page))
    return "".join(parts)


def pages(images: Mapping[str, Pictures]) -> int:
    """How many pages the grid has."""
    return max(-(-len(one.names) // ROWS) for one in images.values())


def result_html(result: Mapping[str, Any]) -> str:
    """What a finished campaign made."""
    crashed, n = result["n_crashed"], len(result["sets"])
    return _HTML.result(
        result,
        f", {crashed} of them broke with an error that is in the set's table" if crashed else "",
        result.get("undone", {}),  # results of before have none
        counted(n, "reconstruction set is", "reconstruction sets are"),
        agreeing(n, "it", "them"),
    )


def missing_html(missing: Mapping[str, str]) -> str:
    """Data sets that are not on this machine, and the command that gets each."""
    words = counted(len(missing), "data set is", "data sets are")
    return _HTML.missing(words, missing) if missing else ""


def _time_words(seconds: float | None, workers: int, measuring: bool) -> str:
    if seconds is None:
        return "being measured on a few steps …" if measuring else "not measured"
    return f"about {words_for_seconds(seconds / max(1, workers))} on {workers} cores"


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
            png_address(png(images.pixels[place])),
            [_picture(view, view.cells[place], images.names[place]) for view in views],
        )
        for place in range(start, min(start + ROWS, len(images.names)))
    ]
    return _HTML.grid(images.dataset, [view.planned.model for view in views], rows)


def _picture(view: SetView, cell: CellView, name: str) -> dict[str, Any]:
    if cell.state is CellState.OK:
        flags = {"worse than grey": cell.worse_than_grey, "blew up": cell.blown_up}
        return {
            "address": address(cell.key, "picture", cell.changed),
            "alt": f"{name}, reconstructed from {view.planned.model}",
            "flags": [flag for flag, holds in flags.items() if holds],
        }
    share = f"{cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return {"address": "", "words": _WORDS[cell.state], "share": share}
