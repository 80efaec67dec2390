"""Downloads of a study, each as one file: folders are packed into a zip."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from annotation.formats import FORMATS, What, export, needs_pictures
from annotation.formats.study_data import StudyData

# What the machine's own table of endings does not know, or knows otherwise.
KINDS = {
    ".csv": "text/csv; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".zip": "application/zip",
}
TABLES = {What.VOTES: "Every vote", What.LABELS: "Majority labels"}
SENTENCES = {
    What.VOTES: "One row per vote, with annotator, answer and time; also votes that do not count.",
    What.LABELS: "One row per reconstruction, with votes, share and majority.",
}


@dataclass(frozen=True, kw_only=True)
class Download:
    """One file to download: a table of a study in one format.

    Attributes:
        words: What the link says.
        sentence: What the file holds and whom it is for; the same for one table in several formats.
    """

    form: str
    what: What
    words: str
    sentence: str


def _downloads() -> Iterator[tuple[str, Download]]:
    for name, one in FORMATS.items():
        ending, several = one.ending or ".zip", len(one.writers) > 1
        for what in one.writers:
            title = TABLES[what] if several else one.title
            yield (
                f"{what if several else name}{ending}",
                Download(
                    form=name,
                    what=what,
                    words=f"{title} ({ending[1:].upper()})",
                    sentence=SENTENCES[what] if several else one.sentence,
                ),
            )


DOWNLOADS: Mapping[str, Download] = dict(_downloads())


def known(file: str) -> str:
    """`file` if it is one of `DOWNLOADS`; else `ValueError`, as validators raise."""
    if file not in DOWNLOADS:
        raise ValueError(f"expected {', '.join(DOWNLOADS)}; got {file!r}")
    return file


def shows(file: str) -> bool:
    """Return whether the download called `file` has pictures, or the places where they lie."""
    one = DOWNLOADS[file]
    return needs_pictures(one.form, one.what)


def response(data: StudyData, file: str) -> FileResponse:
    """The download called `file`; what had to be written for it goes once it is sent."""
    folder = Path(tempfile.mkdtemp(prefix="semsim-download-"))
    try:
        path = _write(data, file, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return FileResponse(
        path,
        media_type=KINDS.get(path.suffix),
        filename=f"{file_name(data.study.name)}-{file}",
        headers={"Cache-Control": "no-store"},
        background=BackgroundTask(shutil.rmtree, folder),
    )


def _write(data: StudyData, file: str, folder: Path) -> Path:
    wanted = DOWNLOADS[file]
    inner = folder / file.removesuffix(".zip")
    export(data, inner, wanted.form, wanted.what)
    if inner.name == file:
        return inner
    return Path(shutil.make_archive(str(inner), "zip", folder, inner.name))


def file_name(name: str) -> str:
    """A study's name as a file can be called."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "study"
