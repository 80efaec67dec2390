"""A SemSim beside its own start and a training on shuffled votes, and what is said of it."""

import copy
from dataclasses import replace

import pytest
import torch

from semsim.base.intervals import FEW
from semsim.errors import SettingsError, StopRequestedError
from semsim.learning.ablations_run import JudgedOrder, Workplace, train_and_judge
from semsim.learning.card import card_markdown, read_card
from semsim.learning.card_promoted import promote
from semsim.learning.controls import (
    CHOICES,
    beaten,
    check_controls,
    controls_of,
    halves,
    shuffled_order,
    verdict_of,
)
from semsim.learning.evaluation import evaluate
from semsim.learning.initial import starts
from semsim.learning.orders import Order, control_path
from semsim.learning.splits import HoldOut
from semsim.learning.train import train
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import SHUFFLED, START, read_training
from semsim.progress import Progress
from semsim.terminal import TerminalBar


@pytest.fixture
def place(tmp_path):
    folders = {"checkpoints": tmp_path / "checkpoints", "scores": tmp_path / "scores"}
    return Workplace(**folders, device="cpu", metrics=("mse", "ssim"))


@pytest.fixture
def asked(place, quick):
    order = Order(name="mine", checkpoints=place.checkpoints, settings=quick)
    return JudgedOrder(order=order, hold_out=HoldOut(), controls="all")


def row(metric, difference, low=None, high=None, control="", other_auc=0.5):
    return {
        **{"metric": metric, "title": metric.upper(), "control": control, "low": low},
        **{"high": high, "difference": difference, "auc": 0.7, "other_auc": other_auc},
        **{"n_originals": 8, "undefined": None},
    }


def judged(*rows, **absent):
    return {"sample": "held-out", "loss": "pooled", "against": list(rows), "absent": absent}


def test_every_evaluation_has_the_start_and_the_shuffled_votes(asked, material, place, tmp_path):
    told = []
    outcome = train_and_judge(asked, material, place, tmp_path / "job", told.append)
    for sample in ("held_out", "in_sample"):
        names = [one["metric"] for one in outcome[sample]["metrics"]]
        assert names[:3] == ["semsim:mine", "semsim:mine.start", "semsim:mine.shuffled"]
        assert outcome[sample]["absent"] == {}
    card = read_card(asked.order.checkpoint)
    text = card_markdown(card)
    assert "| SemSim (mine, before any vote) |" in text
    assert "| SemSim (mine, on shuffled votes) |" in text
    for sentence in verdict_of(card["held_out"]).sentences:
        assert f"- {sentence}" in text
    done = [progress.done / progress.total for progress in told if progress.total]
    assert done[-1] == 1
    assert [one for one in told if "d_plus" in one.values][-1].done == told[0].total / 2


def test_the_start_is_the_network_before_it_saw_a_vote(asked, material, place, tmp_path, quick):
    train_and_judge(asked, material, place, tmp_path / "job")
    began = []
    once = replace(quick, epochs=1)
    train(material.labels, once, begun=lambda m: began.append(copy.deepcopy(m.state_dict())))
    start = load_semsim(control_path(asked.order.checkpoint, START))
    for name, value in began[0].items():  # weights follow from the seed, channels from the images
        if name not in ("mean", "std"):
            assert torch.equal(start.state_dict()[name], value)
    trained = load_semsim(asked.order.checkpoint).state_dict()
    assert not torch.equal(start.state_dict()["body.0.weight"], trained["body.0.weight"])
    facts = read_training(control_path(asked.order.checkpoint, START))
    assert (facts.control, facts.n_triplets, facts.simulated) == (START, 0, False)
    shuffled = read_training(control_path(asked.order.checkpoint, SHUFFLED))
    assert shuffled.n_triplets == read_training(asked.order.checkpoint).n_triplets


def test_a_stop_in_the_control_is_gone_on_from(asked, material, place, tmp_path):
    def stop(progress):
        if "control" in progress.note and "loss" in progress.note:
            raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        train_and_judge(asked, material, place, tmp_path / "job", stop)
    first = load_semsim(asked.order.checkpoint).state_dict()
    train_and_judge(asked, material, place, tmp_path / "job")
    whole = replace(asked, order=replace(asked.order, checkpoints=tmp_path / "whole"))
    train_and_judge(whole, material, place, tmp_path / "other")
    for control in (START, SHUFFLED):
        one, other = (
            load_semsim(control_path(each.order.checkpoint, control)).state_dict()
            for each in (asked, whole)
        )
        assert all(torch.equal(one[name], other[name]) for name in one)
    again = load_semsim(asked.order.checkpoint).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_what_belongs_to_another_checkpoint_is_no_control(asked, material, place, tmp_path):
    train_and_judge(asked, material, place, tmp_path / "job")
    checkpoint = asked.order.checkpoint
    found, absent = controls_of(checkpoint)
    assert (set(found), absent) == ({START, SHUFFLED}, {})
    start, shuffled = (control_path(checkpoint, one) for one in (START, SHUFFLED))
    shuffled.write_bytes(checkpoint.read_bytes())
    start.write_bytes(checkpoint.read_bytes())
    assert controls_of(checkpoint) == (
        {},
        {
            START: "its start was not kept",
            SHUFFLED: "not run, since it takes as long again",
        },
    )


def test_controls_are_no_semsim_of_their_own(asked, material, place, tmp_path):
    train_and_judge(asked, material, place, tmp_path / "job")
    assert list(starts(place.checkpoints)) == ["mine.safetensors"]
    with pytest.raises(SettingsError, match="name of a control"):
        promote(place.checkpoints, "mine.start")
    with pytest.raises(SettingsError, match=r"leave out \.shuffled"):
        _ = replace(asked.order, name="other.shuffled").checkpoint


def test_shuffled_votes_keep_what_the_sampler_counts(labels, quick):
    plain = train(labels, replace(quick, epochs=1))
    shuffled = train(labels, replace(quick, epochs=1, shuffled_votes=True))
    assert plain.n_triplets == shuffled.n_triplets
    for one, other in zip(plain.training, shuffled.training, strict=True):
        assert one.key == other.key
        assert len(one.recognisable) == len(other.recognisable)
        assert set(one.images) == set(other.images)
    assert plain.training != shuffled.training
    order = Order(name="mine", checkpoints=None, settings=quick)
    assert shuffled_order(order).settings == replace(quick, shuffled_votes=True)


def test_there_is_no_other_choice_of_controls():
    assert [check_controls(one) for one in CHOICES] == ["all", "start"]
    with pytest.raises(SettingsError, match="all, start"):
        check_controls("none")


def test_one_bar_for_both_trainings_and_one_set_of_curves():
    told = []
    first, second = halves(told.append, "all")
    first(Progress(10, 10, "a", {"loss": 1.0}))
    second(Progress(5, 10, "b", {"loss": 2.0}))
    assert [(p.done, p.total) for p in told] == [(10, 20), (15, 20)]
    assert [dict(p.values) for p in told] == [{"loss": 1.0}, {}]


def test_a_log_has_a_line_an_epoch_of_the_control_as_of_the_training(
    asked, material, place, tmp_path, capsys
):
    with TerminalBar() as report:
        train_and_judge(asked, material, place, tmp_path / "job", report)
    lines = [line.split("% ")[1] for line in capsys.readouterr().err.splitlines()]
    losses = [line.split(" loss ")[0] for line in lines if " loss " in line]
    epochs = [f"epoch {number} of 3:" for number in (1, 2, 3)]
    assert losses == [*epochs, *(f"control, shuffled votes, {epoch}" for epoch in epochs)]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((0.11, 0.02, 0.19), "beats it by 0.11 in AUC [0.02, 0.19]"),
        ((0.05, -0.03, 0.12), "ahead of it by 0.05 in AUC [−0.03, 0.12], which chance could do"),
        (
            (0.05, None, None),
            f"ahead of it by 0.05 in AUC ({FEW}), which chance could do",
        ),
        ((-0.16, -0.3, 0.02), "worse than it by 0.16 in AUC [−0.02, 0.30]"),
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
            row("semsim:a.shuffled", 0.3, 0.2, 0.4, SHUFFLED),
        )
    )
    assert found.sentences == (
        "Beats PSNR, the best of MSE, PSNR and SSIM here, by 0.11 in AUC [0.02, 0.19] on 8 "
        "held-out originals.",
        "It beats its own start (the same network before it saw a vote) by 0.20 in AUC "
        "[0.10, 0.30].",
        "It beats the same training on shuffled votes by 0.30 in AUC [0.20, 0.40].",
    )
    assert found.lost == ()


def test_one_that_does_not_beat_its_start_is_called_that():
    found = verdict_of(
        judged(
            *(row("ssim", -0.16, -0.3, 0.02), row("semsim:a.start", 0.02, -0.1, 0.1, START)),
            shuffled="not run, since it takes as long again",
        )
    )
    classic, start, shuffled = found.sentences
    words = "Worse than SSIM by 0.16 in AUC [−0.02, 0.30] on 8 held-out originals:"
    assert classic.startswith(words)
    assert classic.endswith("more votes, or the preset mixed.")
    of_mixed = judged(row("ssim", -0.16, -0.3, 0.02)) | {"loss": "mixed"}
    assert verdict_of(of_mixed).sentences[0].endswith("or from 50 originals on the preset pooled.")
    assert start.startswith("It does not beat its own start")
    assert "ahead of it by 0.02 in AUC [−0.10, 0.10], which chance could do" in start
    assert "not run, since it takes as long again" in shuffled
    assert found.lost == ("SSIM",)
    lost = verdict_of(judged(row("semsim:a.start", -0.02, -0.1, 0.1, START)))
    assert lost.lost == ("SEMSIM:A.START",)


def test_where_there_is_no_auc_nothing_is_claimed(asked, material, place, tmp_path):
    one_kind = material.labels.assign(recognisable=True)
    train_and_judge(asked, material, place, tmp_path / "job")
    found = evaluate(asked.order.checkpoint, one_kind, None, place.judging(), sample="held-out")
    verdict = verdict_of(found)
    assert verdict.lost is None
    assert verdict.sentences[0].startswith("It could not be compared with MSE")
    assert "there is no AUC" in verdict.sentences[1]
