"""Fetching a source from its authors' repository, at the state that is pinned."""

import http.client
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.storage.atomic import whole_folder
from semsim.base.storage.fetching import fetch
from semsim.importers.archives import unpack

_PARTS = ".parts"  # beside the folder: what came of a fetch that was cut off


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file of a source.

    Attributes:
        address: Where it is.
        name: Of the file here; a zip is unpacked.
        commit: The state that a zip of a repository must have, or how its name begins.
    """

    address: str
    name: str
    commit: str = ""


def archive_of(repository: str, commit: str) -> tuple[RemoteFile, ...]:
    """Return a whole repository as one zip.

    Args:
        repository: Its owner and name on GitHub.
        commit: Its state.
    """
    address = f"https://github.com/{repository}/archive/{commit}.zip"
    return (RemoteFile(address=address, name=f"{commit}.zip", commit=commit),)


def raw_file(repository: str, commit: str, path: str) -> RemoteFile:
    """Return one file of a repository on GitHub.

    Args:
        repository: Its owner and name.
        commit: The whole name of the state.
        path: Of the file in it.
    """
    address = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    return RemoteFile(address=address, name=Path(path).name)


def fetch_all(files: Sequence[RemoteFile], folder: Path, report: Report = silent) -> Path:
    """Fetch files into `folder`, which appears with all of them; zips are unpacked.

    What a try that was cut off has left is kept, and the next goes on from there.

    Args:
        files: What is fetched.
        folder: Nothing is fetched where it is there already.
        report: Told how many bytes came.

    Raises:
        DataError: Where the network fails, or a zip is of another state.
    """
    if folder.is_dir():
        return folder
    parts = folder.with_name(f"{folder.name}{_PARTS}")
    parts.mkdir(parents=True, exist_ok=True)
    for one in files:
        _fetch_one(one, parts / one.name, folder, report)
    with whole_folder(folder) as made:
        for one in files:
            part = parts / one.name
            if part.suffix == ".zip":
                held = unpack(part, report, parts)  # goes with the last reference to it
                shutil.copytree(held.folder, made, dirs_exist_ok=True)
            else:
                shutil.copyfile(part, made / one.name)
    shutil.rmtree(parts)
    return folder


def _fetch_one(one: RemoteFile, part: Path, folder: Path, report: Report) -> None:
    try:
        fetch(one.address, part, report)
    except (OSError, http.client.HTTPException) as error:  # urllib's URLError is an OSError
        raise DataError(
            f"{one.address} could not be fetched ({error}). Type the same again to go on, or fetch "
            f"it on another machine, unpack it and name its folder: --from FOLDER."
        ) from error
    if not _state_of(part).startswith(one.commit):
        part.unlink()
        raise DataError(
            f"What {one.address} sent is not the state {one.commit}. Nothing was kept. Type the "
            "same again."
        )


def _state_of(part: Path) -> str:
    """Return the commit that git wrote into a zip of a repository; "" for another file."""
    if not zipfile.is_zipfile(part):
        return ""
    with zipfile.ZipFile(part) as held:
        return held.comment.decode("ascii", "replace")
