"""The loop learns, repeats itself to the bit, and goes on exactly where it was."""

from dataclasses import replace

import pytest
import torch
from learning_toy import toy_labels

from semsim.base.errors import DataError, SettingsError, StopRequestedError
from semsim.images import read_images
from semsim.learning.train import train
from semsim.learning.triplets import ImageIndex, take_stock
from semsim.metrics.network import ModelSettings, SemSimModel, semsim_distance


class Recorder:
    """Collects reports and states; raises once `stop_after` reports have come."""

    def __init__(self, stop_after=None):
        self.reports, self.states, self.stop_after = [], [], stop_after

    def report(self, progress):
        self.reports.append(progress)
        if len(self.reports) == self.stop_after:
            raise StopRequestedError("enough")

    def save(self, state):
        self.states.append(state)


def weights(result):
    return torch.cat([value.double().flatten() for value in result.model.state_dict().values()])


def held_out_distances(model, originals):
    index = ImageIndex(originals)
    images = read_images(index.paths)
    a, p, n = (images[column] for column in torch.from_numpy(index.every(originals)).T)
    return semsim_distance(model, a, p), semsim_distance(model, a, n)


def test_learns_what_pixels_and_chance_get_wrong(tmp_path, quick):
    labels = toy_labels(tmp_path, originals=24)
    settings = replace(quick, epochs=6, triplets_per_original=6, batch_size=16)
    result = train(labels, settings)
    assert len(result.held_out) == 5

    torch.manual_seed(0)
    untrained = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.2] * 3)
    plus, minus = held_out_distances(untrained, result.held_out)
    assert (plus < minus).float().mean() < 0.3  # the wrong start

    plus, minus = held_out_distances(result.model, result.held_out)
    assert (plus < minus).float().mean() > 0.9
    assert plus.mean() < minus.mean()
    assert result.warnings == ()
    # What the last record says of held-out originals is what scoring finds.
    last = result.records[-1]
    assert last.validation_accuracy == pytest.approx((plus < minus).float().mean().item())
    assert last.validation_d_plus == pytest.approx(plus.mean().item(), rel=1e-4)


def test_the_same_seed_gives_the_same_weights(labels, quick):
    first, again, other = (train(labels, replace(quick, seed=s)) for s in (0, 0, 1))
    assert torch.equal(weights(first), weights(again))
    assert first.records == again.records
    assert not torch.equal(weights(first), weights(other))


def test_training_leaves_the_callers_randomness_alone(labels, quick):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(labels, replace(quick, epochs=1))
    assert torch.equal(torch.rand(3), expected)


# Within the first epoch, just after one, at the end of the second, in the third.
@pytest.mark.parametrize(
    ("changes", "stop_after"),
    [
        *(({}, reports) for reports in (2, 5, 8, 11)),
        ({"backbone": "resnet18", "epochs": 2}, 6),  # batch normalisation
        ({"backbone": "mobilenet_v3_small", "loss": "contrastive", "epochs": 2}, 6),  # dropout
        ({"patience": 1, "epochs": 3}, 5),
        (
            {"ordering": "votes", "mining": "semi-hard", "identity_weight": 0.5}
            | {"mixed_precision": True, "normalize": True},
            6,
        ),
    ],
)
def test_a_resumed_training_ends_with_the_same_weights(labels, quick, changes, stop_after):
    settings = replace(quick, small_stem=False, **changes)
    whole = train(labels, settings)

    interrupted = Recorder(stop_after)
    with pytest.raises(StopRequestedError):
        train(labels, settings, report=interrupted.report, save=interrupted.save)
    begun = interrupted.states[-1] if interrupted.states else None
    resumed = Recorder()
    result = train(labels, settings, report=resumed.report, resume=begun)

    assert torch.equal(weights(result), weights(whole))
    assert result.records == whole.records
    assert result.kept_epoch == whole.kept_epoch
    epochs_left = len(whole.records) - (len(begun.records) if begun else 0)
    early = bool(whole.stopped)  # then the bar is filled by one more report
    assert len(resumed.reports) == epochs_left * 4 + early  # three batches and the end of each


def test_progress_reaches_its_total_with_what_the_page_draws(labels, quick):
    seen = Recorder()
    result = train(labels, quick, report=seen.report, save=seen.save)
    done = [report.done for report in seen.reports]
    assert done == sorted(done)
    assert (done[-1], seen.reports[-1].total) == (9, 9)
    batches = [r for r in seen.reports if "d_plus" not in r.values]
    assert [round(r.values["epoch"], 3) for r in batches[:3]] == [0.333, 0.667, 1]
    assert all(r.values["loss"] >= 0 for r in batches)
    ends = [r.values for r in seen.reports if "d_plus" in r.values]
    assert ends == [record.values() for record in result.records]
    assert [len(state.records) for state in seen.states] == [1, 2, 3]


def test_the_loss_of_an_epoch_is_the_mean_over_its_triplets(labels, quick):
    seen = Recorder()
    settings = replace(quick, epochs=1, batch_size=16)  # 24 triplets: 16 and 8
    (record,) = train(labels, settings, report=seen.report).records
    first, second = (r.values["loss"] for r in seen.reports if "d_plus" not in r.values)
    assert record.loss == pytest.approx((2 * first + second) / 3)


def test_nothing_is_held_out_where_nothing_is_asked_for(labels, quick):
    result = train(labels, replace(quick, epochs=1, validation_fraction=0))
    assert result.held_out == ()
    assert result.records[0].validation_accuracy is None
    assert result.n_triplets == take_stock(labels).n_triplets == 40


def test_held_out_originals_do_not_touch_the_weights(labels, quick):
    result = train(labels, quick)
    seen = {original.image_id for original in result.training}
    assert len(seen) == 8
    without = train(labels[labels.image_id.isin(seen)], replace(quick, validation_fraction=0))
    assert torch.equal(weights(without), weights(result))


def test_images_of_another_size_are_brought_to_the_input_size(labels, quick):
    result = train(labels, replace(quick, epochs=1, input_size=40, normalize=True))
    assert result.model.settings.input_size == 40
    assert result.records[0].norm == pytest.approx(1, abs=1e-5)


def test_a_collapse_is_reported_in_the_result(labels, quick):
    # A rate so small that nothing moves from a start at which all images look alike.
    class Flat(Recorder):
        def save(self, state):
            flat = {k: torch.zeros_like(v) if "body" in k else v for k, v in state.model.items()}
            super().save(replace(state, model=flat))

    seen = Flat()
    train(labels, replace(quick, epochs=2), save=seen.save)
    result = train(labels, replace(quick, epochs=2), resume=seen.states[0])
    assert "collapsed" in result.warnings[0]
    assert result.records[-1].loss == pytest.approx(1.0)
    assert result.records[-1].d_minus == pytest.approx(0, abs=1e-6)


def test_a_diverging_training_stops_and_names_its_rate(labels, quick):
    with pytest.raises(SettingsError, match="learning rate below 1e\\+1"):
        train(labels, replace(quick, lr=1e12, epochs=20))


def test_labels_without_a_triplet_are_refused(labels, quick):
    with pytest.raises(DataError, match="none has both"):
        train(labels[labels.recognisable], quick)


def test_an_image_that_has_gone_is_named(labels, quick):
    gone = labels.assign(reconstruction=[f"{path}.gone" for path in labels.reconstruction])
    with pytest.raises(DataError, match=r"\.gone"):
        train(gone, quick)


@pytest.mark.parametrize("augmentation", ["crop-flip", "joint", "none"])
def test_augmentation_is_a_choice(labels, quick, augmentation):
    settings = replace(quick, epochs=1, augmentation=augmentation, lr=1e-9)
    assert train(labels, settings).records[0].loss > 0


def test_the_best_epoch_is_kept_where_training_may_stop_early(labels, quick):
    seen = Recorder()
    # A rate so high that a later epoch is worse than the best one.
    settings = replace(quick, epochs=30, patience=3, lr=0.02, validation_fraction=0.4)
    result = train(labels, settings, report=seen.report, save=seen.save)
    aucs = [record.validation_auc for record in result.records]
    assert len(aucs) < 30
    assert result.kept_epoch == 1 + aucs.index(max(aucs)) == len(aucs) - 3
    kept = seen.states[result.kept_epoch - 1].model
    assert all(torch.equal(v, kept[n]) for n, v in result.model.state_dict().items())
    assert "not risen for 3 epochs" in result.stopped
    assert (seen.reports[-1].done, seen.reports[-1].note) == (90, result.stopped)

    # One that was killed between its last epoch and its end has nothing more to learn.
    again = Recorder()
    resumed = train(labels, settings, report=again.report, resume=seen.states[-1], save=again.save)
    assert torch.equal(weights(resumed), weights(result))
    assert again.states == []


def test_without_patience_the_last_epoch_is_kept(labels, quick):
    seen = Recorder()
    result = train(labels, quick, save=seen.save)
    assert result.kept_epoch == len(result.records) == 3
    assert result.stopped == ""
    last = seen.states[-1].model
    assert all(torch.equal(v, last[n]) for n, v in result.model.state_dict().items())
    assert seen.states[-1].best is None


def test_a_collapsed_training_stops(labels, quick):
    settings = replace(quick, epochs=9, lr=1e-12, collapse_patience=2, weight_decay=0.0)
    seen = Recorder()
    train(labels, replace(settings, epochs=1), save=seen.save)
    flat = {n: torch.zeros_like(v) if "body" in n else v for n, v in seen.states[0].model.items()}
    begun = replace(seen.states[0], model=flat)
    result = train(labels, settings, report=seen.report, resume=begun)
    assert len(result.records) == 3
    assert "collapsed for 2 epochs in a row" in result.stopped
    assert any("features collapsed" in report.note for report in seen.reports)


def test_the_held_out_auc_is_what_scoring_finds(labels, quick):
    result = train(labels, replace(quick, epochs=1, validation_fraction=0.5))
    index = ImageIndex(result.held_out)
    pairs, recognisable = index.judged(result.held_out)
    images = read_images(index.paths)
    away = semsim_distance(result.model, *(images[column] for column in torch.from_numpy(pairs).T))
    near, far = away[recognisable], away[~recognisable]
    expected = (near[:, None] < far[None]).double().mean().item()
    assert result.records[-1].validation_auc == pytest.approx(expected)


def test_staying_near_to_itself_is_learned(labels, quick):
    pulled, free = (
        train(labels, replace(quick, epochs=6, identity_weight=weight)).records[-1]
        for weight in (5.0, 1e-9)
    )
    assert pulled.identity < 0.5 * free.identity
    assert train(labels, replace(quick, epochs=1)).records[0].identity is None


def test_votes_alone_can_be_learned_from(tmp_path, quick):
    labels = toy_labels(tmp_path, originals=24)
    undecided = labels.assign(recognisable=None).astype({"recognisable": "boolean"})
    decided = labels.image_id.astype(int) < 4  # so that there is something to judge by
    settings = replace(quick, epochs=6, triplets_per_original=6, batch_size=16, ordering="votes")
    result = train(undecided.where(~decided, labels), settings)
    assert len(result.training) + len(result.held_out) == 24
    assert result.n_triplets == 4 * len(result.training)
    plus, minus = held_out_distances(result.model, take_stock(labels).usable)
    assert (plus < minus).float().mean() > 0.9


def test_stopping_early_needs_something_to_judge_by(labels, quick):
    undecided = labels.assign(recognisable=None).astype({"recognisable": "boolean"})
    with pytest.raises(SettingsError, match="needs a held-out AUC"):
        train(undecided, replace(quick, ordering="votes", patience=1))


def test_a_training_begins_where_it_is_told_to(labels, quick, tmp_path):
    first = train(labels, replace(quick, epochs=1))
    torch.save(first.model.body.state_dict(), tmp_path / "mine.pth")
    begun = replace(quick, epochs=1, lr=1e-9, weights=str(tmp_path / "mine.pth"), weight_decay=0.0)
    second = train(labels, begun)
    for name, value in first.model.body.state_dict().items():
        torch.testing.assert_close(second.model.body.state_dict()[name], value, atol=1e-6, rtol=0)
