"""What the page Reconstruct draws: plain values in, HTML out."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from semsim.campaign.probe import Outlook
from semsim.images import to_uint8
from semsim.types import LabelledImages
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.reconstruct_data import CellState, CellView, SetView
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
_LEGEND = "".join(
    f'<span class="rec-key"><span class="rec-cell {state.value}"></span>{words}</span>'
    for state, words in _WORDS.items()
)


def outlook_html(view: Outlook, workers: int, measuring: bool) -> str:
    """What a plan takes before it is started."""
    new = view.cells - view.cells_done
    reused = f" ({view.cells_done} are done already)" if view.cells_done else ""
    lines = [
        f"<strong>{view.targets} targets</strong>, {view.to_train} of them to train",
        f"<strong>{counted(view.cells, 'image')} to attack</strong>{reused}",
        f"Disk: up to {view.disk / 1e6:.1f} MB",
        f"Time: {_time_words(view.seconds, workers, measuring)}",
    ]
    if not new:
        lines.append("Everything is done; starting it only writes the reconstruction sets.")
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def sets_html(views: Sequence[SetView]) -> str:
    """A row for every target under every attack, with a square for every image."""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Model", "Target", "Images", ""))
    rows = "".join(_set_row(view) for view in views)
    return (
        f'<p>{_LEGEND}</p><div class="rec-scroll"><table class="rec-table">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def grid_html(views: Sequence[SetView], images: Mapping[str, LabelledImages], page: int) -> str:
    """Originals of one page with what each model gave back beside them."""
    if not views:
        return ""
    parts = []
    for dataset in dict.fromkeys(view.planned.target.dataset for view in views):
        mine = [view for view in views if view.planned.target.dataset == dataset]
        parts.append(_grid(mine, images[dataset], page))
    return "".join(parts)


def pages(images: Mapping[str, LabelledImages]) -> int:
    """How many pages the grid has."""
    return max(-(-len(one) // ROWS) for one in images.values())


def result_html(result: Mapping[str, Any]) -> str:
    """What a finished campaign made."""
    crashed, n = result["n_crashed"], len(result["sets"])
    broke = f", {crashed} of them broke with an error that is in the set's table" if crashed else ""
    undone = "".join(
        f"<p>{count} could not be computed and are tried again when it is started again: "
        f"{escape(why)}</p>"
        for why, count in result.get("undone", {}).items()  # results of before have none
    )
    folders = "".join(f"<li><code>{escape(path)}</code></li>" for path in result["sets"])
    return (
        f"<p><strong>{result['n_ok']} ok / {result['n_failed']} failed</strong>{broke}. {undone}"
        f"{counted(n, 'reconstruction set is', 'reconstruction sets are')} written; make a study "
        f"of {agreeing(n, 'it', 'them')} on the "
        'page <a href="./">Studies</a>.</p>'
        f"<details><summary>Folders</summary><ul>{folders}</ul></details>"
    )


def missing_html(missing: Mapping[str, str]) -> str:
    """Data sets that are not on this machine, and the command that gets each."""
    if not missing:
        return ""
    rows = "".join(
        f"<li>{escape(name)}: <code>{escape(command)}</code></li>"
        for name, command in missing.items()
    )
    words = f"{counted(len(missing), 'data set is', 'data sets are')} not on this machine"
    return f"<details><summary>{words}</summary><ul>{rows}</ul></details>"


def _time_words(seconds: float | None, workers: int, measuring: bool) -> str:
    if seconds is None:
        return "being measured on a few steps …" if measuring else "not measured"
    return f"about {words_for_seconds(seconds / max(1, workers))} on {workers} cores"


def _set_row(view: SetView) -> str:
    done, failed = view.count(CellState.OK), view.count(CellState.FAILED)
    words = f"{done} of {len(view.cells)} done" + (f", {failed} failed" if failed else "")
    return (
        f'<tr><th scope="row" class="rec-first">{escape(view.planned.model)}</th>'
        f"<td>{_target_words(view)}</td><td>{words}</td><td>{_squares(view)}</td></tr>"
    )


def _target_words(view: SetView) -> str:
    if view.failure:
        return f"failed: {escape(view.failure.strip().splitlines()[-1])}"
    if view.training is not None:
        return f"training, {view.training:.0%}"
    return "trained" if view.trained else "not trained"


def _squares(view: SetView) -> str:
    if len(view.cells) > _SQUARES:
        share = sum(cell.share for cell in view.cells) / len(view.cells)
        return f'<progress max="1" value="{share:.3f}" aria-label="images done"></progress>'
    squares = "".join(
        f'<span class="rec-cell {cell.state.value}" title="{escape(_cell_words(cell))}"></span>'
        for cell in view.cells
    )
    return f'<div class="rec-cells" aria-hidden="true">{squares}</div>'


def _cell_words(cell: CellView) -> str:
    share = f" {cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return f"{cell.image_id}: {_WORDS[cell.state]}{share}"


def _grid(views: Sequence[SetView], images: LabelledImages, page: int) -> str:
    names = ["Original", *(view.planned.model for view in views)]
    first = ' class="rec-first"'
    head = "".join(
        f'<th scope="col"{"" if place else first}><div class="rec-name">{escape(name)}</div></th>'
        for place, name in enumerate(names)
    )
    start = (page - 1) * ROWS
    rows = "".join(
        _grid_row(views, images, place) for place in range(start, min(start + ROWS, len(images)))
    )
    return (
        f'<div class="rec-scroll"><table class="rec-table"><caption class="rec-name">'
        f"{escape(images.dataset)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _grid_row(views: Sequence[SetView], images: LabelledImages, place: int) -> str:
    name = images.classes[int(images.labels[place])]
    packed = base64.b64encode(png(to_uint8(images.images[place]))).decode()
    original = (
        f'<img class="rec-picture" src="data:image/png;base64,{packed}" '
        f'alt="original: {escape(name)}"><div class="rec-name">{escape(name)}</div>'
    )
    cells = "".join(f"<td>{_picture(view, view.cells[place], name)}</td>" for view in views)
    return f'<tr><th scope="row" class="rec-first">{original}</th>{cells}</tr>'


def _picture(view: SetView, cell: CellView, name: str) -> str:
    if cell.state is CellState.OK:
        words = f"{name}, reconstructed from {view.planned.model}"
        source = address(cell.key, "picture", cell.changed)
        flags = {"worse than grey": cell.worse_than_grey, "blew up": cell.blown_up}
        told = "".join(f'<div class="rec-name">⚠ {flag}</div>' for flag in flags if flags[flag])
        return f'<img class="rec-picture" src="{source}" alt="{escape(words)}">{told}'
    share = f"<br>{cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return f'<div class="rec-empty">{_WORDS[cell.state]}{share}</div>'
