import pytest
import torch
from made_linear import net, seeded, target

from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import observe_gradient
from semsim.base.errors import AttackFailedError
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets.lenet import CNN4


@pytest.fixture(scope="module")
def leak_and_image():
    image = Symbols(test_per_class=1, size=16)("test").images[4]
    model = net([(5, 12, 2, 2)] * 2, bias=True, size=(16, 16), std=0.3).float()
    leak = observe_gradient(model, image, 2, NoDefence(), torch.Generator())
    return leak.observation, image


def test_recovers_an_image_better_than_grey_and_better_with_more_steps(leak_and_image):
    seen, image = leak_and_image

    def error(steps):
        found = InvGrad(steps=steps, start="grey", tv=1e-3)(
            seen, rng=torch.Generator().manual_seed(0)
        )
        return (found.image - image).square().mean().item()

    grey = (image - 0.5).square().mean().item()
    assert error(150) < error(15) < grey


def test_of_several_restarts_the_best_objective_is_kept(leak_and_image):
    seen, _ = leak_and_image
    one = InvGrad(steps=15)
    rng = torch.Generator().manual_seed(5)
    alone = [one(seen, rng=rng).objective for _ in range(3)]
    best = InvGrad(steps=15, restarts=3)(seen, rng=torch.Generator().manual_seed(5)).objective
    assert best == min(alone)


def test_unknown_label_is_refused(leak_and_image):
    seen, _ = leak_and_image
    unlabelled = type(seen)(
        model=seen.model, gradients=seen.gradients, shape=seen.shape, label=None
    )
    with pytest.raises(AttackFailedError, match="label"):
        InvGrad(steps=1)(unlabelled, rng=torch.Generator())


def test_the_fast_preset_smooths_as_much_as_a_net_with_kinks_asks_for():
    images = Symbols(test_per_class=1)("test").images[[2, 9]]
    model = target(CNN4(activation="relu"), map(str, range(100)), size=(32, 32))
    none, rng = NoDefence(), torch.Generator()
    leaks = [observe_gradient(model, one, 2, none, rng).observation for one in images]

    def mean_psnr(**changes):
        attack = InvGrad(**{**InvGrad.presets["fast"], "steps": 80, **changes})
        found = attack.many(leaks, rngs=seeded(2))
        rebuilt = torch.stack([one.image for one in found])
        return -10 * (rebuilt - images).square().mean((1, 2, 3)).log10().mean().item()

    assert mean_psnr() > mean_psnr(tv=2e-3) + 1
