"""The forms in which a study leaves: votes and labels, alone or with the images.

Votes of simulated annotators are marked in all of them. Annotators are named as the study names
them; sessions and passwords are in none.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pandas as pd

from annotation.errors import AnnotationError
from annotation.formats.hugging_face import write_hugging_face
from annotation.formats.label_studio import write_label_studio
from annotation.formats.plain import write_crowd_kit, write_csv, write_jsonl, write_parquet
from annotation.formats.study_data import StudyData
from annotation.formats.train_with_ori import write_train_with_ori
from annotation.formats.triplets import write_triplets
from annotation.texts import counted
from semsim.base.storage.atomic import whole


class What(StrEnum):
    """Name of a table of a study."""

    VOTES = "votes"
    LABELS = "labels"


Writer = Callable[[StudyData, Path], str]  # writes there, and says what in a few words


@dataclass(frozen=True, kw_only=True)
class Format:
    """One form. `ending` of its file, empty for a folder; `writers`, the first the default.

    Attributes:
        title, sentence: What pages call the file, and what it is good for; empty where it holds a
            plain table of several.
    """

    about: str
    ending: str
    writers: Mapping[What, Writer]
    title: str = ""
    sentence: str = ""


def _both_tables(write: Callable[[pd.DataFrame, Path], None]) -> Mapping[What, Writer]:
    def votes(data: StudyData, path: Path) -> str:
        write(data.votes, path)
        return counted(len(data.votes), "vote")

    def labels(data: StudyData, path: Path) -> str:
        write(data.labels, path)
        return counted(len(data.labels), "reconstruction")

    return {What.VOTES: votes, What.LABELS: labels}


FORMATS: Mapping[str, Format] = {
    "csv": Format(
        about="a table for spreadsheets, formulas escaped",
        ending=".csv",
        writers=_both_tables(write_csv),
    ),
    "jsonl": Format(
        about="a table, one JSON object a line",
        ending=".jsonl",
        writers=_both_tables(write_jsonl),
    ),
    "parquet": Format(
        about="a table with its types",
        ending=".parquet",
        writers=_both_tables(write_parquet),
    ),
    "crowd-kit": Format(
        about="counted votes as worker, task, label",
        ending=".csv",
        writers={What.VOTES: write_crowd_kit},
        title="For crowd-kit",
        sentence="Counted votes as worker, task and label, as methods of aggregation take them.",
    ),
    "label-studio": Format(
        about="folder with tasks.json, labelling interface and images",
        ending="",
        writers={What.VOTES: write_label_studio},
        title="For Label Studio",
        sentence="Tasks, answers, interface and pictures of a Label Studio project.",
    ),
    "hf": Format(
        about="folder that Hugging Face datasets reads, labels and images",
        ending="",
        writers={What.LABELS: write_hugging_face},
        title="For Hugging Face",
        sentence="Labels and pictures as a folder that the library datasets reads, with a card.",
    ),
    "triplets": Format(
        about="folder of SemSim triplets and images",
        ending="",
        writers={What.LABELS: write_triplets},
        title="Triplets",
        sentence="Original, recognised and unrecognised reconstruction side by side, to train on.",
    ),
    "train-with-ori": Format(
        about="folder tree of the SemSim authors",
        ending="",
        writers={What.LABELS: write_train_with_ori},
        title="As the SemSim authors",
        sentence="The folders that the code of the SemSim paper trains on.",
    ),
}
_BY_ENDING = {one.ending: name for name, one in reversed(list(FORMATS.items())) if one.ending}


def export(data: StudyData, out: Path, form: str | None = None, what: What | None = None) -> str:
    """Write a study to the file or new folder `out`, whole or not at all; says what was written.

    Raises `AnnotationError`.

    Args:
        form: A key of `FORMATS`; by default the one that the ending of `out` stands for.
        what: Which table; by default the first that the format has.
    """
    name = format_for(out) if form is None else form
    write = _writer(name, what)
    _check_target(name, out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with whole(out) as part:
            if not FORMATS[name].ending:
                part.mkdir()
            return write(data, part)
    except OSError as error:
        raise AnnotationError(f"{out} could not be written: {error}") from error


def content(data: StudyData, form: str, what: What | None = None) -> tuple[bytes, str]:
    """Return the bytes that `export` would write, and its message.

    Raises `AnnotationError` for a format that is a folder, and as `export` does.
    """
    write = _writer(form, what)
    if not FORMATS[form].ending:
        raise AnnotationError(f"The format {form} is a folder; give one as --out, not -.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study"
        said = write(data, path)
        return path.read_bytes(), said


def needs_pictures(form: str, what: What | None = None) -> bool:
    """Return whether `export` would write pictures, or where they lie.

    Raises `AnnotationError` as `export` does.
    """
    return _table(form, what) is not What.VOTES or not FORMATS[form].ending


def format_for(out: Path) -> str:
    """The format that the ending of a file stands for; `AnnotationError` where it is none."""
    if out.suffix not in _BY_ENDING:
        raise AnnotationError(
            f"{out} should end in {', '.join(_BY_ENDING)}; got {out.suffix!r}. Or name a format: "
            f"{', '.join(FORMATS)}."
        )
    return _BY_ENDING[out.suffix]


def _writer(name: str, what: What | None) -> Writer:
    table = _table(name, what)  # first, as it says what there is
    return FORMATS[name].writers[table]


def _table(name: str, what: What | None) -> What:
    """Return the table that the format writes when `what` is asked for."""
    if name not in FORMATS:
        raise AnnotationError(f"No format is called {name!r}; expected {', '.join(FORMATS)}.")
    writers = FORMATS[name].writers
    chosen = next(iter(writers)) if what is None else what
    if chosen not in writers:
        raise AnnotationError(f"The format {name} holds {', '.join(writers)}; not {chosen}.")
    return chosen


def _check_target(name: str, out: Path) -> None:
    ending = FORMATS[name].ending
    if ending and out.suffix != ending:
        raise AnnotationError(f"The format {name} is a file *{ending}; got {out.name!r}.")
    if (out.exists() and not ending) or (out.is_dir() and ending):
        raise AnnotationError(f"{out} is there already; choose another place.")
