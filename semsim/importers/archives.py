"""Zips and tars are unpacked into a folder that goes with whoever holds it; no harm is taken in.

Nothing in an archive is believed: its entries are counted while they are unpacked, and written
below the folder only.
"""

import gzip
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Literal

from filelock import FileLock, Timeout

from semsim.base.alike import alike
from semsim.base.errors import DataError
from semsim.base.picture_files import SUFFIXES
from semsim.base.progress import Progress, Report
from semsim.base.storage.atomic import free_bytes
from semsim.base.storage.folders import files_below, is_hidden, shown
from semsim.base.table_files import ENDINGS, Unread
from semsim.base.words import counted
from semsim.images import is_image_file

MOST_PICTURES = 20_000
MOST_BYTES = 4 * 1000**3  # of all files as they lie on the disk
READ = {*SUFFIXES, *ENDINGS, ".json", ".txt", ".pkl", ".pickle"}
_MOST_ENTRIES = 2 * MOST_PICTURES
_PUT_OFF = 100 * 1000**2  # bytes up to which no archive is a bomb
_SHRINKS = 200  # times; neither pictures nor tables become smaller than that
_CHUNK = 1 << 20
_LONGEST, _DEEPEST = 255, 3000  # bytes of a name, and of all names of a path, on most disks
_PREFIX = "semsim-unpacked-"
_ENCRYPTED, _UTF8 = 1, 0x800  # bits of an entry's flags
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz", ".tar.lzma")
_OTHERS = (
    *(".7z", ".rar", ".zst", ".lz", ".lz4", ".lzh", ".cab", ".z", ".iso", ".dmg", ".gz", ".xz"),
    *(".zipx", ".z01", ".001", ".bz2", ".arj", ".ace", ".wim"),
)
# How `tarfile` opens what begins so; where it tries each, it reads some files to their end.
_PACKED: dict[bytes, Literal["r:gz", "r:bz2", "r:xz"]] = {
    b"\x1f\x8b": "r:gz",
    b"BZh": "r:bz2",
    b"\xfd7zXZ": "r:xz",
    b"\x5d\0\0": "r:xz",
}
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, gzip.BadGzipFile, zlib.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError),
)


class Unpacked:
    """A folder below `room` with what was unpacked, deleted when nothing refers to this any more.

    Attributes:
        archive: Its file.
        unread: Entries that were not unpacked. Whoever unpacks has a lock beside the folder, which
            the system lets go of where the process is killed.
    """

    def __init__(self, archive: Path, room: Path) -> None:
        self.archive = archive
        room.mkdir(parents=True, exist_ok=True)
        sweep(room)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=room))
        self.unread: tuple[Unread, ...] = ()
        lock = _lock_of(self.folder)
        lock.acquire()
        self._gone = weakref.finalize(self, _remove, self.folder, lock)


def sweep(room: Path) -> None:
    """Delete what was unpacked below `room` by processes that were killed."""
    for folder in room.glob(f"{_PREFIX}*/"):
        lock = _lock_of(folder)
        with suppress(Timeout):
            lock.acquire(timeout=0)
            _remove(folder, lock)


def _lock_of(folder: Path) -> FileLock:
    # Not of a thread: whichever lets go of the last reference deletes the folder.
    return FileLock(folder.with_name(f"{folder.name}.lock"), thread_local=False)


def _remove(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A file in an archive.

    Attributes:
        leads: Whether it is a link, or no file at all.
    """

    name: str
    size: int
    leads: bool
    encrypted: bool
    opened: Callable[[], IO[bytes]]

    @property
    def place(self) -> PurePosixPath:
        """Place of the entry below the folder."""
        return PurePosixPath(self.name.replace("\\", "/"))


def is_archive(path: Path) -> bool:
    """Tell whether a file is an archive, whatever it is called, or is called one."""
    if not path.is_file() or path.suffix.lower() in ENDINGS:  # Excel's files are zips as well
        return False
    return _is_called(path) or zipfile.is_zipfile(path) or _is_tar(path)


def is_broken(path: Path) -> bool:
    """Tell whether a file is called an archive and is none."""
    return is_archive(path) and not zipfile.is_zipfile(path) and not _is_tar(path)


def _is_called(path: PurePath) -> bool:
    return path.name.lower().endswith((".zip", *_TARS, *_OTHERS))


def _is_tar(path: Path) -> bool:
    try:
        with _opened_tar(path):
            return True
    except _BROKEN:  # a gzip that was cut off
        return False


def _opened_tar(path: Path) -> tarfile.TarFile:
    with path.open("rb") as file:
        start = file.read(5)
    packed = [mode for magic, mode in _PACKED.items() if start.startswith(magic)]
    return tarfile.open(path, packed[0] if packed else "r:")


def unpack(archive: Path, report: Report, room: Path | None = None) -> Unpacked:
    """The files that importers read in an archive; `DataError` where it is refused or broken.

    Args:
        room: Where they are unpacked; None for the system's folder of temporary files.
    """
    room = room or Path(tempfile.gettempdir())
    called = archive.name.lower()
    if called.endswith(_OTHERS) and not called.endswith(_TARS):
        raise DataError(
            f"{archive.name} is an archive of a kind that is not read. Unpack it first, then "
            "import the folder, or pack it as a zip."
        )
    try:
        tar = _is_tar(archive) and not zipfile.is_zipfile(archive)
        with _tar_entries(archive) if tar else _zip_entries(archive) as every:
            entries, unread = _wanted(every, archive)
            _check_sizes(entries, archive, room)
            found, left = Unpacked(archive, room), MOST_BYTES
            for done, one in enumerate(entries, start=1):
                left -= _unpack(one, found.folder, left)
                report(Progress(done, len(entries), "unpacking"))
    except _BROKEN as error:
        raise DataError(
            f"{archive.name} is not a readable archive ({error}): pack it again, as a zip."
        ) from error
    found.unread = tuple(unread)
    return found


@contextmanager
def _zip_entries(archive: Path) -> Iterator[list[_Entry]]:
    with zipfile.ZipFile(archive) as opened:
        yield [
            _Entry(
                name=_zip_name(info),
                size=info.file_size,
                leads=stat.S_ISLNK(info.external_attr >> 16),
                encrypted=bool(info.flag_bits & _ENCRYPTED),
                opened=partial(opened.open, info),
            )
            for info in opened.infolist()
            if not info.is_dir()
        ]


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name of an entry; some programs write UTF-8 without saying so."""
    if info.flag_bits & _UTF8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


@contextmanager
def _tar_entries(archive: Path) -> Iterator[list[_Entry]]:
    """As of a zip; no more is unpacked to list them than may be imported at once."""
    with _opened_tar(archive) as opened:
        entries, size = [], 0
        for info in (one for one in opened if not one.isdir()):
            size += info.size
            one = _Entry(
                name=info.name,
                size=info.size,
                leads=not info.isreg(),
                encrypted=False,
                opened=partial(_tar_file, opened, info),
            )
            entries.append(one)
            _check(archive.name, files=len(entries), size=size)
        yield entries


def _tar_file(opened: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = opened.extractfile(info)
    if file is None:
        raise ValueError(f"{info.name} is no file")
    return file


def check_folder(folder: Path) -> None:
    """`DataError` where a folder holds more pictures, or more bytes, than are imported at once."""
    files = [path for path in files_below(folder).paths if path.is_file()]
    _check(
        folder.name,
        pictures=sum(is_image_file(path) for path in files),
        size=sum(path.stat().st_size for path in files),
    )


def inner(folder: Path) -> Path:
    """`folder`, or what lies in it where archives wrap theirs: one folder with folders in it."""
    entries = shown(folder)
    while len(entries) == 1 and any(path.is_dir() for path in shown(entries[0])):
        folder = entries[0]
        entries = shown(folder)
    return folder


def _wanted(every: Sequence[_Entry], archive: Path) -> tuple[list[_Entry], list[Unread]]:
    """The entries that are unpacked, and those of the others that are not hidden."""
    _check(archive.name, files=len(every))
    entries: dict[str, _Entry] = {}
    unread = []
    for one in every:
        _check_entry(one, archive)
        if is_hidden(one.place):
            continue
        why = _why_unread(one.place, entries)
        if why:
            unread.append(Unread(one.place.as_posix(), why))
        else:
            entries[_key(one.place)] = one
    kept = []
    for one in entries.values():
        if any(_key(above) in entries for above in one.place.parents):
            unread.append(Unread(one.place.as_posix(), "the archive has a file for its folder"))
        else:
            kept.append(one)
    return kept, unread


def _key(place: PurePosixPath) -> str:
    return alike(place.as_posix())  # some file systems ignore case, or how letters are composed


def _why_unread(place: PurePosixPath, entries: Mapping[str, _Entry]) -> str:
    """Return the reason to leave a file in its archive, "" for none; `entries` are those taken."""
    if _is_called(place):
        return "an archive in the archive: unpack it first"
    if place.suffix.lower() not in READ:
        return "no kind of file that is read"
    if _key(place) in entries:
        return "the archive has two files of this name"
    if max(len(part.encode("utf-8", "surrogatepass")) for part in place.parts) > _LONGEST:
        return "its name is too long for a disk here: shorten it"
    if len(str(place).encode("utf-8", "surrogatepass")) > _DEEPEST:
        return "its folders lie too deep for a disk here: shorten their names"
    if any(unicodedata.category(letter) == "Cc" for letter in str(place)):
        return "its name holds a control character, such as a line break: rename it"
    return ""


def _check_entry(one: _Entry, archive: Path) -> None:
    place, drive = one.place, re.match("[A-Za-z]:", one.name)
    if one.leads or drive or place.is_absolute() or ".." in place.parts or not place.name:
        raise DataError(f"{archive.name} holds {one.name!r}, which leads out of it. Refused.")
    if one.encrypted:
        raise DataError(f"{archive.name} is encrypted. Unpack it, then import the folder.")


def _check_sizes(entries: Sequence[_Entry], archive: Path, room: Path) -> None:
    """`DataError` for a bomb, for more than is imported at once, and for more than is free."""
    size, packed = sum(one.size for one in entries), archive.stat().st_size
    if size > max(_PUT_OFF, _SHRINKS * packed):
        raise DataError(
            f"{archive.name} has {packed:,} bytes and would become {size:,}: no pictures shrink so "
            "much. Refused."
        )
    pictures = sum(one.place.suffix.lower() in SUFFIXES for one in entries)
    _check(archive.name, pictures=pictures, size=size)
    if size > (free := free_bytes(room)):
        raise DataError(f"{archive.name} needs {size:,} bytes to be unpacked; {free:,} are free.")


def _check(name: str, *, files: int = 0, pictures: int = 0, size: int = 0) -> None:
    """`DataError` where there is more of something than is imported at once;

    Args:
        size: Bytes.
    """
    for n, most, words in (
        (files, _MOST_ENTRIES, f"{files:,} files"),
        (pictures, MOST_PICTURES, counted(pictures, "picture")),
        (size, MOST_BYTES, f"{size:,} bytes"),
    ):
        if n > most:
            raise DataError(
                f"{name} holds {words}; at most {most:,} are imported at once. Import a part of "
                "them at a time."
            )


def _unpack(one: _Entry, folder: Path, left: int) -> int:
    """Unpack an entry, return the bytes written; `DataError` for more than stated or `left`."""
    target = folder / one.place
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with one.opened() as source, target.open("xb") as out:
        for chunk in iter(partial(source.read, _CHUNK), b""):
            written += len(chunk)
            if written > min(left, one.size):
                raise DataError(f"{one.place} is larger than the archive says. Refused.")
            out.write(chunk)
    return written
