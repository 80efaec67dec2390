import torch

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import assumptions, observe_gradient
from semsim.defences.crop_flip import CropFlip
from semsim.defences.gradient_noise import GradientNoise
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation


def target():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            SmallCNN(width=4), ["a", "b"], mean=[0.5] * 3, std=[0.2] * 3, size=(16, 16)
        ).eval()


IMAGE = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_without_defence_the_plain_gradient_leaks():
    model = target()
    seen = observe_gradient(model, IMAGE, 1, NoDefence(), torch.Generator()).observation
    plain = parameter_gradients(model, IMAGE[None], torch.tensor([1]))
    assert all(torch.equal(a, b) for a, b in zip(seen.gradients, plain, strict=True))


def test_the_gradient_is_that_of_the_augmented_image_and_the_shift_is_on_record():
    model = target()
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
        return observe_gradient(target(), IMAGE, 1, defence, rng).observation.gradients[0]

    clean = first(NoDefence())
    assert torch.equal(first(GradientNoise(std=1.0, apply_at="train")), clean)
    assert not torch.equal(first(GradientNoise(std=1.0, apply_at="attack")), clean)


def test_an_observation_has_no_room_for_the_private_image():
    leak = observe_gradient(target(), IMAGE, 1, NoDefence(), torch.Generator())
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
            target(), IMAGE, 1, defence, torch.Generator(), **shared
        ).observation

    assert seen().batch_norm is None
    leaked = seen(share_statistics=True).batch_norm
    model = target()
    first = model.body[0]((IMAGE[None] - model.mean) / model.std)
    assert torch.allclose(leaked.means[0], first.mean(dim=(0, 2, 3)), atol=1e-5)
    assert torch.allclose(leaked.variances[0], first.var(dim=(0, 2, 3), correction=0), rtol=1e-4)


def test_a_participant_in_training_mode_normalises_by_the_image_itself():
    model = target().train()
    loss = torch.nn.functional.cross_entropy(model(IMAGE[None]), torch.tensor([1]))
    expected = torch.autograd.grad(loss, tuple(model.parameters()))
    seen = observe_gradient(
        target(), IMAGE, 1, NoDefence(), torch.Generator(), batch_norm="train"
    ).observation
    for found, wanted in zip(seen.gradients, expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-4, rtol=1e-3)


def test_an_attack_says_what_it_assumes():
    assert assumptions(InvGrad()) == {"batch_norm": "eval", "share_statistics": False}
    assert assumptions(GradAttack(batch_norm="train", statistics="leaked")) == {
        "batch_norm": "train",
        "share_statistics": True,
    }
