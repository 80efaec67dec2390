import pytest
import torch

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.defences.policies import Ats, Operations, moved


def images(count=24):
    # Never black, so that what a translation brings in shows.
    return 0.2 + 0.6 * torch.rand(count, 3, 20, 16, generator=torch.Generator().manual_seed(0))


def test_translations_are_recorded_image_by_image():
    before = images()
    out = Operations(steps="translateX=0.25,translateY=0.1").images(before, torch.Generator())
    for n, image in enumerate(before):
        right, down = int(out.shift_x[n]), int(out.shift_y[n])
        assert torch.equal(out.images[n], moved(image[None], right, down)[0])
    assert set(out.shift_x.tolist()) == {-4, 4}
    assert set(out.shift_y.tolist()) == {-2, 2}
    assert not out.flipped.any()


def test_steps_are_applied_in_their_order():
    before = images(4)
    inverted_first = Operations(steps="invert,translateX=0.5").images(before, torch.Generator())
    inverted_last = Operations(steps="translateX=0.5,invert").images(before, torch.Generator())
    assert inverted_first.images.min() == 0  # the border came in black after the inversion
    assert inverted_last.images.max() == 1


def test_operations_that_move_nothing_record_no_shift():
    out = Operations(steps="contrast,invert,rotate,shearY").images(images(), torch.Generator())
    assert not out.shift_x.any()
    assert not out.shift_y.any()


def test_hybrid_draws_one_group_for_each_image():
    rng = torch.Generator().manual_seed(0)
    out = Ats(policies="3+43").images(images(400), rng)
    only_x = (out.shift_x != 0) & (out.shift_y == 0)
    only_y = (out.shift_x == 0) & (out.shift_y != 0)
    assert (only_x | only_y).all()
    assert 0.4 < only_x.float().mean() < 0.6  # 400 fair draws: ±4 standard deviations
    assert 0.4 < (out.shift_x[only_x] > 0).float().mean() < 0.6


def test_paper_and_code_name_different_operations():
    code, paper = Ats(policies="3-1-7").groups()[0], Operations().groups()[0]
    assert [step.operation for step in code] == ["translateX", "contrast", "translateY"]
    assert [step.operation for step in paper] == ["translateX", "invert", "translateY"]
    assert [code[i].magnitude for i in (0, 2)] == [paper[i].magnitude for i in (0, 2)]


@pytest.mark.parametrize("policies", ["", "3-1-50", "3--1", "a", "3+", "-3"])
def test_policies_that_do_not_exist_are_refused(policies):
    with pytest.raises(SettingsError, match="0 to 49"):
        Ats(policies=policies)


@pytest.mark.parametrize("steps", ["invert=1", "translateX=2", "solarize=x", "rotate=-5"])
def test_impossible_magnitudes_are_refused(steps):
    with pytest.raises(SettingsError, match="magnitude"):
        Operations(steps=steps)


def test_unknown_operations_list_the_known():
    with pytest.raises(UnknownNameError, match="translateY"):
        Operations(steps="translateZ")


STILL = (
    "translateX=0,translateY=0,shearY=0,rotate=0,color=0,contrast=0,brightness=0,sharpness=0,"
    "posterize=8,solarize=256"
)


@pytest.mark.parametrize("policy", [Ats(policies="28-39+39"), Operations(steps=STILL)])
def test_without_strength_it_is_the_identity(policy, is_identity):
    assert is_identity(policy)  # 28: a solarize of 256; 39: a colour of 0
