"""Fetching a file over the network, with progress, from where an earlier try ended."""

import urllib.error
import urllib.request
from pathlib import Path

from semsim.base.progress import Progress, Report

_CHUNK = 1 << 20
_TIMEOUT = 30.0  # seconds without a byte after which a fetch gives up
_PARTIAL, _ALL_THERE = 206, 416


def fetch(address: str, part: Path, report: Report, size: int | None = None) -> None:
    """Fetch what `part` does not have of the file at `address`; progress is in bytes.

    A server that sends no parts of a file sends all of it again.

    Args:
        address: Where the file is.
        part: What an earlier try left, or no file.
        report: Told after each megabyte.
        size: Bytes of the whole file, where the server does not tell them.

    Raises:
        OSError: Where the network fails; what came so far stays in `part`.
        http.client.HTTPException: Likewise.
    """
    begun = part.stat().st_size if part.exists() else 0
    asked = urllib.request.Request(address, headers={"Range": f"bytes={begun}-"} if begun else {})
    try:
        reply = urllib.request.urlopen(asked, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if begun and error.code == _ALL_THERE:
            return
        raise
    with reply:
        goes_on = getattr(reply, "status", None) == _PARTIAL
        done = begun if goes_on else 0
        total = done + int(reply.headers.get("Content-Length") or size or 0)
        with open(part, "ab" if goes_on else "wb") as file:
            while chunk := reply.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                name = address.rpartition("/")[2]
                report(Progress(done, max(total, done), f"{name}, bytes"))
