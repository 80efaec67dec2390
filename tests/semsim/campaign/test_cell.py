import math
import shutil
from dataclasses import replace

import pytest
import torch

from semsim.attacks.observe import BatchGradient, observe_round
from semsim.base.errors import AttackFailedError, DataError, SettingsError
from semsim.base.registry import Plugin
from semsim.campaign.plan import TargetPlan
from semsim.campaign.work import _of_round, attack_images, train_plan
from semsim.datasets.folder import Folder
from semsim.datasets.on_disk import content_of
from semsim.datasets.symbols import Symbols
from semsim.defences.crop_flip import CropFlip
from semsim.defences.none import NoDefence
from semsim.grid.executor import of_the_machine
from semsim.images import to_uint8, write_png
from semsim.targets.model import load_target, save_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import Reconstruction

PLAN = TargetPlan(
    label="toy",
    dataset=Plugin(name="symbols", settings={"train_per_class": 1, "test_per_class": 1}),
    architecture=Plugin(name="cnn-small", settings={"width": 4, "activation": "tanh"}),
    defence=Plugin(name="crop-flip"),
    train=TrainSettings(epochs=1),
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("target") / "toy.safetensors"
    model, tested = train_plan(PLAN)
    assert 0 <= tested["accuracy"] <= 1
    assert (tested["n_test"], tested["n_classes"]) == (47, 47)
    save_target(model, path, name="cnn-small", facts={})
    return path


def test_pictures_that_changed_since_they_were_planned_are_not_learned(tmp_path):
    for split in ("train", "test"):
        for number in range(4):
            picture = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(number))
            write_png(picture, tmp_path / split / "ab"[number % 2] / f"{split}{number}.png")
    own = Plugin(name="folder", settings={"root": str(tmp_path), "size": 8})
    plan = replace(PLAN, dataset=own)
    planned = content_of(Folder(root=str(tmp_path), size=8))
    assert train_plan(plan, content=planned)[1]["n_test"] == 4
    shutil.copy(tmp_path / "test/a/test0.png", tmp_path / "train/a/more.png")
    with pytest.raises(DataError, match="pictures of folder have changed since") as error:
        train_plan(plan, content=planned)
    assert of_the_machine(error.value)  # so that nothing of it is kept


def attacked(weights, attack, seed=0):
    image = Symbols(test_per_class=1)("test").pick([3])
    (found,) = attack_images(load_target(weights), image, PLAN.defence, attack, [seed])
    return found


def test_one_attack_gives_a_picture_and_the_shift_it_has(weights):
    quick = Plugin(name="invgrad", settings={"steps": 3})
    found = attacked(weights, quick)
    assert found.picture.shape == (32, 32, 3)
    assert found.error == ""
    assert math.isfinite(found.objective)
    again = attacked(weights, quick)
    assert (again.picture == found.picture).all()
    assert (again.shift_x, again.shift_y, again.flipped) == (
        found.shift_x,
        found.shift_y,
        found.flipped,
    )
    rng = torch.Generator().manual_seed(0)
    expected = CropFlip().images(Symbols(test_per_class=1)("test").images[3:4], rng)
    assert (found.attacked == to_uint8(expected.images[0])).all()
    shifts = {(r.shift_x, r.shift_y) for r in (attacked(weights, quick, s) for s in range(4))}
    assert len(shifts) > 1


def test_a_diverged_attack_has_a_reason_and_no_picture(weights, tmp_path):
    broken = load_target(weights)
    torch.nn.init.constant_(broken.head.weight, math.nan)
    save_target(broken, tmp_path / "nan.safetensors", name="cnn-small", facts={})
    found = attacked(tmp_path / "nan.safetensors", Plugin(name="invgrad", settings={"steps": 3}))
    assert found.picture is None
    assert "step 1 of 3" in found.error
    assert math.isnan(found.objective)


def test_attack_settings_reach_the_attack(weights):
    few = attacked(weights, Plugin(name="invgrad", settings={"steps": 1}))
    more = attacked(weights, Plugin(name="invgrad", settings={"steps": 30}))
    assert more.objective < few.objective


def test_pictures_of_a_client_come_back_beside_their_own(weights):
    """Attacked in one order or another: what stands beside an original is of that original."""
    images = Symbols(test_per_class=1)("test").pick([3, 11])
    quick, shared = (
        Plugin(name="prior", settings={"steps": 40}),
        Plugin(name="batch-gradient", settings={"batch": 2, "batch_norm": "eval"}),
    )
    model, none = load_target(weights), Plugin(name="none")
    found = attack_images(model, images, none, quick, [0, 1], shared=shared)
    for one, image, other in zip(found, images.images, images.images.flip(0), strict=True):
        assert (one.attacked == to_uint8(image)).all()
        own, wrong = (
            ((one.picture / 255.0 - x.permute(1, 2, 0).numpy()) ** 2).mean() for x in (image, other)
        )
        assert own < wrong


def test_what_an_attack_cannot_do_is_said(weights):
    images = Symbols(test_per_class=1)("test").pick([3, 11])
    shared = Plugin(name="update", settings={"batch": 2})
    with pytest.raises(SettingsError, match="rgap works on the gradient of one picture"):
        attack_images(
            load_target(weights), images, PLAN.defence, Plugin(name="rgap"), [0, 1], shared=shared
        )


def test_a_picture_stands_beside_its_original_where_another_of_its_client_failed(weights):
    some = Symbols(test_per_class=1)("test").pick([0, 5, 9])
    rngs = [torch.Generator().manual_seed(seed) for seed in range(3)]
    asked = some.images, some.labels, BatchGradient(batch=3), NoDefence(), rngs
    seen = observe_round(load_target(weights), *asked)
    facts = {"objective": 0.0, "residual": 0.0, "grey_residual": 1.0}
    made = [Reconstruction(image=some.images[place], **facts) for place in (2, 0)]
    first, second, third = _of_round(seen, [made[0], AttackFailedError("no number"), made[1]])
    for one in (first, third):
        assert (one.picture == one.attacked).all()
    assert (second.picture, second.error) == (None, "no number")
    assert (second.attacked == to_uint8(some.images[1])).all()


def test_pictures_that_have_changed_since_they_were_planned_are_not_attacked(weights):
    """A class more, in a folder, and every label is another's."""
    image = Symbols(test_per_class=1)("test").pick([3])
    grown = replace(image, classes=("aardvark", *image.classes), labels=image.labels + 1)
    with pytest.raises(DataError, match="have changed since they were planned") as refused:
        attack_images(load_target(weights), grown, PLAN.defence, Plugin(name="invgrad"), [0])
    assert of_the_machine(refused.value)  # so it is not kept as a result
