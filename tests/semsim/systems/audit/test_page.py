"""The page Audit: its table of layers, its handlers, what it draws."""

import re
from dataclasses import replace
from html import unescape

import gradio as gr
import pytest

from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.words import jury_words
from semsim.sets.recognition import STATISTIC
from semsim.systems.audit import examples
from semsim.systems.audit import page as audit
from semsim.systems.audit.advice import advice, layers_html, verdict_html
from semsim.systems.audit.examples import EXAMPLES, attacked_examples
from semsim.systems.audit.page import layers_of, rows_of, shape_of
from semsim.systems.audit.security_index import CIFAR, CNN3, FullyConnected, security_index, square

NUMBER = r"\d\.\de[+-]\d\d"


@pytest.fixture
def page():
    with gr.Blocks() as blocks:
        loads = audit.lay_out()
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
    unknown = "Attack an example to see whether people could recognise the images."
    assert unknown in before["audit-lead"]
    shown = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert unknown in shown["audit-lead"]
    assert "c(M) = −2,266.5" in shown["audit-verdict"]
    assert "<svg" in shown["audit-figure"]
    assert "867" in shown["audit-layers"]
    assert "convolution 1: stride 2" in shown["audit-tried"]
    assert shown["audit-trouble"] == shown["audit-example"] == ""


def test_choosing_a_variant_fills_the_table_and_audits_it(page):
    _, handlers, _ = page
    rows, trouble, lead, example, verdict, *_ = handlers["choose"].fn("CNN3 variant 3")
    assert rows == [[3, 6, 1, 0], [3, 9, 1, 0]]
    assert trouble == example == ""
    assert lead == audit.UNKNOWN  # of another network than the one that was attacked
    assert "c(M) = 0" in verdict


def test_c_of_m_is_a_statistic_that_follows_what_is_recognised(page):
    blocks, _, [(_, outputs)] = page
    names = [output.elem_id for output in outputs]
    order = ["audit-lead", "audit-example", "audit-verdict", "audit-figure"]
    assert [name for name in names if name in order] == order
    drawn = [one.elem_id for one in blocks.blocks.values()]
    assert [name for name in drawn if name in order] == order
    for variant in CNN3:
        index = security_index(CNN3[variant], CIFAR)
        verdict = unescape(verdict_html(index, advice(index)))
        assert verdict.index("A statistic of the layers") < verdict.index(STATISTIC)
        assert verdict.index(STATISTIC) < verdict.index("c(M)")
        assert "st-lead" not in verdict
        assert not re.search(r"leak|recognised|give[sn]? away", verdict)
    buttons = {
        one.elem_id: one.variant for one in blocks.blocks.values() if isinstance(one, gr.Button)
    }
    assert [name for name, kind in buttons.items() if kind == "primary"] == ["audit-attack"]


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


def test_examples_are_attacked(page, monkeypatch):
    monkeypatch.setattr(examples, "EXAMPLES", 2)
    _, handlers, _ = page
    trouble, lead, html = handlers["try_attack"].fn(rows_of(CNN3[4]), *CIFAR)
    assert trouble == ""
    assert re.search(
        r"classifier recognises (\d) of 2 pictures from (R-GAP|COPA-prior), \d+% "
        r"\[no interval: 2 originals, fewer than 6\] \(controls: "
        r"0 of 2 grey pictures, 2 of 2 originals\)",
        lead,
    )
    assert jury_words("classifier") in unescape(lead)
    assert html.count("data:image/png;base64") == 3 * 2
    assert len(re.findall(r"\d of 2 recognised", html)) == 2
    assert "A grey picture has PSNR" in html
    assert html.count(" dB") == 3
    said = f"equation residual up to {NUMBER}.*?gradient distance up to {NUMBER} .a grey picture's:"
    assert len(re.findall(said, unescape(html))) == 2


class Knows:
    """An attack that inverts the examples of a label below `most` and fails on the others."""

    def __init__(self, most):
        self.most = most

    def __call__(self, seen, *, rng):
        if seen.label >= self.most:
            raise AttackFailedError("No gradient.")
        return RGap()(seen, rng=rng)


@pytest.mark.parametrize("order", [("half", "all"), ("all", "half")])
def test_the_lead_is_that_of_the_attack_of_which_most_is_recognised(order, monkeypatch):
    attacks = {"half": Knows(2), "all": Knows(EXAMPLES)}
    monkeypatch.setattr(examples, "_ATTACKS", {name: attacks[name] for name in order})
    lead, html = attacked_examples((square(1, 3, 1), FullyConnected(outputs=10)), CIFAR)
    assert f"recognises {EXAMPLES} of {EXAMPLES} pictures from all" in lead
    assert f"2 of {EXAMPLES} recognised" in html


def test_a_blow_up_of_an_example_is_told(monkeypatch):
    monkeypatch.setattr(examples, "_ATTACKS", {"R-GAP": RGap()})
    narrow = (square(3, 4, 3), square(3, 4, 2), square(2, 2, 1), FullyConnected(outputs=10))
    _, html = attacked_examples(narrow, CIFAR)
    assert re.search(r"\d blew up", html)


def test_an_exact_inversion_is_called_exact():
    _, html = attacked_examples((square(1, 3, 1), FullyConnected(outputs=10)), CIFAR)
    assert html.count("exact") == 2
    assert "blew up" not in html


def test_an_attack_that_fails_on_an_example_counts_and_says_why(monkeypatch):
    monkeypatch.setattr(examples, "_ATTACKS", {"half": Knows(2)})
    lead, html = attacked_examples((square(1, 3, 1), FullyConnected(outputs=10)), CIFAR)
    assert f"recognises 2 of {EXAMPLES} pictures from half" in lead
    assert html.count('class="rec-empty"') == 2
    assert html.count("failed: No gradient.") == 1


def test_what_cannot_be_attacked_says_why(page):
    _, handlers, _ = page
    trouble, lead, html = handlers["try_attack"].fn(rows_of(CNN3[4]), 3, 16, 16)
    assert "set the input to that" in trouble
    assert (lead, html) == (audit.UNKNOWN, "")
    with pytest.raises(SettingsError, match="too large"):
        attacked_examples((square(3, 64, 1, 1), FullyConnected(outputs=10)), CIFAR)
