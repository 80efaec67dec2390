"""The page Audit: layers in, c(M) out, and one example attacked. No code comes from the browser."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from semsim.attacks.security.advice import advice, try_outs
from semsim.attacks.security.index import CIFAR, CNN3, Layer, security_index
from semsim.errors import SemsimError
from semsim.grid.apart import apart
from semsim.reporting.export import svg
from semsim.reporting.security_figure import leak_figure
from semsim.ui import ScienceContext, audit_view, lab
from semsim.ui.audit_form import COLUMNS, LARGEST, SIZE, layers_of, rows_of, shape_of
from semsim.ui.jobpanel import QUIETLY, alert_html

_FIRST = 1
_LOOKING = '<p class="st-lead">Working out what this network hides from the attacker …</p>'
_OWN = "own layers"
_INTRO = (
    "How much of a picture does a network's architecture alone give away to layer-wise "
    "inversion? [[c(M)]] counts what the weights and one gradient hide from the attacker: at 0 "
    "nothing is hidden. What can be recognised shows only an attack: press Attack an example."
)


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    lab.head("Audit", _INTRO)
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            variant, size, table, show, attack, trouble = _form()
        with gr.Column(scale=4, min_width=320):
            verdict = _html("verdict", _LOOKING)
            figure, example, layers, tried = (
                _html(name) for name in ("figure", "example", "layers", "tried")
            )
    lab.not_run("copa")

    drawn = [trouble, verdict, figure, layers, tried, example]

    def choose(name: str) -> list[Any]:
        rows = rows_of(_built_in(name)) if name != _OWN else gr.skip()
        return [rows, *([gr.skip()] * len(drawn) if name == _OWN else audited(CIFAR, rows))]

    def look(rows: Sequence[Sequence[Any]], *size: Any) -> list[Any]:
        return audited(size, rows)

    def try_attack(rows: Sequence[Sequence[Any]], *size: Any) -> list[Any]:
        try:
            where = "semsim.ui.audit_attack:attacked_example"
            return ["", apart(where, layers_of(rows), shape_of(size))]
        except SemsimError as error:
            return [alert_html(error), ""]

    # Not `input`, which Gradio sends twice: the second answer could wipe what was asked for since.
    variant.select(choose, variant, [table, *drawn], **QUIETLY)
    show.click(look, [table, *size], drawn, **QUIETLY)
    attack.click(try_attack, [table, *size], [trouble, example], **QUIETLY)
    return [(lambda: audited(CIFAR, rows_of(CNN3[_FIRST])), drawn)]


_DRAWN = ("verdict", "figure", "layers", "tried")


def audited(size: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """What is wrong, then verdict, picture, layers and try-outs as HTML, and no example yet."""
    try:
        shape, layers = shape_of(size), layers_of(rows)
        index = security_index(layers, shape)
    except SemsimError as error:
        return [alert_html(error), *[""] * (len(_DRAWN) + 1)]
    return [
        "",
        audit_view.verdict_html(index, advice(index)),
        svg(leak_figure(index, "this network"), live=True, width_mm=audit_view.WIDTH),
        audit_view.layers_html(index),
        audit_view.tried_html(index, try_outs(layers, shape)),
        "",
    ]


def _built_in(name: str) -> tuple[Layer, ...]:
    return CNN3[int(name.removeprefix("CNN3 variant "))]


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
    with gr.Row():
        show = gr.Button("Audit", variant="primary", elem_id="audit-show")
        attack = gr.Button("Attack an example", elem_id="audit-attack")
    trouble = gr.HTML(elem_id="audit-trouble")
    gr.Markdown(
        "A network from a Python file: `semsim-studio audit model.py:Net`. That runs the file, "
        "so it is not offered here.",
        elem_classes="st-note",
    )
    return variant, size, table, show, attack, trouble


def _html(name: str, value: str = "") -> Any:
    return gr.HTML(
        value, elem_id=f"audit-{name}", elem_classes="aud", apply_default_css=False, padding=False
    )
