"""The page Audit: its table of layers, its handlers, what it draws."""

import re
from dataclasses import replace
from html import unescape

import gradio as gr
import pytest

from semsim.attacks.security.index import CIFAR, CNN3, FullyConnected, security_index, square
from semsim.errors import SettingsError
from semsim.ui import ScienceContext, audit
from semsim.ui.audit import layers_html, layers_of, rows_of, shape_of, verdict_html
from semsim.ui.audit_attack import attacked_example

NUMBER = r"\d\.\de[+-]\d\d"


@pytest.fixture
def page(tmp_path):
    context = ScienceContext(
        data=tmp_path,
        checkpoints=tmp_path,
        studies=list,
        labels={}.__getitem__,
        votes={}.__getitem__,
        device="cpu",
    )
    with gr.Blocks() as blocks:
        loads = audit.render(context)
    handlers = {fn.fn.__name__: fn for fn in blocks.fns.values()}
    return blocks, handlers, loads


@pytest.mark.parametrize("variant", CNN3)
def test_the_table_of_a_built_in_network_means_that_network(variant):
    assert layers_of(rows_of(CNN3[variant])) == CNN3[variant]


def test_empty_rows_and_an_empty_padding_are_fine():
    rows = [["3", 6.0, 1, None], ["", None, "", float("nan")], [1, 2, 1, 1]]
    expected = (square(3, 6, 1), square(1, 2, 1, 1), FullyConnected(outputs=10))
    assert layers_of(rows) == expected


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([3, 2.5, 1, 0], "Row 1: channels is a whole number"),
        ([3, 2, 0, 0], "Row 1: stride is"),
        ([3, 2, 1, -1], "Row 1: padding is"),
        (["<b>", 2, 1, 0], "Row 1: kernel is"),
        ([3, 100000, 1, 0], "to 512"),
        ([None, 2, 1, 0], "Row 1: kernel is"),
        ([float("inf"), 2, 1, 0], "Row 1: kernel is"),
    ],
)
def test_a_wrong_number_is_named(row, says):
    with pytest.raises(SettingsError, match=says):
        layers_of([row])


def test_too_many_rows_and_strange_sizes_are_refused():
    with pytest.raises(SettingsError, match="takes 12"):
        layers_of([[1, 1, 1, 0]] * 13)
    assert shape_of(("3", 32.0, 32)) == CIFAR
    for size, wrong in (
        ((None, 32, 32), "channels"),
        ((3, 0, 4), "height"),
        ((3, 9999, 4), "height"),
        ((3, 4, 2.5), "width"),
        ((3, 4, "<b>"), "width"),
    ):
        with pytest.raises(SettingsError, match=f"Input: {wrong} is a whole number from 1 to 512"):
            shape_of(size)


def test_the_page_opens_with_the_first_variant(page):
    _, _, [(load, outputs)] = page
    before = {output.elem_id: output.value for output in outputs}
    assert "Working out" in before["audit-verdict"]
    shown = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert "c(M) = −2,266.5" in shown["audit-verdict"]
    assert "<svg" in shown["audit-figure"]
    assert "867" in shown["audit-layers"]
    assert "convolution 1: stride 2" in shown["audit-tried"]
    assert shown["audit-trouble"] == shown["audit-example"] == ""


def test_choosing_a_variant_fills_the_table_and_audits_it(page):
    _, handlers, _ = page
    rows, trouble, verdict, *_ = handlers["choose"].fn("CNN3 variant 3")
    assert rows == [[3, 6, 1, 0], [3, 9, 1, 0]]
    assert trouble == ""
    assert "c(M) = 0" in verdict


def test_what_is_only_a_bound_is_marked_as_one():
    index = security_index(CNN3[4], CIFAR)
    assert "≤" not in layers_html(index) + verdict_html(index, ("So.", ""))
    first, *rest = index.layers
    bound = replace(index, layers=(replace(first, exact=False), *rest))
    assert layers_html(bound).count("≤") == 1
    assert f">≤ {first.rank:,}<" in layers_html(bound)
    assert "c(M) ≤ " in verdict_html(bound, ("So.", ""))


def test_a_mistake_is_told_and_clears_what_was_shown(page):
    _, handlers, _ = page
    told, *others = handlers["look"].fn([["<b>", 1, 1, 0]], *CIFAR)
    assert 'role="alert"' in told
    assert "<b>" not in told
    assert set(others) == {""}


def test_an_example_is_attacked(page):
    _, handlers, _ = page
    trouble, html = handlers["try_attack"].fn(rows_of(CNN3[4]), *CIFAR)
    assert trouble == ""
    assert html.count("data:image/png;base64") == 3
    assert "COPA-prior: PSNR" in html
    assert "A grey picture has PSNR" in html
    named = r"recognise it\? the private image yes, R-GAP (yes|no), COPA-prior (yes|no), a grey"
    assert re.search(named, html)
    for name in ("R-GAP", "COPA-prior"):
        said = f"{name}: equation residual {NUMBER}, gradient distance {NUMBER} .a grey picture's:"
        assert re.search(said, unescape(html))


def test_a_blow_up_of_the_example_is_told():
    narrow = (square(3, 4, 3), square(3, 4, 2), square(2, 2, 1), FullyConnected(outputs=10))
    words = attacked_example(narrow, CIFAR).split('<p class="st-note">')[-1]
    rgap, prior = words.split("COPA-prior:")
    assert "It blew up" in rgap
    assert "blew up" not in prior


def test_an_exact_inversion_is_called_exact():
    html = attacked_example((square(1, 3, 1), FullyConnected(outputs=10)), CIFAR)
    assert "R-GAP: exact" in html


def test_what_cannot_be_attacked_says_why(page):
    _, handlers, _ = page
    trouble, html = handlers["try_attack"].fn(rows_of(CNN3[4]), 3, 16, 16)
    assert "set the input to that" in trouble
    assert html == ""
    with pytest.raises(SettingsError, match="too large"):
        attacked_example((square(3, 64, 1, 1), FullyConnected(outputs=10)), CIFAR)
