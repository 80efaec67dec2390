"""What is a result, and what only says that a machine could not do its part."""

import pickle

import pytest
import torch
from distributed.comm import CommClosedError

from semsim.base.errors import (
    AttackFailedError,
    CheckpointError,
    DataError,
    PictureError,
    SettingsError,
)
from semsim.grid.failures import of_the_machine

MACHINE = [
    ModuleNotFoundError("No module named 'semsim'"),
    MemoryError(),
    OSError(28, "No space left on device"),
    PermissionError(13, "Permission denied", "/data"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("CUDA error: device-side assert triggered"),
    pickle.UnpicklingError("invalid load key"),
    DataError("No folder /data/cats. Expected <root>/<class>/<image>."),
    CommClosedError("the scheduler went away"),
    PictureError("No image at /data/cats/1.png."),
    CheckpointError("a.part belongs to a training with other settings or images."),
]
COMPUTED = [
    SettingsError("The training diverged: in epoch 2 the loss is nan."),
    AttackFailedError("The objective became nan at step 3 of 9."),
    IndexError("Target 10000 is out of bounds."),
    RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ZeroDivisionError("division by zero"),
]


@pytest.mark.parametrize("error", MACHINE, ids=repr)
def test_a_machine_that_could_not(error):
    assert of_the_machine(error)


@pytest.mark.parametrize("error", COMPUTED, ids=repr)
def test_an_attack_that_said_so(error):
    assert not of_the_machine(error)


def test_the_cause_of_an_error_counts():
    error = RuntimeError("The loader stopped.")
    error.__cause__ = OSError(5, "Input/output error")
    assert of_the_machine(error)
