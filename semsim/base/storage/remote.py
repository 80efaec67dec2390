"""Files on another machine that several servers share, through fsspec: S3 and what is like it."""

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from semsim.base.errors import StoreError
from semsim.base.storage.atomic import whole

MARK = "semsim-studio.txt"
ABOUT = b"SemSim Studio keeps pictures of its studies here. Do not delete them while it runs.\n"
MOST = 2 * 1024**3  # bytes of copies; above, those unused for longest go
STAYS = 7 * 24 * 3600  # seconds; a training reads its pictures again and again
TOUCHED = 3600  # seconds in which a use is not noted anew
TOGETHER = 200  # files that are asked for at once
# Directories are never listed, and what is known of them could be old; nobody waits for minutes.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "s3": {
        "use_listings_cache": False,
        "config_kwargs": {"connect_timeout": 5, "read_timeout": 20, "retries": {"max_attempts": 2}},
    }
}
HOW = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and, for a server that is not Amazon's, "
    "AWS_ENDPOINT_URL; see that the bucket is there and may be read and written."
}
AGAIN = "The store of pictures does not answer at this moment. Try again in a minute."
log = logging.getLogger(__name__)


class Remote:
    """Files below an address such as s3://bucket/prefix, and copies of those that were read here.

    A file never changes once it is there, so that a copy of it stays right.

    Attributes:
        copies: A folder of this machine for at most `most` bytes, and whatever was used in the last
            week.

    Raises:
        StoreError: For an address that is none, or whose library is not installed.
    """

    def __init__(self, address: str, copies: Path, most: int = MOST) -> None:
        self.address, self.copies = address.rstrip("/"), copies.absolute()
        self._most, self._since, self._lock = most, most, threading.Lock()
        self._protocol = address.partition("://")[0]
        self._files, self._root = self._opened()

    def __str__(self) -> str:
        return self.address

    def copy_of(self, name: str) -> Path:
        """Return the path of the copy of a file, if there is one."""
        return self.copies / name

    def put(self, files: Mapping[str, bytes]) -> None:
        """Keep these files, by name; raises `StoreError`, and then some may be there."""
        with self._told(AGAIN):
            self._files.pipe({self._place(name): content for name, content in files.items()})

    def fetch(self, names: Iterable[str]) -> None:
        """Have copies here of these files, but for those that are not there either.

        Raises `StoreError` where the other side does not answer.
        """
        missing = [name for name in dict.fromkeys(names) if not self._is_here(name)]
        for first in range(0, len(missing), TOGETHER):
            some = missing[first : first + TOGETHER]
            with self._told(AGAIN):
                found = self._files.cat([self._place(name) for name in some], on_error="return")
                self._copy({name: found[self._place(name)] for name in some})
        if missing:
            self._trim()

    def check(self, *, write: bool = False) -> bool:
        """Check whether a studio has kept files there; raises `StoreError` with what to set.

        Args:
            write: Leave a mark, which shows that files can be kept there.
        """
        how = HOW.get(self._protocol, "See that it is there and may be read and written.")
        how = f"{how} Or give another --image-store."
        why = f"The pictures at {self.address} cannot be used: {{}}. {how}"
        with self._told(why):
            place = self._place(MARK)
            if write:
                self._files.pipe({place: ABOUT})
            try:
                self._files.cat_file(place)
            except FileNotFoundError:
                return False
        return True

    def _opened(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # a library of this address comes with it

        try:
            return url_to_fs(self.address, **OPTIONS.get(self._protocol, {}))
        except ImportError as error:
            how = f'pip install "semsim-studio[{self._protocol}]"'
            raise StoreError(
                f"{self.address} needs libraries that are not installed: "
                f"{how if self._protocol in OPTIONS else error}."
            ) from error
        except ValueError as error:
            raise StoreError(
                f"{self.address!r} is no address of pictures: {error}. Expected s3://bucket/prefix."
            ) from error

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _told(self, words: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # each library has errors of its own
            log.error("%s: %s: %s", self.address, type(error).__name__, error)
            raise StoreError(words.replace("{}", str(error))) from error

    def _is_here(self, name: str) -> bool:
        path, now = self.copy_of(name), time.time()
        try:
            if now - path.stat().st_mtime > TOUCHED:
                os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def _copy(self, found: Mapping[str, bytes | Exception]) -> None:
        self.copies.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            if isinstance(content, FileNotFoundError):
                continue
            if isinstance(content, Exception):
                raise content
            with whole(self.copy_of(name)) as part:
                part.write_bytes(content)
            self._since += len(content)

    def _trim(self) -> None:
        """Delete the copies unused for longest; now and then, as all have to be looked at."""
        with self._lock:
            if self._since <= self._most // 20:
                return
            self._since = 0
        files = _by_use(self.copies)
        spare, young = sum(size for _, size, _ in files) - self._most, time.time() - STAYS
        for used, size, path in files:
            if spare <= 0 or used > young:
                return
            path.unlink(missing_ok=True)
            spare -= size


def _by_use(folder: Path) -> Sequence[tuple[float, int, Path]]:
    """Return time of use, size and path of a folder's files, the one unused for longest first."""
    found = []
    for entry in os.scandir(folder):
        try:
            facts = entry.stat()
        except FileNotFoundError:  # another server has let it go
            continue
        found.append((facts.st_mtime, facts.st_size, Path(entry.path)))
    return sorted(found)
