"""What a reproduction takes on this machine, where that goes, and what was not run of its paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import typer

from semsim.errors import SettingsError
from semsim.reporting.not_run import not_run_text
from semsim.terminal import text_table

PlanOption = Annotated[
    bool, typer.Option("--plan", help="Say what it takes on this machine; compute nothing.")
]
# Of what keeps all that it makes in one folder.
MadeOption = Annotated[Path, typer.Option(help="Folder for all that is made; a run goes on there.")]
SizeOption = Annotated[
    str, typer.Option(help="smoke, small (built-in symbols) or paper (a GPU, CIFAR-100).")
]
_HOUR, _DAY = 3_600.0, 86_400.0
T = TypeVar("T")


def of_preset(presets: Mapping[str, T], name: str) -> T:
    """What `presets` have under `name`; `SettingsError` names them where that is none of them."""
    if name not in presets:
        raise SettingsError(f"--preset is one of {', '.join(presets)}; got {name!r}.")
    return presets[name]


@dataclass(frozen=True, kw_only=True)
class Share:
    """Seconds of one core for `count` trainings, attacks or attacked images of one kind."""

    part: str
    what: str
    count: int
    seconds: float


def shares_text(
    shares: Sequence[Share],
    disk: int,
    *notes: str,
    on_gpu: Sequence[Share] = (),
    gpu: str = "",
) -> str:
    """The shares, the longest first, and their sum in core-days, or core-hours below one, and disk.

    notes: sentences on what is not among them. on_gpu: the same on a GPU, in its own seconds; gpu:
    what it is called. Without them it says why GPU-hours are not told.
    """
    total = sum(one.seconds for one in shares)
    return "\n".join(
        [
            _table(shares, *_unit(total)),
            f"{sum_text(total, disk)}. Measured with a few steps, one thread each; divide by the "
            "number of workers.",
            *(_gpu_lines(on_gpu, gpu) if on_gpu else [_no_gpu()]),
            *notes,
        ]
    )


def sum_text(seconds: float, disk: int) -> str:
    """Seconds of one core in core-days, or core-hours below one, and bytes, as half a sentence."""
    unit, name = _unit(seconds)
    size = f"{disk / 1e9:.2f} GB" if disk >= 1e9 else f"{disk / 1e6:.1f} MB"
    return f"About {seconds / unit:,.1f} {name}, {size} of disk at most"


def _unit(seconds: float) -> tuple[float, str]:
    return (_DAY, "core-days") if seconds >= _DAY else (_HOUR, "core-hours")


def _gpu_lines(shares: Sequence[Share], gpu: str) -> list[str]:
    hours = sum(one.seconds for one in shares) / _HOUR
    said = f"About {hours:,.1f} GPU-hours on one {gpu}, measured with a few steps by the clock."
    return [_table(shares, _HOUR, "GPU-hours"), said]


def _no_gpu() -> str:
    here = "though here is a GPU" if torch.cuda.is_available() else "and here is no GPU to measure"
    return f"GPU-hours are not told: the probe measures one core, {here}."


def _table(shares: Sequence[Share], unit: float, name: str) -> str:
    total = sum(one.seconds for one in shares)
    rows = [
        [
            *(one.part, one.what, f"{one.count:,}", f"{one.seconds / max(1, one.count):,.1f}"),
            *(f"{one.seconds / unit:,.2f}", f"{one.seconds / max(total, 1e-9):.0%}"),
        ]
        for one in sorted(shares, key=lambda one: -one.seconds)
    ]
    head = ["row", "what", "how many", "seconds each", name, "share"]
    return text_table(head, rows)


def planned_text(
    name: str,
    shares: Sequence[Share],
    disk: int,
    *notes: str,
    on_gpu: Sequence[Share] = (),
    gpu: str = "",
) -> str:
    """`shares_text` of the reproduction called `name`, and what of its paper was not run here."""
    return with_not_run(name, shares_text(shares, disk, *notes, on_gpu=on_gpu, gpu=gpu))


def with_not_run(name: str, *told: str) -> str:
    """Lines, then what was not run of the reproduction called `name`."""
    return "\n".join([*told, "", not_run_text(name)])
