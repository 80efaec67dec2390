"""Check what the science needs of a machine, for `semsim-studio doctor`."""

from collections.abc import Iterator
from pathlib import Path

from semsim.base.errors import SemsimError, foreign
from semsim.weights import locate, read_manifest

_NOTHING = "nothing to do"


def machine(checkpoints: Path, device: str) -> Iterator[tuple[str, str, str, str]]:
    """(subject, state, finding, advice) of the device and each weight file; none keeps the studio
    from starting, so the state is ok or note."""
    yield _device(device)
    if advice := foreign():
        yield "semsim", "note", "another project of that name on the package index", advice
    try:
        names = list(read_manifest(checkpoints))
    except SemsimError as error:
        yield "weights", "note", str(error), "put the manifest of this version there"
        return
    for name in names:
        try:
            yield f"weights {name}", "ok", str(locate(name, checkpoints)), _NOTHING
        except SemsimError as error:
            yield f"weights {name}", "note", "not here", str(error)


def _device(name: str) -> tuple[str, str, str, str]:
    import torch

    from semsim.device import pick_device

    try:
        found = pick_device(name)
    except SemsimError as error:
        return "GPU", "note", str(error), "choose another --device"
    if found.type == "cuda":
        facts = torch.cuda.get_device_properties(found)
        return "GPU", "ok", f"{facts.name}, {facts.total_memory / 1e9:.0f} GB", _NOTHING
    if found.type == "cpu":
        advice = "nothing to do; trainings and attacks are faster on a GPU"
        return "GPU", "ok", f"none used, {torch.get_num_threads()} threads of the processor", advice
    return "GPU", "ok", str(found), _NOTHING
