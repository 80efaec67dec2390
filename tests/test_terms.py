"""Terms of the benchmark: without any they are InvGrad's descent, and each does what it says."""

from dataclasses import replace

import pytest
import torch

from benchmarks import terms
from benchmarks.claims import Claim
from benchmarks.keeping import Finds
from benchmarks.spear import fresh
from benchmarks.terms import Cell, Terms, cell_of, drawn, summed, verdict
from semsim.attacks.descent.first_order import _objective, slope_of
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import BatchGradient, Update
from semsim.datasets.symbols import Symbols
from semsim.targets.lenet import CNN4

WAYS = {
    "alone": None,
    "batch": BatchGradient(batch=2),
    "epochs": Update(steps=2, batch=2, held=2, lr=0.05),
}


@pytest.fixture(scope="module", params=WAYS)
def cell(request) -> Cell:
    data = Symbols(train_per_class=1, test_per_class=1)("train")
    model = fresh(data, 0, CNN4(width=4, batch_norm=True))
    return cell_of(model, drawn(data, 0).pick([0, 1]), WAYS[request.param])


@pytest.fixture(scope="module")
def unknown(cell):
    return torch.randn(cell.images.shape, generator=torch.Generator().manual_seed(1))


def test_without_terms_the_descent_is_invgrads(cell, unknown):
    values, slope = cell.match(Terms(tv=0.1), 0).slope(unknown)
    own = slope_of(_objective(cell.distance, (), InvGrad(tv=0.1)), unknown)
    torch.testing.assert_close((values, slope), own, rtol=1e-4, atol=1e-7)


def test_the_largest_elements_are_matched_and_as_many_as_asked(cell, unknown):
    match = cell.match(Terms(share=0.1, largest=True), 0)
    every = torch.cat([one.flatten(1) for one in cell.distance.leaked], 1).abs()
    shares = (every >= match.least[:, None]).double().mean(1)
    assert shares.tolist() == pytest.approx([0.1] * len(every), abs=0.01)
    drawn_anew = cell.match(Terms(share=0.1), 0)
    assert not torch.equal(drawn_anew.matched(unknown), drawn_anew.matched(unknown))
    assert torch.equal(match.matched(unknown), match.matched(unknown))
    assert (match.matched(cell.images) < 1e-4).all()


def test_a_step_up_the_slope_has_the_length_asked_for_and_bends_the_slope(cell, unknown):
    match = cell.match(Terms(up=0.1), 0)
    _, slope = cell.match(Terms(), 0).slope(unknown)
    dims = (0, 1, 2, 3) if match.joint else (1, 2, 3)
    there = unknown + 0.1 * slope / slope.square().mean(dims, keepdim=True).sqrt()
    assert (there - unknown).square().mean().sqrt() == pytest.approx(0.1, rel=1e-3)
    _, ahead = cell.match(Terms(), 0).slope(there)
    torch.testing.assert_close(match.slope(unknown)[1], (slope + ahead) / 2)


def test_starts_are_pulled_to_their_mean_and_no_further(cell):
    pulled, free = (cell.match(Terms(starts=3, pull=pull), 0) for pull in (10.0, 0.0))
    starts = pulled.start(cell.images.shape, 0)
    force = pulled.slope(starts)[1] - free.slope(starts)[1]
    apart = starts.view(3, *cell.images.shape)
    expected = 20 * (apart - apart.mean(0)).view_as(force)
    torch.testing.assert_close(force, expected, rtol=1e-3, atol=1e-3)
    assert [one.shape for one in pulled.found(cell.images.shape, 2, 0)] == [cell.images.shape] * 2


def test_copies_of_epochs_that_are_the_pictures_match(cell):
    match = cell.match(Terms(copies=1.0, tv=0.0), 0)
    assert match.epochs == cell.epochs == (2 if cell.distance.joint and cell.epochs > 1 else 1)
    model = cell.distance.model
    right = ((cell.images - model.mean) / model.std).repeat(match.epochs, 1, 1, 1)
    assert (match.objective(right).abs() < 1e-4).all()
    if match.epochs > 1:
        torn = right.clone()
        torn[len(cell.images) :] += 1
        loose = replace(match.terms, copies=1e-9)
        assert match.objective(torn).mean() > cell.match(loose, 0).objective(torn).mean() + 0.01


def test_a_difference_is_named_by_its_interval():
    base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    above = [one + 1 + 0.1 * place for place, one in enumerate(base)]
    assert verdict(above, base, "a term")[1] == "above"
    assert verdict(base, above, "a term")[1] == "below"
    assert verdict(base[::-1], base, "a term")[1] == "no difference"
    assert verdict([1.0, 2.0], [1.0, 1.0], "a term")[1] == ""
    assert verdict(above, base, terms.INVGRAD) == ("", "")


def test_a_term_is_kept_that_is_above_twice_and_below_never(tmp_path, capsys):
    def line(who, over):
        return f"| s | 8 | {who} | w | 1 | 2.0 | x | {over} |"

    heads = ["| head |", "| --- |"]
    group, copies, partial = "group consistency", "copies of each epoch", "partial matching, drawn"
    lines = [
        *(line(group, over) for over in ("above", "no difference")),
        *(line(copies, "above") for _ in range(2)),
        *(line(partial, over) for over in ("above", "above", "below")),
        line(terms.WITHOUT, "above"),
    ]
    with Finds("", tmp_path) as finds:
        summed(finds, [Claim([*heads, *lines])])
    told = dict.fromkeys((group, partial), "no") | {copies: "yes", terms.WITHOUT: "control"}
    rows = finds.claims["summary"].value[2:]
    assert {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows} == told
