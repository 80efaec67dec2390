"""`reproduce ensembler --table 4`: sentences beside the paper's, at the smallest preset whole."""

import json

import pytest
from made_papers import check_kept
from typer.testing import CliRunner

from benchmarks.papers_split import read_sentences
from semsim.cli.reproduce import app
from semsim.papers.ensembler_sentences import (
    PAPER_ROWS,
    PLANS,
    check_sentences,
    run_sentences,
    sentence_verdicts,
    split_sentences,
)
from semsim.systems.split.plan import PRESETS, SplitPlace

DEFENCES = {"none", "single", "ensembler:bodies=2,selected=1"}
GUESSES = {"commonest word", "commonest word of each place", "another sentence"}


def reproduced(folder, *words):
    place = ["--data-dir", str(folder), "--device", "cpu"]
    asked = ["ensembler", "--table", "4", "--preset", "smoke", *words, *place]
    return CliRunner().invoke(app, asked)


def test_the_smallest_preset_has_every_defence_attack_and_guess(tmp_path):
    done = reproduced(tmp_path, "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    read = {(row["defence"], row["attack"]): row for row in rows if "attack" in row}
    attacks = {"adaptive", "adaptive-aligned", "counting"}
    assert {(d, a) for d in DEFENCES for a in attacks} <= set(read)
    assert ("ensembler:bodies=2,selected=1", "oracle-aligned") in read
    for row in read.values():
        assert 0 <= row["words_mean"] <= 1
        assert row["n"] == 1
    assert read["none", "adaptive"]["change_mean"] == 0
    assert {row["guess"] for row in rows if "guess" in row} == GUESSES
    text = (tmp_path / "split" / "ensembler-smoke-table4.md").read_text()
    assert text.strip() in done.stderr
    for row in PAPER_ROWS:
        assert f"| {' | '.join(row.values())} |" in text
    for guess in GUESSES:
        assert f"| *guess: {guess}* |" in text
    check_kept("ensembler-table-4", read_sentences(tmp_path))
    assert (
        "| none, adaptive-aligned: ground truth | standard translation | shadow translation |"
        in text
    )


def test_what_was_done_is_not_done_again_and_workers_change_nothing(tmp_path):
    def run(folder, workers=1):
        place = SplitPlace(data=folder, checkpoints=folder, device="cpu")
        return run_sentences(PLANS["smoke"], place, lambda progress: None, workers)

    first = run(tmp_path / "one")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "one").rglob("*.pt")}
    assert len(kept) == 3 + 7  # systems; two attacks on each, and the oracle
    assert json.dumps(run(tmp_path / "one")) == json.dumps(first)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert json.dumps(run(tmp_path / "two", 2)) == json.dumps(first)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_plan_whose_private_sentences_are_not_public(preset):
    plan = check_sentences(PLANS[preset])
    assert plan.name == f"ensembler-{preset}-table4"
    public, private = split_sentences(plan)
    assert (len(public), len(private)) == (plan.public, plan.private)
    assert not {p.english for p in public.pairs} & {p.english for p in private.pairs}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--images", "here"), "Table 4 is of sentences"),
        (("--size", "32"), "Table 4 is of sentences"),
        (("--preset", "huge"), "preset is one of smoke, small, paper"),
    ],
)
def test_what_cannot_be_done_says_why(words, says, tmp_path):
    done = reproduced(tmp_path, *words)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_a_plan_says_what_it_takes_and_computes_nothing(tmp_path):
    done = reproduced(tmp_path, "--plan", "--json")
    rows = json.loads(done.stdout)
    assert {row["what"] for row in rows} == {
        f"{do} {d}" for do in ("train", "attack") for d in DEFENCES
    }
    assert all(row["steps"] >= row["cells"] > row["done"] == 0 for row in rows)
    assert not list(tmp_path.rglob("*"))


def row(defence, content, seed, attack="adaptive"):
    return {"defence": defence, "attack": attack, "content": content, "defence_seed": seed}


def test_a_verdict_has_its_control_beside_it():
    rows = [row("none", c, n) for n, c in enumerate((0.50, 0.52, 0.51, 0.50, 0.52, 0.51))]
    rows += [row("single", c, n) for n, c in enumerate((0.10, 0.30, 0.20, 0.10, 0.30, 0.20))]
    rows += [row("ensembler", 0.60, 0)]
    none, single, ensembler = sentence_verdicts(
        rows, {"a": {"content": 0.05}, "b": {"content": 0.2}}
    )
    assert none == (
        "none, adaptive: 0.510 of content words, more than guessing (b, 0.200; +0.310 ± 0.009)."
    )
    assert "0.200 of content words, not shown to differ from guessing" in single
    assert "; less than the undefended system (-0.310 ± 0.09" in single
    assert "0.600 of content words, not shown to differ from guessing" in ensembler  # one system
    unsaid = "(+0.090, no interval: 1 system, fewer than 6)"
    assert f"not shown to differ from the undefended system {unsaid}" in ensembler
