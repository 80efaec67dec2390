import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_linear import target

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import assigned, assumptions, observe_gradient
from semsim.defences.crop_flip import CropFlip
from semsim.defences.gradient_noise import GradientNoise
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.types import GradientObservation

IMAGE = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_without_defence_the_plain_gradient_leaks():
    model = target(SmallCNN(width=4), std=0.2)
    seen = observe_gradient(model, IMAGE, 1, NoDefence(), torch.Generator()).observation
    plain = parameter_gradients(model, IMAGE[None], torch.tensor([1]))
    assert all(torch.equal(a, b) for a, b in zip(seen.gradients, plain, strict=True))


def test_the_gradient_is_that_of_the_augmented_image_and_the_shift_is_on_record():
    model = target(SmallCNN(width=4), std=0.2)
    leak = observe_gradient(model, IMAGE, 1, CropFlip(), torch.Generator().manual_seed(1))
    again = CropFlip().images(IMAGE[None], torch.Generator().manual_seed(1))
    moved = leak.attacked.shift_x, leak.attacked.shift_y
    assert moved == (again.shift_x, again.shift_y)
    expected = parameter_gradients(model, again.images, torch.tensor([1]))
    assert torch.equal(leak.observation.gradients[0], expected[0])
    assert torch.equal(leak.attacked.images, again.images)


def test_noise_for_training_only_leaves_the_leak_clean():
    def first(defence):
        rng = torch.Generator().manual_seed(0)
        return observe_gradient(
            target(SmallCNN(width=4), std=0.2), IMAGE, 1, defence, rng
        ).observation.gradients[0]

    clean = first(NoDefence())
    assert torch.equal(first(GradientNoise(std=1.0, apply_at="train")), clean)
    assert not torch.equal(first(GradientNoise(std=1.0, apply_at="attack")), clean)


def test_an_observation_has_no_room_for_the_private_image():
    leak = observe_gradient(
        target(SmallCNN(width=4), std=0.2), IMAGE, 1, NoDefence(), torch.Generator()
    )
    assert set(GradientObservation.__dataclass_fields__) == {
        "model",
        "gradients",
        "shape",
        "label",
        "batch_norm",
    }
    assert not any(torch.equal(g, IMAGE) for g in leak.observation.gradients)


def test_statistics_leak_only_when_shared():
    def seen(**shared):
        defence = NoDefence()
        return observe_gradient(
            target(SmallCNN(width=4), std=0.2), IMAGE, 1, defence, torch.Generator(), **shared
        ).observation

    assert seen().batch_norm is None
    leaked = seen(share_statistics=True).batch_norm
    model = target(SmallCNN(width=4), std=0.2)
    first = model.body[0]((IMAGE[None] - model.mean) / model.std)
    assert torch.allclose(leaked.means[0], first.mean(dim=(0, 2, 3)), atol=1e-5)
    assert torch.allclose(leaked.variances[0], first.var(dim=(0, 2, 3), correction=0), rtol=1e-4)


def test_a_participant_in_training_mode_normalises_by_the_image_itself():
    model = target(SmallCNN(width=4), std=0.2).train()
    loss = torch.nn.functional.cross_entropy(model(IMAGE[None]), torch.tensor([1]))
    expected = torch.autograd.grad(loss, tuple(model.parameters()))
    seen = observe_gradient(
        target(SmallCNN(width=4), std=0.2),
        IMAGE,
        1,
        NoDefence(),
        torch.Generator(),
        batch_norm="train",
    ).observation
    for found, wanted in zip(seen.gradients, expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-4, rtol=1e-3)


def test_an_attack_says_what_it_assumes():
    assert assumptions(InvGrad()) == {"batch_norm": "eval", "share_statistics": False}
    assert assumptions(GradAttack(batch_norm="train", statistics="leaked")) == {
        "batch_norm": "train",
        "share_statistics": True,
    }


def pictures(count, seed=0):
    return torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=30)
@given(st.permutations(range(6)), st.floats(0, 0.2))
def test_it_undoes_a_shuffle_under_noise(order, noise):
    originals = pictures(6)
    found = originals[list(order)] + noise * pictures(6, seed=1)
    places = assigned(found, originals)
    assert [order[place] for place in places] == list(range(6))


def test_it_is_a_permutation_even_where_all_are_nearest_to_one():
    found = pictures(1).expand(4, 3, 6, 6) + 0.01 * pictures(4, seed=2)
    assert sorted(assigned(found, pictures(4))) == [0, 1, 2, 3]


def test_the_sum_counts_not_the_first_come():
    """The first original is nearest to both; the sum is least where it leaves the other's alone."""
    originals = torch.tensor([0.4, 0.0]).view(2, 1, 1, 1)
    found = torch.tensor([0.3, 0.9]).view(2, 1, 1, 1)
    assert assigned(found, originals) == [1, 0]


def test_where_fewer_are_found_the_others_have_none():
    originals = pictures(4)
    assert assigned(originals[[3, 1]], originals) == [-1, 1, -1, 0]
