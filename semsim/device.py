"""Where tensors live: a GPU when there is one, unless a flag says otherwise."""

import torch

from semsim.errors import SettingsError


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is CUDA, else Apple's MPS, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(f"Device {name!r} cannot be used here: {error}") from error
    return device
