import pytest
import torch

from semsim.device import pick_device
from semsim.errors import SettingsError


def test_auto_is_a_device_that_works():
    torch.zeros(1, device=pick_device("auto"))


def test_a_name_overrides():
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(SettingsError, match=name):
        pick_device(name)
