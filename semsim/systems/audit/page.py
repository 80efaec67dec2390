"""The page Audit: layers in, examples attacked, c(M) out. No code comes from the browser."""

from collections.abc import Sequence
from typing import Any

from semsim.attacks.linear.rank import Convolution, Shape
from semsim.base.errors import SemsimError, SettingsError
from semsim.base.pages_library import BARE, QUIETLY, UNSEEN, gr
from semsim.grid.subprocess_worker import apart
from semsim.lab import LabContext
from semsim.lab.markup import alert_html, pieces
from semsim.lab.page import FreePage, Loads
from semsim.reporting.export import svg
from semsim.systems.audit.advice import advice, layers_html, tried_html, try_outs, verdict_html
from semsim.systems.audit.figure import leak_figure
from semsim.systems.audit.security_index import (
    CIFAR,
    CNN3,
    FullyConnected,
    Layer,
    convolutions,
    security_index,
    square,
)

COLUMNS = ("kernel", "channels", "stride", "padding")
SIZE = ("channels", "height", "width")
LARGEST = 512  # any number: a page answers at once
_CLASSES = 10
_MOST = 12  # layers


def rows_of(layers: Sequence[Layer]) -> list[list[int]]:
    """One row a convolution, in the order of `COLUMNS`."""
    return [_row(one) for one in convolutions(layers)]


def layers_of(rows: Sequence[Sequence[Any]]) -> tuple[Layer, ...]:
    """The layers that the table means, empty rows left out, with ten classes at the end.

    Raises `SettingsError` that names the row and what is wrong with it.
    """
    filled = [
        (number, row) for number, row in enumerate(rows, start=1) if any(map(_is_filled, row))
    ]
    if len(filled) > _MOST:
        raise SettingsError(f"The table takes {_MOST} convolutions; got {len(filled)}.")
    layers = [square(*(_whole(number, *cell) for cell in _cells(row))) for number, row in filled]
    return (*layers, FullyConnected(outputs=_CLASSES))


def shape_of(size: Sequence[Any]) -> Shape:
    """(C, H, W) from the three numbers of `SIZE`; `SettingsError` names the one that is wrong."""
    channels, height, width = (
        _number("Input", name, value, 1) for name, value in zip(SIZE, size, strict=True)
    )
    return channels, height, width


def _row(one: Convolution) -> list[int]:
    return [one.kernel[0], one.channels, one.stride[0], one.padding[0]]


def _cells(row: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip(COLUMNS, row, strict=True))


def _is_filled(value: Any) -> bool:
    return value not in (None, "") and value == value


def _whole(number: int, name: str, value: Any) -> int:
    if name == "padding" and not _is_filled(value):
        return 0
    return _number(f"Row {number}", name, value, 0 if name == "padding" else 1)


def _number(where: str, name: str, value: Any, low: int) -> int:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not found.is_integer() or not low <= found <= LARGEST:
        raise SettingsError(
            f"{where}: {name} is a whole number from {low} to {LARGEST}; got {value!r}."
        )
    return int(found)


_FIRST = 1
_WIDTH = 130.0  # mm, of the picture: legible on a phone and not huge on a wide screen
_DRAWN = ("lead", "example", "verdict", "figure", "layers", "tried")
_HTML = pieces("page.html", "semsim.systems.audit")
UNKNOWN = _HTML.lead("Attack an example to see whether people could recognise the images.")
_ATTACKING = _HTML.lead(
    "Attacking four examples with R-GAP and COPA-prior; then a reference classifier names them …"
)
_OWN = "own layers"
_INTRO = (
    "What can be recognised of a picture that layer-wise inversion gets out of one gradient? "
    "Attack examples to see. [[c(M)]] is a statistic of the architecture alone: it counts what "
    "weights and gradient hide from the attacker."
)


def page(context: LabContext) -> FreePage:
    """Declare the page, which needs nothing from outside."""
    return FreePage(title="Audit", intro=_INTRO, papers=("copa",), body=lay_out)


def lay_out() -> Loads:
    """Lay the parts out where the caller stands; returns what they do when they are loaded."""
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            variant, size, table, show, trouble = _form()
        with gr.Column(scale=4, min_width=320):
            lead = _html(_DRAWN[0], UNKNOWN)
            attack = gr.Button("Attack examples", variant="primary", elem_id="audit-attack")
            example, *others = (_html(name) for name in _DRAWN[1:])
    drawn = [trouble, lead, example, *others]

    def choose(name: str) -> list[Any]:
        rows = gr.skip() if name == _OWN else rows_of(CNN3[int(name.rpartition(" ")[2])])
        return [rows, *([gr.skip()] * len(drawn) if name == _OWN else audited(CIFAR, rows))]

    def look(rows: Sequence[Sequence[Any]], *size: Any) -> list[Any]:
        return audited(size, rows)

    def try_attack(rows: Sequence[Sequence[Any]], *size: Any) -> list[Any]:
        try:
            where = "semsim.systems.audit.examples:attacked_examples"
            return ["", *apart(where, layers_of(rows), shape_of(size))]
        except SemsimError as error:
            return [alert_html(error), UNKNOWN, ""]

    # Not `input`, which Gradio sends twice: the second answer could wipe what was asked for since.
    variant.select(choose, variant, [table, *drawn], **QUIETLY)
    show.click(look, [table, *size], drawn, **QUIETLY)
    attacked = [trouble, lead, example]
    attack.click(lambda: ["", _ATTACKING, _HTML.waiting()], None, attacked, **QUIETLY).then(
        try_attack, [table, *size], attacked, **UNSEEN
    )
    return [(lambda: audited(CIFAR, rows_of(CNN3[_FIRST])), drawn)]


def audited(size: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return what is wrong, then each of `_DRAWN` as HTML, without an example yet."""
    try:
        shape, layers = shape_of(size), layers_of(rows)
        index = security_index(layers, shape)
    except SemsimError as error:
        return [alert_html(error), *[""] * len(_DRAWN)]
    return [
        "",
        UNKNOWN,
        "",
        verdict_html(index, advice(index)),
        svg(leak_figure(index, "this network"), live=True, width_mm=_WIDTH),
        layers_html(index),
        tried_html(index, try_outs(layers, shape)),
    ]


def _form() -> tuple[Any, ...]:
    names = [f"CNN3 variant {number}" for number in CNN3]
    variant = gr.Dropdown([*names, _OWN], value=names[0], label="Network", elem_id="audit-variant")
    with gr.Row():
        size = [
            gr.Number(
                value,
                label=name.capitalize(),
                precision=0,
                minimum=1,
                maximum=LARGEST,
                min_width=90,
                elem_id=f"audit-{name}",
            )
            for name, value in zip(SIZE, CIFAR, strict=True)
        ]
    table = gr.Dataframe(
        value=rows_of(CNN3[_FIRST]),
        headers=list(COLUMNS),
        datatype="number",
        type="array",
        row_count=2,
        column_count=len(COLUMNS),
        interactive=True,
        label="Convolutions, first to last; ten classes follow",
        elem_id="audit-table",
    )
    show = gr.Button("Audit these layers", elem_id="audit-show")
    trouble = gr.HTML(elem_id="audit-trouble")
    gr.Markdown(
        "A network from a Python file: `semsim-studio audit model.py:Net`. That runs the file, "
        "so it is not offered here.",
        elem_classes="st-note",
    )
    return variant, size, table, show, trouble


def _html(name: str, value: str = "") -> Any:
    return gr.HTML(value, elem_id=f"audit-{name}", elem_classes="aud", **BARE)
