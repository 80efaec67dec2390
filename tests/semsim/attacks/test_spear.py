"""SPEAR: batches come back exactly, what it cannot do is refused or fails with what was reached."""

import pytest
import torch
from made_linear import target as made_target
from torch import nn

from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.first_layer import first_layer
from semsim.attacks.linear.spear import Spear
from semsim.attacks.observe import BatchGradient, Update, assigned, observe_round
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.registry import build
from semsim.defences import DEFENCES
from semsim.targets.convnet import SmallCNN
from semsim.targets.lenet import CNN4
from semsim.targets.mlp import MLP

SIZE = (8, 8)


def mlp(width=60, depth=3, seed=0, **settings):
    return made_target(
        MLP(width=width, depth=depth, **settings), "abcde", size=SIZE, std=0.25, seed=seed
    )


def seen_of(model, batch, *, seed=0, defence=("none", {}), sharing=None):
    rng = torch.Generator().manual_seed(seed)
    images, labels = torch.rand(batch, 3, *SIZE, generator=rng), torch.arange(batch) % 5
    rngs = [torch.Generator().manual_seed(seed + place) for place in range(batch)]
    sharing = sharing or BatchGradient(batch=batch)
    leak = observe_round(model, images, labels, sharing, build(DEFENCES, *defence), rngs)
    return leak.observation, images


def attacked(seen, **settings):
    rngs = [torch.Generator().manual_seed(place) for place in range(seen.pictures)]
    return attack_updates(Spear(**settings), [seen], rngs=rngs)


def worst(found, images):
    """Largest difference of a pixel between each original and its reconstruction."""
    made = torch.stack([one.image for one in found])
    places = assigned(made, images)
    assert sorted(places) == list(range(len(images)))
    return float((made[places] - images).abs().max())


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("width", [60, 200])
def test_every_picture_of_a_batch_comes_back_to_the_last_digit(batch, width):
    seen, images = seen_of(mlp(width), batch, seed=batch)
    found = attacked(seen)
    assert worst(found, images) < 1e-4
    for one in found:
        assert one.residual <= 0.01 < 0.1 < one.grey_residual
        assert not one.blown_up


def test_batches_come_back_for_which_drawing_rows_takes_billions_of_draws():
    seen, images = seen_of(mlp(400), 32)
    assert worst(attacked(seen, starts=2_000), images) < 1e-4


def test_the_layers_behind_and_the_labels_do_not_matter():
    model = mlp(depth=2)
    seen, images = seen_of(model, 4)
    object.__setattr__(seen, "labels", None)
    assert worst(attacked(seen), images) < 1e-4


def test_a_functional_relu_is_one():
    class Functional(nn.Module):
        mean, std = torch.full((1, 3, 1, 1), 0.5), torch.full((1, 3, 1, 1), 0.25)

        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.last = nn.Linear(192, 60), nn.Linear(60, 5)

        def forward(self, images):
            flat = ((images - self.mean) / self.std).flatten(1)
            return self.last(torch.relu(self.first(flat)))

    model = Functional().eval()
    assert first_layer(model, (3, *SIZE)) is model.first
    seen, images = seen_of(model, 3)
    assert worst(attacked(seen), images) < 1e-4


@pytest.mark.parametrize(
    ("architecture", "first"),
    [
        (CNN4(), "Conv2d"),
        (SmallCNN(width=4), "Conv2d"),
        (MLP(width=20, depth=2, activation="tanh"), "Linear"),
        (MLP(width=20, depth=2, activation="silu"), "Linear"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_another_first_layer_is_refused_by_name(architecture, first):
    seen, _ = seen_of(made_target(architecture, "abcde", size=SIZE), 2)
    with pytest.raises(
        SettingsError, match=f"with ReLU behind it; the first of this one .*{first}"
    ):
        attacked(seen)


def failure(seen, **settings):
    found = attacked(seen, **settings)
    assert len(found) == seen.pictures
    assert all(isinstance(one, AttackFailedError) for one in found)
    return str(found[0])


def test_where_draws_end_the_failure_reports_how_far_they_came():
    seen, _ = seen_of(mlp(200), 14)
    assert "1 starts gave" in (said := failure(seen, starts=1))
    assert "of 14 pictures. Take more starts" in said


@pytest.mark.parametrize(
    "defence",
    [("gradient-noise", {}), ("gradient-pruning", {}), ("dp-sgd", {})],
    ids=lambda one: one[0],
)
def test_a_disturbed_gradient_is_a_failure_and_no_picture(defence):
    seen, _ = seen_of(mlp(), 4, defence=defence)
    assert "no sum of 4 pictures" in failure(seen)


@pytest.mark.parametrize("held", [4, 8])
def test_an_update_of_several_steps_gives_its_pictures_away_while_units_stay_as_they_were(held):
    seen, images = seen_of(mlp(200), held, sharing=Update(steps=4, batch=4, held=held, lr=0.02))
    assert worst(attacked(seen), images) < 1e-2


def test_a_batch_larger_than_the_layer_is_a_failure():
    seen, _ = seen_of(mlp(width=6), 8)
    assert "take a smaller batch" in failure(seen)


def test_two_pictures_alike_are_a_failure():
    model = mlp()
    image = torch.rand(1, 3, *SIZE, generator=torch.Generator().manual_seed(1)).repeat(3, 1, 1, 1)
    image[2] = 1 - image[2]
    rngs = [torch.Generator().manual_seed(place) for place in range(3)]
    defence = build(DEFENCES, "none", {})
    labels = torch.tensor([1, 1, 2])
    leak = observe_round(model, image, labels, BatchGradient(batch=3), defence, rngs)
    assert "two pictures are alike" in failure(leak.observation)


def test_the_same_seed_draws_the_same():
    seen, _ = seen_of(mlp(200), 6)
    first, again = attacked(seen), attacked(seen)
    assert all(torch.equal(a.image, b.image) for a, b in zip(first, again, strict=True))
