"""Files that come in pieces from a page: each upload is a folder, and none stays for ever.

    <root>/<id>/upload.json    its name, how long it will be, and by what its sender knows it again
    <root>/<id>/file/<name>    what has come so far
    <root>/<id>/held           present when a user has looked at it, and may keep it

A piece says where it begins. One that came before is not written again and one that leaves a gap
is refused, so that a sender who lost the connection asks how much is there and goes on from it.
"""

import re
import secrets
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from semsim.base.errors import DataError
from semsim.base.storage.atomic import free_bytes
from semsim.base.storage.records import read_record, write_record
from semsim.importers.archives import MOST_BYTES

MOST_PIECE = 1000 * 1000  # bytes; a server in front takes requests of 1 MiB
# A folder comes as one archive, of which the names of the files are a part.
MOST_UPLOAD = MOST_BYTES + MOST_BYTES // 50
MOST_HELD = 2 * MOST_UPLOAD  # bytes of all uploads together
LEFT = 24 * 3600.0  # seconds after which nobody comes back for an upload
HELD = 30 * LEFT  # and for one that was looked at, however the clock is set meanwhile
FORMAT = "semsim-upload/1"
_ABOUT = "upload.json"
_ID = re.compile(r"[0-9a-f]{32}")
_KEY = re.compile(r"[0-9A-Za-z._-]{0,80}")
_MARK = "held"
_writing = threading.Lock()  # two pages may send the same file
_came: dict[str, float] = {}  # by id, when this process had a piece, by a clock that nobody sets


class NoUploadError(DataError):
    """An upload that there is not, or no more."""


class GapError(DataError):
    """A piece that begins where the last one has not ended.

    Attributes:
        have: Bytes that are there.
    """

    def __init__(self, at: int, have: int) -> None:
        super().__init__(f"A piece begins at byte {at:,}; {have:,} bytes are there. Go on there.")
        self.have = have


class TooLargeError(DataError):
    """More bytes than are taken."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One file on its way.

    Attributes:
        name: As its sender calls it.
        size: Its bytes when it is whole.
    """

    folder: Path
    name: str
    size: int
    key: str

    @property
    def id(self) -> str:
        """Name of its folder, random so that no visitor can guess it."""
        return self.folder.name

    @property
    def file(self) -> Path:
        """File of the bytes that have come so far."""
        return self.folder / "file" / re.sub(r"[^A-Za-z0-9_+.-]+", "_", self.name).lstrip(".")

    @property
    def have(self) -> int:
        """Bytes that have come."""
        return self.file.stat().st_size

    @property
    def whole(self) -> bool:
        """True if all of it is there."""
        return self.have == self.size


def folder_of(data: Path) -> Path:
    """The folder of uploads in the data folder."""
    return data / "uploads"


def begin(root: Path, name: str, size: int, key: str = "") -> Upload:
    """Return a new upload below `root`, or the cut-off one of the same key, name and size.

    Uploads that no user came back for go first. Only bytes that came take room. Raises
    `TooLargeError` where it would be more than is taken or than the disk holds, `DataError` for a
    name or a key that is none.
    """
    _check(name, size, key)
    sweep(root)
    found = uploads(root)
    for one in found:
        if key and (one.key, one.name, one.size) == (key, name, size):
            return one
    _check_room(found, name, size)
    root.mkdir(parents=True, exist_ok=True)
    free = free_bytes(root)
    if 2 * size > free:  # an archive is unpacked
        raise TooLargeError(
            f"{name} needs {2 * size:,} bytes of the disk while it is looked at; {free:,} are free."
        )
    made = Upload(folder=root / secrets.token_hex(16), name=name, size=size, key=key)
    made.file.parent.mkdir(parents=True)
    made.file.touch()
    write_record(made.folder / _ABOUT, FORMAT, {"name": name, "size": size, "key": key})
    return made


def _check_room(others: Sequence[Upload], name: str, size: int) -> None:
    held = sum(one.have for one in others)
    if held + size > MOST_HELD:
        raise TooLargeError(
            f"Other uploads have brought {held:,} bytes; with {name} that would be more than "
            f"{MOST_HELD:,}. Keep or discard one of them on the page Pictures first."
        )


def _check(name: str, size: int, key: str) -> None:
    plain = PurePosixPath(name.replace("\\", "/")).name == name
    if not plain or not name.strip(". ") or len(name) > 200 or not name.isprintable():
        raise DataError(f"{name[:200]!r} is no file's name: no folders, up to 200 letters.")
    if not _KEY.fullmatch(key):
        raise DataError("The key of an upload has up to 80 letters, digits and . _ -")
    if size < 1:
        raise DataError(f"{name} is empty. Choose the file again.")
    if size > MOST_UPLOAD:
        raise TooLargeError(
            f"{name} has {size:,} bytes; at most {MOST_BYTES:,} are imported at once. Send a part "
            "of it at a time."
        )


def find(root: Path, upload_id: str) -> Upload:
    """The upload with this id; `NoUploadError` where there is none."""
    if not _ID.fullmatch(upload_id):  # ids come from browsers: never a path
        raise NoUploadError("This is no upload's id.")
    folder = root / upload_id
    try:
        about = read_record(folder / _ABOUT, FORMAT, NoUploadError)
        found = Upload(folder=folder, **about)
        found.have  # noqa: B018
    except (NoUploadError, OSError, TypeError):
        raise NoUploadError(
            "This upload is gone: it was cancelled, kept, or left alone for a day. Choose the "
            "files again."
        ) from None
    return found


def append(root: Path, upload_id: str, at: int, piece: bytes) -> Upload:
    """Write a piece that begins at byte `at`; one that is there already changes nothing.

    Raises `NoUploadError`, `GapError`, and `TooLargeError` for more than was announced.
    """
    with _writing:
        one = find(root, upload_id)
        have, end = one.have, at + len(piece)
        if at < 0 or len(piece) > MOST_PIECE or end > one.size:
            raise TooLargeError(
                f"A piece has up to {MOST_PIECE:,} bytes and ends by byte {one.size:,}, as "
                f"announced; this one is of bytes {at:,} to {end:,}."
            )
        if at > have:
            raise GapError(at, have)
        _came[one.id] = time.monotonic()
        if end > have:
            _check_room(uploads(root), one.name, end - have)
            with one.file.open("ab") as file:
                file.write(piece[have - at :])
        return one


def remove(root: Path, upload_id: str) -> None:
    """Delete an upload, wherever it is; `NoUploadError` where there is none."""
    with _writing:
        shutil.rmtree(find(root, upload_id).folder, ignore_errors=True)


def uploads(root: Path) -> list[Upload]:
    """All there are below `root`."""
    found = []
    for folder in sorted(root.glob("*")):
        with suppress(NoUploadError):
            found.append(find(root, folder.name))
    return found


def hold(one: Upload) -> None:
    """Keep an upload for `HELD` seconds, as a user looks at its content."""
    (one.folder / _MARK).touch()


def is_held(one: Upload) -> bool:
    """Return whether a user has looked at an upload."""
    return (one.folder / _MARK).exists()


def sweep(root: Path) -> None:
    """Delete the uploads that nothing has happened to for `LEFT` seconds, held ones for `HELD`."""
    now, ticks = time.time(), time.monotonic()
    for folder in root.glob("*"):
        if _ID.fullmatch(folder.name) and ticks - _came.get(folder.name, -LEFT) >= LEFT:
            touched = [path.stat().st_mtime for path in (folder, *folder.glob("file/*"))]
            if now - max(touched) > (HELD if (folder / _MARK).exists() else LEFT):
                shutil.rmtree(folder, ignore_errors=True)
