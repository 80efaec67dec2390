import torch

from semsim.datasets.symbols import Symbols
from semsim.defences.crop_flip import CropFlip
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.degrade import degrade
from semsim.targets.train import TrainSettings, accuracy, train_target

DATA = Symbols(train_per_class=12, test_per_class=4)


def few(split, classes=5):
    data = DATA(split)
    return data.pick([i for i, label in enumerate(data.labels.tolist()) if label < classes])


def test_learns_what_it_is_shown():
    train, test = few("train"), few("test")
    untrained = train_target(SmallCNN(width=8), train, NoDefence(), TrainSettings(epochs=0))
    trained = train_target(
        SmallCNN(width=8), train, NoDefence(), TrainSettings(epochs=12, lr=0.05, batch_size=10)
    )
    # Chance is 0.2; sixty training pictures do not make an expert.
    assert accuracy(trained, test) > 0.5 > accuracy(untrained, test) + 0.1


def test_same_seed_same_weights_and_global_randomness_is_left_alone():
    train = few("train")

    def weights(seed):
        model = train_target(
            SmallCNN(width=4), train, CropFlip(), TrainSettings(epochs=1, seed=seed)
        )
        return torch.cat([p.flatten() for p in model.parameters()])

    torch.manual_seed(7)
    before = torch.rand(3)
    torch.manual_seed(7)
    first = weights(0)
    assert torch.equal(torch.rand(3), before)
    assert torch.equal(weights(0), first)
    assert not torch.equal(weights(1), first)


def test_gradient_defence_acts_on_every_step():
    class Silence(NoDefence):
        def gradients(self, gradients, rng, phase):
            return tuple(torch.zeros_like(g) for g in gradients)

    settings = TrainSettings(epochs=2, weight_decay=0.0)
    train = few("train")
    still = train_target(SmallCNN(width=4), train, Silence(), settings)
    fresh = train_target(SmallCNN(width=4), train, NoDefence(), TrainSettings(epochs=0))
    for after, before in zip(still.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(after, before)


def test_progress_counts_epochs():
    seen = []
    train_target(
        SmallCNN(width=4), few("train"), NoDefence(), TrainSettings(epochs=3), report=seen.append
    )
    assert [p.done for p in seen] == [1, 2, 3]
    assert all(p.values["loss"] > 0 for p in seen)


def test_degrade_keeps_range_and_leaves_some_images_clean():
    images = few("train").images
    worse = degrade(images, torch.Generator().manual_seed(0))
    change = (worse - images).abs().mean(dim=(1, 2, 3))
    assert worse.min() >= 0
    assert worse.max() <= 1
    assert 0.15 < (change < 1e-6).float().mean() < 0.55
    assert change.max() > 0.05
