"""One step of an attack can be read: few functions of ours, in few files, are called in it."""

import sys
from pathlib import Path

import pytest
import torch
from made_linear import target

import semsim
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import observe_gradient
from semsim.defences.none import NoDefence
from semsim.targets.lenet import CNN4, LeNet
from semsim.targets.resnet import ResNet20x4

OURS = str(Path(semsim.__file__).parent)
STEP = 3  # between this one and the next nothing is reported


def called_in_one_step(model, monkeypatch):
    """(file, name) of each function of ours between two steps of InvGrad, the loop's own too."""
    found, steps = set(), 0
    step = torch.optim.Adam.step

    def note(frame, event, _):
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        # A comprehension is part of the function that it stands in.
        if event == "call" and file.startswith(OURS) and not name.endswith(("comp>", "<genexpr>")):
            found.add((file, name))

    def counted(*given, **named):
        nonlocal steps
        sys.setprofile(None)
        step(*given, **named)
        steps += 1
        if steps == STEP:
            loop = sys._getframe(1)
            while not loop.f_code.co_filename.startswith(OURS):
                loop = loop.f_back
            note(loop, "call", None)
            sys.setprofile(note)

    monkeypatch.setattr(torch.optim.Adam, "step", counted)
    image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))
    seen = observe_gradient(model, image, 1, NoDefence(), torch.Generator()).observation
    before = sys.getprofile()
    try:
        InvGrad(steps=STEP + 1)(seen, rng=torch.Generator().manual_seed(0))
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(
    ("architecture", "most"),
    [(LeNet(), 40), (CNN4(width=4, batch_norm=True), 45), (ResNet20x4(width=2), 55)],
    ids=["lenet", "cnn4", "resnet"],
)
def test_one_step_is_few_functions_in_few_files(architecture, most, monkeypatch):
    found = called_in_one_step(target(architecture, size=(32, 32)), monkeypatch)
    assert 20 < len(found) <= most, sorted(found)
    assert len({file for file, _ in found}) <= 6
