"""Answers in files a person or a mapping, beside images named `<id>_<label>`.

An image is `[<model>/]<id>_<label>[_rec|_ori|_gt][.<suffix>]`; the label is the number of its true
class. An answer is the number of a class, -1 or "none", or a class by its name where the list of
classes is known. The source is a file, or a folder of files, of these kinds:

    <annotator>.csv            columns image and answer: all answers of one person
    <model>.json, .pkl         {image: [answer of person 0, of person 1, …]}
    [<model>/]<image>_gt.txt   the answers of person 0, 1, … with spaces, commas or lines between

Where an image does not say its model it is that of `model`, or else the name of the mapping.
Pickles are read by `pickles.load_plain`, which runs nothing in them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from semsim.base.alike import alike
from semsim.base.errors import DataError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import setting
from semsim.base.stats.evidence import NONE_ANSWER
from semsim.base.table_files import ENDINGS, in_text, read_plain, read_texts
from semsim.importers.class_names import CLASS_LIST, class_name, read_class_names
from semsim.importers.file_names import Tree, below, hidden_note, id_and_label
from semsim.importers.human_tables import votes_found
from semsim.importers.import_plan import Findings, Unread, first_problem
from semsim.importers.pickles import PickledArray, load_plain
from semsim.importers.vote_rows import Sieve, counted_votes, named

_LONGEST = 1000  # more answers for one image than this are something else
_NONE = {"-1", NONE_ANSWER}


@dataclass(frozen=True, kw_only=True)
class AnnotatorFiles:
    """Files of answers: a CSV a person, a JSON or pickle mapping, or a text file an image."""

    model: str = setting("", text="Model, where neither image nor file name says it.")
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)
    votes_per_item: int | None = setting(None, text="Votes each reconstruction was to get.")
    headline: str = setting("majority", text="Human score to rank by.")

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """The votes in the files."""
        names = read_class_names(self.classes)
        root = source if source.is_dir() else source.parent
        read = _Answers(root=root, model=self.model, names=names)
        if not source.is_dir() and not source.is_file():
            raise DataError(f"{source} is neither a file nor a folder.")
        files = read.files() if source.is_dir() else read.named([source], root)
        for done, path in enumerate(files, start=1):
            read.file(path)
            report(Progress(done, len(files), "reading files"))
        if not read.rows:
            raise DataError(
                f"{source} holds no answer that can be read.{first_problem(read.unread)}"
            )
        rows = pd.DataFrame(read.rows).assign(dataset=self.dataset, attack=self.attack)
        found = votes_found(
            counted_votes(Sieve(rows=rows, unread=tuple(read.unread))),
            name=name,
            headline=self.headline,
            votes_per_item=self.votes_per_item,
        )
        return replace(found, notes=(*found.notes, *hidden_note(read.hidden)))


@dataclass(kw_only=True)
class _Answers(Tree):
    """Rows that have been read so far, and what could not be.

    model: where nothing else says it. names: of the classes, empty where they are not known.
    """

    model: str
    names: tuple[str, ...]
    rows: list[dict[str, str]] = field(default_factory=list)

    def file(self, path: Path) -> None:
        """Read one file; a broken one is left out as a whole."""
        where = below(path, self.root)
        readers: dict[str, Callable[[Path, str], None]] = {
            **dict.fromkeys(ENDINGS, self._person),
            ".json": lambda file, place: self._mapping(_read_json(file), file, place),
            ".pkl": lambda file, place: self._mapping(load_plain(file), file, place),
            ".pickle": lambda file, place: self._mapping(load_plain(file), file, place),
            ".txt": self._image_file,
        }
        reader = readers.get(path.suffix.lower())
        if reader is None:
            self.leave_out(f"expected a file ending in {', '.join(readers)}", path)
            return
        try:
            reader(path, where)
        except (DataError, OSError) as error:
            self.leave_out(str(error), path)

    def _person(self, path: Path, where: str) -> None:
        table = read_texts(path, DataError)
        rows = table.columns("image", "answer")
        self.unread += table.unread
        for place, image, answer in zip(rows.index, *(rows[c] for c in rows), strict=True):
            self._add(f"{where} {place}", image or "", path.stem, in_text(answer), "")

    def _mapping(self, mapping: Any, path: Path, where: str) -> None:
        if not isinstance(mapping, Mapping):
            raise DataError(f"holds a {type(mapping).__name__}, expected {{image: [answers]}}")
        for image, answers in mapping.items():
            self._add_all(f"{where}: {image}", str(image), answers, path.stem)

    def _image_file(self, path: Path, where: str) -> None:
        answers = re.split(r"[\s,;]+", read_plain(path, DataError).strip())
        self._add_all(where, path.relative_to(self.root).as_posix(), answers, "")

    def _add_all(self, where: str, image: str, answers: Any, model: str) -> None:
        cells = list(_cells(answers))
        if not cells or len(cells) > _LONGEST:
            self.unread.append(Unread(where, "expected a list of answers, one a person"))
            return
        for person, answer in enumerate(cells):
            self._add(where, image, f"ann{person}", answer, model)

    def _add(
        self, where: str, image: str, annotator: str, answer: str | None, otherwise: str
    ) -> None:
        """Take one answer, unless something about it cannot be understood."""
        path = PurePosixPath(image.replace("\\", "/"))
        image_id, label = id_and_label(path.stem)
        model = path.parent.name or self.model or otherwise
        true = None if label is None else class_name(label, self.names)
        said = NONE_ANSWER if alike(answer or "") in _NONE else self._class(answer)
        problems = [
            (true is None, f"{image!r} does not say a known class; expected <id>_<label>"),
            (not model, f"{image!r} does not say its model; give it with --model"),
            (said is None, f"{annotator} answered {answer!r}, which is no class"),
        ]
        why = next((reason for wrong, reason in problems if wrong), None)
        if why is not None:
            self.unread.append(Unread(where, why))
            return
        self.rows.append(
            {
                "where": f"{where}, {annotator}",
                "model": model,
                "image_id": image_id,
                "class_name": str(true),
                "annotator": annotator,
                "answer": str(said),
            }
        )

    def _class(self, answer: str | None) -> str | None:
        known = answer is not None and (self.names or answer.isdecimal())
        return named(answer, self.names) if known else None


def _cells(answers: Any) -> Iterator[str]:
    """The answers of one image as text; nothing where it is no list of numbers or words."""
    values = answers.values.ravel().tolist() if isinstance(answers, PickledArray) else answers
    if not isinstance(values, list | tuple):
        return
    for value in values:
        text = in_text(value) if isinstance(value, float | str) else str(value)
        yield text or ""


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_plain(path, DataError))
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not readable JSON ({error})") from error
