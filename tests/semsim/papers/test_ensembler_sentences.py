"""`reproduce ensembler --paper-table 4`: sentences, at the smallest preset whole."""

import json
from dataclasses import replace

import pytest
import torch
from made_papers import check_kept
from typer.testing import CliRunner

from benchmarks import papers_split
from semsim.base.errors import SettingsError
from semsim.cli.reproduce import app
from semsim.papers.ensembler_sentences import (
    PAPER_ROWS,
    PLANS,
    counted,
    guesses,
    read_sentences,
    run_sentences,
    sentence_verdicts,
    split_sentences,
)
from semsim.papers.sentences import PLACES, Translator, numbered, sentences
from semsim.systems.split.defences import Ensembler, Shredder, Undefended
from semsim.systems.split.networks import observe
from semsim.systems.split.plan import PRESETS, ShadowAttack, SplitPlace, SplitTrainSettings
from semsim.systems.split.training import Bench

TINY = ShadowAttack(epochs=1, decoder_epochs=1, batch_size=32)


@pytest.fixture(scope="module")
def pairs():
    found = sentences(800, 0)
    return numbered(found[:500]), numbered(found[500:])


@pytest.fixture(scope="module")
def bench(pairs):
    return Bench(
        network=Translator(width=16, heads=2),
        data=pairs[0].pick(range(64)),
        settings=SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=32),
        seed=0,
        device=torch.device("cpu"),
    )


def seen_of(system, bench, pairs):
    rng = torch.Generator().manual_seed(1)
    return observe(system, pairs[1].inputs[:40], bench.network, bench.data, rng)


def right(read, pairs):
    """Of the words before the end."""
    source = pairs[1].source[: len(read)]
    return (read == source)[source > 2].float().mean().item()


@pytest.mark.parametrize("align", [0.0, 10.0])
def test_an_attack_reads_a_sentence_a_query_and_leaves_the_server_as_it_was(align, bench, pairs):
    seen = seen_of(Ensembler(bodies=2, selected=1)(bench), bench, pairs)
    kept = [{k: v.clone() for k, v in body.state_dict().items()} for body in seen.bodies]
    before = torch.random.get_rng_state()
    told = []
    first, again, other = (
        read_sentences(
            replace(TINY, align=align), seen, torch.Generator().manual_seed(seed), told.append
        )
        for seed in (0, 0, 1)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert told[-1].done == told[-1].total
    assert first.words.shape == (40, PLACES)
    assert torch.equal(first.words, again.words)
    assert not torch.equal(first.words, other.words)
    for body, was in zip(seen.bodies, kept, strict=True):
        assert all(torch.equal(v, was[k]) for k, v in body.state_dict().items())
    with pytest.raises(SettingsError, match="2 bodies"):
        read_sentences(replace(TINY, bodies=(2,)), seen, torch.Generator(), told.append)


def test_the_decoder_reads_what_it_was_made_for(bench, pairs):
    """On features of the shadow itself nearly every word comes back, so that a poor reading of the
    client's is not the decoder's fault."""
    seen = replace(seen_of(Undefended()(bench), bench, pairs), public=pairs[0])
    attack = replace(TINY, decoder_epochs=40, lr=1e-2)
    got = read_sentences(attack, seen, torch.Generator().manual_seed(0), lambda progress: None)
    with torch.no_grad():
        own = got.decoder.read(got.shadow.head(pairs[1].inputs[:40]))
    assert right(own, pairs) > 0.9
    assert right(got.words, pairs) < right(own, pairs)


def test_counting_reads_a_cipher_and_fails_where_noise_is_drawn_anew(bench, pairs):
    """Better than the commonest word of each place, whatever the embedding; not behind Shredder."""
    public, private = pairs[0].source, pairs[1]
    best = max(
        right(words, pairs)
        for words in guesses(public, len(private), torch.Generator().manual_seed(0)).values()
    )
    found = {}
    for name, defence in {"none": Undefended(), "fresh": Shredder(sigma=0.3)}.items():
        system = defence(bench)
        rng = torch.Generator().manual_seed(1)
        seen = observe(system, private.inputs, bench.network, bench.data, rng)
        found[name] = right(counted(seen.features, public), pairs)
    assert found["none"] > best + 0.05
    assert found["fresh"] < found["none"] - 0.05


def test_counting_matches_ranks():
    """Worked out by hand: two places, the commonest vector is the commonest word."""
    features = torch.tensor([[1.0, 5.0], [1.0, 6.0], [2.0, 6.0]])[:, None, :]
    public = torch.tensor([[9, 3], [9, 4], [8, 4], [9, 4]])
    assert counted(features, public).tolist() == [[9, 3], [9, 4], [8, 4]]


def test_guesses_are_what_one_works_out_by_hand():
    public = torch.tensor([[5, 7, 0], [5, 6, 0], [4, 7, 7], [5, 7, 0]])
    found = guesses(public, 2, torch.Generator().manual_seed(0))
    assert found["commonest word"].tolist() == [[7, 7, 7]] * 2
    assert found["commonest word of each place"].tolist() == [[5, 7, 0]] * 2
    assert all(row in public.tolist() for row in found["another sentence"].tolist())


DEFENCES = {"none", "single", "ensembler:bodies=2,selected=1"}
GUESSES = {"commonest word", "commonest word of each place", "another sentence"}


def reproduced(folder, *words):
    place = ["--data-dir", str(folder), "--device", "cpu"]
    asked = ["ensembler", "--paper-table", "4", "--preset", "smoke", *words, *place]
    return CliRunner().invoke(app, asked)


def test_the_smallest_preset_has_every_defence_attack_and_guess(tmp_path):
    done = reproduced(tmp_path, "--json")
    assert done.exit_code == 0, done.output
    parts = json.loads(done.stdout)
    read = {(row["defence"], row["attack"]): row for row in parts["attacks"]}
    attacks = {"adaptive", "adaptive-aligned", "counting"}
    assert {(d, a) for d in DEFENCES for a in attacks} <= set(read)
    assert ("ensembler:bodies=2,selected=1", "oracle-aligned") in read
    for row in read.values():
        assert 0 <= row["words_mean"] <= 1
        assert row["n"] == 1
    assert read["none", "adaptive"]["change_mean"] == 0
    assert {row["guess"] for row in parts["guesses"]} == GUESSES
    text = (tmp_path / "split" / "ensembler-smoke-table4.md").read_text()
    assert text.strip() in done.stderr
    for row in PAPER_ROWS:
        assert f"| {' | '.join(row.values())} |" in text
    for guess in GUESSES:
        assert f"| *baseline: {guess}* |" in text
    check_kept("ensembler-table-4", papers_split.read_sentences(tmp_path))
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
    plan = PLANS[preset]
    assert plan.name == f"ensembler-{preset}-table4"
    public, private = split_sentences(plan)
    assert (len(public), len(private)) == (plan.public, plan.private)
    assert not {p.english for p in public.pairs} & {p.english for p in private.pairs}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--image-dir", "here"), "Table 4 is of sentences"),
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
    rows = json.loads(done.stdout)["works"]
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
