"""A SemSim beside its initial weights and a training on shuffled votes, and what is said of it."""

import copy
import shutil
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from semsim.base.cli.terminal import TerminalBar
from semsim.base.errors import SettingsError, StopRequestedError
from semsim.base.metric_spec import CALIBRATED, START
from semsim.base.progress import Progress, silent
from semsim.base.stats.intervals import too_few
from semsim.base.stats.roc import POOLED, WITHIN
from semsim.learning.ablations_run import (
    JudgedOrder,
    Workplace,
    part_of,
    train_and_judge,
    train_shuffles,
)
from semsim.learning.baselines import (
    CHOICES,
    SHUFFLED,
    beaten,
    check_controls,
    controls_of,
    distribution,
    verdict_of,
)
from semsim.learning.card import card_markdown, read_card
from semsim.learning.default_checkpoint import promote
from semsim.learning.evaluation import evaluate
from semsim.learning.initial import starts
from semsim.learning.settings import Order, control_path
from semsim.learning.splits import HoldOut
from semsim.learning.train import train
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import N_PAIRS, read_training


def place_in(folder):
    folders = {"checkpoints": folder / "checkpoints", "scores": folder / "scores"}
    return Workplace(**folders, device="cpu", metrics=("mse", "ssim"))


def asked_at(place, settings):
    order = Order(name="mine", checkpoints=place.checkpoints, settings=settings)
    return JudgedOrder(order=order, hold_out=HoldOut(), controls="all")


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def asked(place, quick):
    return asked_at(place, quick)


@dataclass(frozen=True)
class Done:
    """A training with all its controls that went through at once, for several tests to read."""

    asked: JudgedOrder
    told: list[Progress]
    outcome: dict[str, Any]

    @property
    def checkpoint(self):
        return self.asked.order.checkpoint


@pytest.fixture(scope="module")
def done(material, quick, tmp_path_factory):
    folder, told = tmp_path_factory.mktemp("done"), []
    place = place_in(folder)
    asked = asked_at(place, quick)
    outcome = train_and_judge(asked, material, place, folder / "job", told.append)
    return Done(asked, told, outcome)


def row(metric, difference, low=None, high=None, control="", other_auc=0.5):
    return {
        **{"metric": metric, "title": metric.upper(), "control": control, "low": low},
        **{"high": high, "difference": difference, "auc": 0.7, "other_auc": other_auc},
        **{"n_originals": 8, "interval_undefined": too_few(5), "undefined": None},
        "scope": POOLED,
    }


def judged(*rows, **absent):
    told = {"moved": True, "shuffled": None, "scale_differs": []}
    return {"sample": "held-out", "against": list(rows), "absent": absent, **told}


def shuffles(*aucs, failed=0):
    """What so many shuffles reach, as `train_shuffles` has it."""
    rows = [{"rho": None, "tau": None, "auc": {"pooled": auc}, "seconds": 1.0} for auc in aucs]
    return rows + [{"why": "The loss became nan.", "seconds": 1.0}] * failed


def test_every_evaluation_has_the_start_and_the_shuffled_votes(done):
    outcome, told = done.outcome, done.told
    for sample, more in (("held_out", [SHUFFLED]), ("in_sample", [])):
        names = [one["metric"] for one in outcome[sample]["metrics"]]
        own = ["semsim:mine", "semsim:mine.start", "semsim:mine.calibrated"]
        assert names == [*own, *more, "block:structure", "mse", "ssim", "human"]
        assert outcome[sample]["absent"] == {}
    card = read_card(done.checkpoint)
    text = card_markdown(card)
    assert "| SemSim (mine, initial weights) |" in text
    assert "| Calibrated baseline (mine) |" in text
    pairs = round(card["training"][N_PAIRS])  # without the originals that choose the epoch
    assert 0 < pairs < outcome["in_sample"]["n_decided"]
    assert f"- The calibrated baseline: 4 weights, fitted to {pairs} pairs" in text
    assert "| 5 shuffles of the votes: mean [lowest, highest] |" in text
    for sentence in verdict_of(card["held_out"]).sentences:
        assert f"- {sentence}" in text
    shares = [progress.done / progress.total for progress in told if progress.total]
    assert shares[-1] == 1
    assert [one for one in told if "d_plus" in one.values][-1].done == told[0].total / 6


def test_every_shuffle_is_another_and_all_are_kept_in_the_card(done):
    judged = read_card(done.checkpoint)["held_out"]
    found = judged["shuffled"]
    each = [row["auc"]["pooled"] for row in found["each"]]
    assert (len(each), found["n"], found["failed"]) == (5, 5, 0)
    assert len(set(map(str, found["each"]))) > 1
    own = next(row for row in judged["metrics"] if row["metric"] == "semsim:mine")
    reach = sum(auc >= own["auc"]["pooled"]["auc"] for auc in each)
    assert found["p"] == pytest.approx((1 + reach) / 6)
    row = next(row for row in judged["metrics"] if row["metric"] == SHUFFLED)
    pooled = row["auc"]["pooled"]
    assert (pooled["low"], pooled["high"]) == (min(each), max(each))
    assert pooled["auc"] == pytest.approx(sum(each) / 5)
    found = {path.name for path in done.checkpoint.parent.glob("*.safetensors")}
    assert found == {"mine.safetensors", "mine.start.safetensors", "mine.calibrated.safetensors"}


def test_the_start_is_the_network_before_it_saw_a_vote(done, material, quick):
    began = []
    once = replace(quick, epochs=1)
    train(material.labels, once, begun=lambda m: began.append(copy.deepcopy(m.state_dict())))
    start = load_semsim(control_path(done.checkpoint, START))
    for name, value in began[0].items():  # weights follow from the seed, channels from the images
        if name not in ("mean", "std"):
            assert torch.equal(start.state_dict()[name], value)
    trained = load_semsim(done.checkpoint).state_dict()
    assert not torch.equal(start.state_dict()["body.0.weight"], trained["body.0.weight"])
    facts = read_training(control_path(done.checkpoint, START))
    assert (facts.control, facts.n_triplets, facts.simulated) == (START, 0, False)


def test_a_stop_in_the_control_is_gone_on_from(asked, material, place, tmp_path, done):
    def stop(progress):
        if "shuffle 3 of 5, epoch 2" in progress.note and "loss" in progress.note:
            raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        train_and_judge(asked, material, place, tmp_path / "job", stop)
    first = load_semsim(asked.order.checkpoint).state_dict()
    kept = [tmp_path / "job" / SHUFFLED / f"{number}.json" for number in (1, 2)]
    before = [path.stat().st_mtime_ns for path in kept]
    told = []
    found = train_and_judge(asked, material, place, tmp_path / "job", told.append)
    assert [path.stat().st_mtime_ns for path in kept] == before
    shuffles = [one.note for one in told if "control" in one.note]
    assert shuffles[0].startswith("control, shuffle 3 of 5")
    assert found["held_out"]["shuffled"] == done.outcome["held_out"]["shuffled"]
    one, same = (
        load_semsim(control_path(each, START)).state_dict()
        for each in (asked.order.checkpoint, done.checkpoint)
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    again = load_semsim(asked.order.checkpoint).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_what_belongs_to_another_checkpoint_is_no_control(done, tmp_path):
    shutil.copytree(done.checkpoint.parent, tmp_path / "checkpoints")
    checkpoint = tmp_path / "checkpoints" / done.checkpoint.name
    found, absent = controls_of(checkpoint)
    assert (set(found), absent) == ({START, CALIBRATED}, {})
    for control in found:
        control_path(checkpoint, control).write_bytes(checkpoint.read_bytes())
    assert controls_of(checkpoint) == (
        {},
        {START: "its initial weights were not kept", CALIBRATED: "it was not kept"},
    )


def test_controls_are_no_semsim_of_their_own(done):
    place = done.checkpoint.parent
    assert list(starts(place)) == ["mine.safetensors"]
    with pytest.raises(SettingsError, match="name of a control"):
        promote(place, "mine.start")
    with pytest.raises(SettingsError, match=r"leave out \.calibrated"):
        _ = replace(done.asked.order, name="other.calibrated").checkpoint


def test_shuffled_votes_keep_what_the_sampler_counts(labels, quick):
    plain = train(labels, replace(quick, epochs=1))
    shuffled = train(labels, replace(quick, epochs=1, shuffle=1))
    another = train(labels, replace(quick, epochs=1, shuffle=2))
    assert plain.n_triplets == shuffled.n_triplets
    for one, other in zip(plain.training, shuffled.training, strict=True):
        assert one.key == other.key
        assert len(one.recognisable) == len(other.recognisable)
        assert set(one.images) == set(other.images)
    assert len({plain.training, shuffled.training, another.training}) == 3


def test_there_is_no_other_choice_of_controls():
    assert [check_controls(one) for one in CHOICES] == ["all", "start"]
    with pytest.raises(SettingsError, match="all, start"):
        check_controls("none")


def test_one_bar_for_all_trainings_and_one_set_of_curves():
    told = []
    part_of(told.append, 0, 3)(Progress(10, 10, "a", {"loss": 1.0}))
    part_of(told.append, 2, 3)(Progress(5, 10, "b", {"loss": 2.0}))
    assert [(p.done, p.total) for p in told] == [(10, 40), (25, 40)]
    assert [dict(p.values) for p in told] == [{"loss": 1.0}, {}]


def test_a_log_has_a_line_an_epoch_of_the_control_as_of_the_training(done, capsys):
    with TerminalBar() as report:
        for one in done.told:
            report(one)
    lines = [line.split("% ")[1] for line in capsys.readouterr().err.splitlines()]
    losses = [line.split(" loss ")[0] for line in lines if " loss " in line]
    epochs = [f"epoch {number} of 3:" for number in (1, 2, 3)]
    shuffles = [f"control, shuffle {number} of 5" for number in range(1, 6)]
    assert losses == [*epochs, *(f"{one}, {epoch}" for one in shuffles for epoch in epochs)]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((0.11, 0.02, 0.19), "beats it by 0.11 in AUC [0.02, 0.19]"),
        ((0.05, -0.03, 0.12), "ahead of it by 0.05 in AUC [−0.03, 0.12], which chance could do"),
        (
            (0.05, None, None),
            f"ahead of it by 0.05 in AUC ({too_few(5)}), which chance could do",
        ),
        ((-0.16, -0.3, -0.02), "worse than it by 0.16 in AUC [0.02, 0.30]"),
        ((-0.16, -0.3, 0.02), "behind it by 0.16 in AUC [−0.02, 0.30], which chance could do"),
        ((0.0, -0.1, 0.1), "no better than it"),
        ((0.004, -0.1, 0.1), "no better than it"),
        ((-0.004, -0.01, 0.0), "no better than it"),
        ((0.004, 0.001, 0.01), "beats it by less than 0.01 in AUC [0.001, 0.01]"),
    ],
)
def test_words_say_no_more_than_the_interval(found, words):
    assert beaten(row("mse", *found), "it") == words


def test_a_semsim_that_beats_all_is_called_that():
    found = verdict_of(
        judged(
            *(
                row("mse", 0.2, 0.1, 0.3, other_auc=0.6),
                row("psnr", 0.11, 0.02, 0.19, other_auc=0.7),
            ),
            row("semsim:a.start", 0.2, 0.1, 0.3, START),
            row("semsim:a.calibrated", 0.2, 0.1, 0.3, CALIBRATED),
        )
        | {"shuffled": distribution(shuffles(*[0.4] * 20), 0.7)}
    )
    assert found.sentences == (
        "Beats PSNR, the best of MSE, PSNR and SSIM here, by 0.11 in AUC [0.02, 0.19] on 8 "
        "held-out originals.",
        "It beats its initial weights (the same network, not trained on votes) by 0.20 in AUC "
        "[0.10, 0.30].",
        "It beats the calibrated baseline (pixels and structure, weighed by the same votes) by "
        "0.20 in AUC [0.10, 0.30].",
        "It beats the same training on shuffled votes: none of 20 reaches its AUC (20 shuffles, "
        "p = 0.048; mean 0.40, 0.40 to 0.40).",
    )
    assert found.lost == ()


def test_where_a_scale_differs_by_original_auc_is_within_originals():
    rows = (row("ssim", 0.12, 0.01, 0.2), row("semsim:a.calibrated", 0.1, -0.1, 0.3, CALIBRATED))
    found = distribution(
        [{"rho": None, "tau": None, "auc": {POOLED: 0.9, WITHIN: one}} for one in (0.6, 0.8)],
        0.7,
        WITHIN,
    )
    assert (found["reach"], found["mean"]) == (1, pytest.approx(0.7))
    told = judged(*({**one, "scope": WITHIN} for one in rows)) | {
        "scale_differs": ["MSE"],
        "shuffled": found,
    }
    classic, _, baseline, shuffled = verdict_of(told).sentences
    assert "by 0.12 in AUC within originals [0.01, 0.20]" in classic
    assert "does not beat the calibrated baseline (pixels and structure, weighed by" in baseline
    assert "by 0.10 in AUC within originals" in baseline
    assert "1 of 2 reaches its AUC within originals" in shuffled


def test_one_that_does_not_beat_its_start_is_called_that():
    found = verdict_of(
        judged(
            *(row("ssim", -0.16, -0.3, 0.02), row("semsim:a.start", 0.02, -0.1, 0.1, START)),
            shuffled="not run, since it takes much longer",
        )
    )
    classic, start, baseline, shuffled = found.sentences
    words = "Behind SSIM by 0.16 in AUC [−0.02, 0.30] on 8 held-out originals, which chance"
    assert classic.startswith(words)
    assert baseline.startswith("Not compared with the calibrated baseline")
    assert start.startswith("It does not beat its initial weights")
    assert "ahead of it by 0.02 in AUC [−0.10, 0.10], which chance could do" in start
    assert "not run, since it takes much longer" in shuffled
    assert found.lost == ("SSIM",)
    lost = verdict_of(judged(row("semsim:a.start", -0.02, -0.1, 0.1, START)))
    assert lost.lost == ("SEMSIM:A.START",)


@pytest.mark.parametrize(
    ("others", "p", "words"),
    [
        (
            [0.6] * 19 + [0.7],
            2 / 21,
            "1 of 20 reaches its AUC (20 shuffles, p = 0.095; ",
        ),
        ([0.8] * 3 + [0.6] * 17, 4 / 21, "3 of 20 reach its AUC (20 shuffles, p = 0.19; "),
        ([0.6, 0.6, 0.5, 0.6, 0.6], 1 / 6, "which chance could do: none of 5 reaches its AUC"),
    ],
)
def test_no_single_shuffle_decides(others, p, words):
    """A permutation test: those that reach it, ties among them, and it itself, of all."""
    found = distribution(shuffles(*others, failed=1), 0.7)
    assert found["p"] == pytest.approx(p)
    said = verdict_of(judged(row("mse", 0.2, 0.1, 0.3)) | {"shuffled": found}).sentences[-1]
    assert words in said
    assert "1 more failed" in said
    assert "beats" not in said
    assert (", the least that so many can show" in said) == (len(others) == 5)


def test_shuffles_without_an_auc_say_nothing():
    assert distribution(shuffles(), 0.7) is None
    assert distribution(shuffles(failed=2), 0.7) is None
    assert distribution(shuffles(None, None), 0.7) is None
    assert distribution(shuffles(0.5), None) is None


def test_what_moved_no_weight_has_learned_nothing():
    ahead = judged(row("ssim", 0.12, 0.01, 0.2), row("semsim:a.start", 0.0, 0.0, 0.0, START))
    (said,) = verdict_of(ahead | {"moved": False}).sentences
    assert said.startswith("It learned nothing")
    assert "0.12" not in said
    assert verdict_of(ahead | {"moved": False}).lost == ("SEMSIM:A.START",)


def test_no_shuffle_begins_after_half_an_hour(asked, material, tmp_path, monkeypatch):
    """At least one is done, however long it takes."""
    monkeypatch.setattr("semsim.learning.ablations_run.LONG", 0)
    found = {"rho": 0.1, "tau": 0.1, "auc": {"pooled": {"auc": 0.5}}}
    rows = train_shuffles(asked.order, material.labels, lambda path: found, tmp_path, silent, 5)
    assert [row["auc"] for row in rows] == [{"pooled": 0.5}]


def test_where_there_is_no_auc_nothing_is_claimed(asked, material, place, tmp_path):
    one_kind = material.labels.assign(recognisable=True)
    train_and_judge(asked, material, place, tmp_path / "job")
    found = evaluate(asked.order.checkpoint, one_kind, None, place.judging(), sample="held-out")
    verdict = verdict_of(found)
    assert verdict.lost is None
    assert verdict.sentences[0].startswith("It could not be compared with MSE")
    assert "there is no AUC" in verdict.sentences[1]
