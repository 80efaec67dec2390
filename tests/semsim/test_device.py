import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.device import exact_device, how_busy, pick_device


def test_auto_is_a_device_that_works():
    torch.zeros(1, device=pick_device("auto"))


@pytest.mark.parametrize(("name", "place"), [("mps", "cpu"), ("cuda:1", "cuda:1"), ("cpu", "cpu")])
def test_float64_is_computed_where_there_is_some(name, place):
    assert exact_device(torch.device(name)) == torch.device(place)


def test_a_name_overrides():
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(SettingsError, match=name):
        pick_device(name)


def test_how_busy_the_machine_is_is_told_where_it_is_known(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.26, 0.0, 0.0), raising=False)
    assert how_busy() == "load 1.3"
    monkeypatch.delattr("os.getloadavg")
    assert how_busy() == "no known load"
