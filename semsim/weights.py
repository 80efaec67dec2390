"""Weight files of other people: which they are, where they lie, and whether they are genuine.

`checkpoints/manifest.json` names them. Nothing here uses the network except `download`.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

from semsim.base.errors import WeightsError
from semsim.base.progress import Report, silent
from semsim.base.registry import unknown
from semsim.base.storage.atomic import whole, write_bytes
from semsim.base.storage.fetching import fetch
from semsim.base.storage.places import BROUGHT
from semsim.base.storage.places import CHECKPOINTS as CHECKPOINTS
from semsim.base.storage.records import check_format, guarded, read_record

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST = "manifest.json"
FORMAT = "semsim-weights/1"
WEIGHTS_JOB = "weights"
_LFS = b"version https://git-lfs"


@dataclass(frozen=True, kw_only=True)
class WeightFile:
    """One entry of the manifest.

    Attributes:
        sha256_prefix: The first hex digits of the sha256, where the whole of it is not known; the
            check then covers only those. `bytes` may be unknown too.
    """

    name: str
    file: str
    url: str
    source: str
    licence: str
    used_by: str
    bytes: int | None = None
    sha256: str | None = None
    sha256_prefix: str | None = None

    @property
    def digest_start(self) -> str:
        """As much of the sha256 as is known; a manifest entry without any is refused."""
        return self.sha256 or self.sha256_prefix or ""


@dataclass(frozen=True, kw_only=True)
class WeightsOrder:
    """Job: a weight file to fetch into `checkpoints`."""

    name: str
    checkpoints: Path


def do_fetch(order: WeightsOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Fetch the file of the order."""
    del folder
    return {"file": str(download(order.name, order.checkpoints, report))}


def fetched(outcome: Mapping[str, Any]) -> str:
    """Say where the file of a job lies."""
    return str(outcome["file"])


def read_manifest(checkpoints: Path = CHECKPOINTS) -> dict[str, WeightFile]:
    """The weight files that `checkpoints/manifest.json` names.

    A folder without a manifest gets the product's own. Raises `WeightsError` where the manifest
    is broken.
    """
    path = Path(checkpoints) / MANIFEST
    if not path.is_file():
        path = BROUGHT / "checkpoints" / MANIFEST
    content = read_record(path, FORMAT, WeightsError)
    try:
        return {name: _entry(name, entry, path) for name, entry in content["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path} is not a manifest of weights ({error!r}).") from error


def weight_file(name: str, checkpoints: Path = CHECKPOINTS) -> WeightFile:
    """The manifest entry called `name`; `UnknownNameError` names the others on a miss."""
    manifest = read_manifest(checkpoints)
    if name not in manifest:
        raise unknown("weight file", name, sorted(manifest))
    return manifest[name]


def search_folders(checkpoints: Path = CHECKPOINTS) -> tuple[Path, Path]:
    """Return the folders in which a weight file is looked for, in this order."""
    return Path(checkpoints), _torch_home() / "hub" / "checkpoints"


def locate(name: str, checkpoints: Path = CHECKPOINTS) -> Path:
    """The genuine file called `name`, its sha256 checked.

    The first file of that name found is the one judged. Raises `WeightsError` where it is
    missing, cut short, a Git LFS pointer or another file, saying what to do.
    """
    entry = weight_file(name, checkpoints)
    folders = search_folders(checkpoints)
    for folder in folders:
        path = folder / entry.file
        if path.is_file():
            _check(path, entry)
            return path
    looked = " and ".join(str(folder) for folder in folders)
    raise WeightsError(
        f"{entry.file} is missing; it was looked for in {looked}. {_remedy(entry, checkpoints)}"
    )


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hex; read again only after the file has changed."""
    facts = Path(path).stat()
    return _sha256(os.path.abspath(path), facts.st_size, facts.st_mtime_ns)


def content_key(path: Path | str) -> str:
    """Return the sha256 of a file, the same for equal content; of what is no file, the path."""
    try:
        return sha256_of(Path(path))
    except OSError:
        return str(path)


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], form: str, facts: Mapping[str, Any]
) -> None:
    """Write `tensors`, of any shape, and `facts` as a safetensors file, whole or not at all.

    Args:
        form: The format of the file, as "semsim-network/1".
        facts: Anything JSON can say. The same content makes the same bytes: safetensors itself has
            its metadata in any order. The umask decides who may read it, as for every other file.
            The writer of safetensors lets its owner alone read it.
    """
    from safetensors.torch import save

    kept: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        plain = value.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        # safetensors refuses what shares its memory, as a layer that a network has twice.
        kept[name] = plain.clone() if place in seen else plain
        seen.add(place)
    metadata = {"config": json.dumps(facts), "format": form}
    write_bytes(path, _in_order(save(kept, metadata=metadata)))


def _in_order(content: bytes) -> bytes:
    """A safetensors file with the metadata in its header sorted by name.

    Format: 8 bytes with the header's length, little-endian; JSON, with spaces up to a multiple of
    8; the tensors. Source: https://github.com/huggingface/safetensors#format
    """
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((len(text).to_bytes(8, "little"), text, content[end:]))


def read_facts(path: Path, form: str, called: str = "") -> dict[str, Any]:
    """The `facts` in a file that `write_tensors` wrote as `form`, without its tensors.

    Args:
        called: What errors call a file that was copied to `path`; "" for its path.

    Raises:
        WeightsError: For a file that is missing, broken or of another format.
    """
    name = called or path
    with guarded(name, WeightsError, "is not a readable weight file ({})."):
        metadata = _metadata(path)
        check_format(metadata.get("format"), form, name, WeightsError)
        return dict(json.loads(metadata["config"]))


def holds(path: Path, form: str) -> bool:
    """Return whether `write_tensors` wrote the file as `form`, whatever its number."""
    try:
        with guarded(path, WeightsError):
            kind = _metadata(path).get("format", "").partition("/")[0]
    except WeightsError:  # half written, or not ours
        return False
    return kind == form.partition("/")[0]


def _metadata(path: Path) -> dict[str, str]:
    with safe_open(str(path), framework="np") as file:  # "pt" would import torch
        return dict(file.metadata() or {})


def download(name: str, checkpoints: Path = CHECKPOINTS, report: Report = silent) -> Path:
    """Fetch the weight file `name` into `checkpoints`; progress is in bytes.

    A genuine file that is already there is not fetched again. The file gets its name only after
    its sha256 has been checked. Raises `WeightsError` where the network or the check fails.
    """
    entry = weight_file(name, checkpoints)
    target = Path(checkpoints) / entry.file
    if target.is_file() and _fault(target, entry) is None:
        return target
    try:
        with whole(target) as partial:
            fetch(entry.url, partial, report, entry.bytes)
            fault = _fault(partial, entry)
            if fault is not None:
                raise WeightsError(f"What {entry.url} sent {fault}. Nothing was kept.")
    except (OSError, http.client.HTTPException) as error:  # urllib's URLError is an OSError
        raise WeightsError(
            f"{entry.url} could not be fetched ({error}). On another machine, fetch it and copy "
            f"it to {target}."
        ) from error
    return target


def _torch_home() -> Path:
    """Return the folder where torch keeps what it has fetched, without importing torch."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    # Not `Path.expanduser`, which raises for a user whom the system does not know.
    return Path(os.path.expanduser(os.environ.get("TORCH_HOME", f"{cache}/torch")))


def _entry(name: str, entry: Mapping[str, Any], path: Path) -> WeightFile:
    known = {field.name for field in fields(WeightFile)}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise WeightsError(f"{path}: {name!r} has an unknown key {unknown[0]!r}.")
    made = WeightFile(name=name, **entry)
    if len(made.digest_start) < 8:
        raise WeightsError(f"{path}: {name!r} needs a sha256, or 8 hex digits of it.")
    if Path(made.file).name != made.file:
        raise WeightsError(f"{path}: {name!r} has file {made.file!r}; expected a plain file name.")
    return made


def _check(path: Path, entry: WeightFile) -> None:
    fault = _fault(path, entry)
    if fault is not None:
        raise WeightsError(f"{path} {fault}. Remove it. {_remedy(entry, path.parent)}")


def _fault(path: Path, entry: WeightFile) -> str | None:
    """Return the fault of the file, or None; check cheap signs first, then the sha256."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(len(_LFS))
    if start == _LFS:
        return "is a Git LFS pointer, not the weights themselves (git lfs was not installed)"
    if entry.bytes is not None and size < entry.bytes:
        return f"is cut short: {size} of {entry.bytes} bytes"
    digest = sha256_of(path)
    if not digest.startswith(entry.digest_start):
        return (
            f"is another file: its sha256 is {digest}, expected "
            f"{entry.digest_start}{'' if entry.sha256 else '…'}"
        )
    return None


def _remedy(entry: WeightFile, checkpoints: Path) -> str:
    size = "" if entry.bytes is None else f", {entry.bytes / 1e6:.0f} MB"
    return (
        f"It comes from {entry.url} ({entry.source}{size}). Fetch it with "
        f"`semsim-studio weights {entry.name} --download`, or put it at "
        f"{Path(checkpoints) / entry.file} by hand."
    )


@functools.lru_cache(maxsize=65536)
def _sha256(path: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
