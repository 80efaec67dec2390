"""The steps of a network's `forward`, with the shapes between them."""

import pytest
import torch.nn.functional as F
from torch import nn

from semsim.attacks.security.steps import steps_of
from semsim.errors import SettingsError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(1, 2, 3)
        self.end = nn.Linear(8, 4)

    def forward(self, images):
        x = F.max_pool2d(self.look(images / 2), kernel_size=2)
        return self.end(x.view(x.size(0), -1))


def test_each_step_has_its_name_its_kind_and_its_shapes():
    found = [(one.name, one.kind, one.inputs, one.outputs) for one in steps_of(Net(), (1, 6, 6))]
    assert found == [
        ("truediv", "truediv", (1, 6, 6), (1, 6, 6)),
        ("look", "conv2d", (1, 6, 6), (2, 4, 4)),
        ("max_pool2d", "maxpool2d", (2, 4, 4), (2, 2, 2)),
        ("view", "view", (2, 2, 2), (8,)),
        ("end", "linear", (8,), (4,)),
    ]


class Fails(Net):
    def forward(self, images):
        raise ValueError("not today.\nNor tomorrow.")


@pytest.mark.parametrize(
    ("model", "shape", "says"),
    [
        (Fails(), (1, 6, 6), "Fails cannot be read: not today. Its forward"),
        (Net(), (1, 9, 9), "Net does not take images of 1×9×9: mat1 and mat2"),
    ],
)
def test_an_error_inside_is_told_in_one_line(model, shape, says):
    with pytest.raises(SettingsError, match=says) as told:
        list(steps_of(model, shape))
    assert "\n" not in str(told.value)
