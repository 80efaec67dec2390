"""Reconstruction sets described by one table: .csv, .jsonl or .parquet, a row a reconstruction.

Columns: model, dataset, attack, image_id, class_name, original, reconstruction and, if known,
attacked. The last three are paths from the manifest's folder on, and lie in it. Row 1 is the first
below the header. Text in CSV that was escaped for spreadsheets is restored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotation.errors import StudyError
from annotation.formats.plain import read_table
from annotation.study.sets import SetFolder, SetImage, place_below
from annotation.texts import flaw, flaw_of_class
from semsim.base.alike import written
from semsim.base.table_files import REMARKS

PATHS = ("original", "reconstruction")
NAMES = ("model", "dataset", "attack", "image_id", "class_name")
COLUMNS = (*NAMES, *PATHS)
ATTACKED = "attacked"
_TIDY = ("model", "dataset", "attack", "image_id")  # two forms of a class are told, not joined

Row = Mapping[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Hold a manifest: one set a model, every problem with its row, columns not used.

    remarks: what was taken for granted of the file.
    """

    sets: tuple[SetFolder, ...]
    problems: tuple[str, ...]
    unused: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def read_manifest(path: Path) -> Manifest:
    """The manifest in `path`; rows with problems are in no set. No image is opened.

    Raises `StudyError` for a file that is no such table.
    """
    path = Path(path).resolve()
    table = read_table(path, dict.fromkeys(COLUMNS, "str"))
    if ATTACKED in table.columns:
        table[ATTACKED] = table[ATTACKED].astype("str")
    rows = _Rows(path=path)
    for row in table.astype(object).where(table.notna(), None).to_dict("records"):
        rows.add({**row, **{name: written(row[name]) for name in _TIDY if row[name]}})
    if not rows.n_rows:
        rows.problems.append(f"{path} has no row.")
    return Manifest(
        sets=tuple(rows.sets()),
        problems=tuple(rows.problems),
        remarks=tuple(table.attrs.get(REMARKS, ())),
        unused=tuple(str(name) for name in table.columns if name not in (*COLUMNS, ATTACKED)),
    )


@dataclass(kw_only=True)
class _Rows:
    """The rows read so far; `known` says for each thing what the first row about it said."""

    path: Path
    n_rows: int = 0
    problems: list[str] = field(default_factory=list)
    good: dict[str, list[tuple[Row, SetImage]]] = field(default_factory=dict)  # by model
    known: dict[str, tuple[str, int]] = field(default_factory=dict)  # value, row

    def add(self, row: Row) -> None:
        self.n_rows += 1
        found = list(self._problems(row))
        self.problems += [f"{self._where()}{problem}" for problem in found]
        if not found:
            self.good.setdefault(row["model"], []).append((row, self._image(row)))

    def sets(self) -> Iterator[SetFolder]:
        classes = {row["class_name"] for rows in self.good.values() for row, _ in rows}
        for model, rows in self.good.items():
            yield SetFolder(
                folder=self.path,
                model=model,
                attack=rows[0][0]["attack"],
                dataset=rows[0][0]["dataset"],
                classes=tuple(sorted(classes)),
                images=tuple(image for _, image in rows),
                n_failed=0,
            )

    def _where(self) -> str:
        return f"{self.path.name}, row {self.n_rows}: "

    def _problems(self, row: Row) -> Iterator[str]:
        empty = [name for name in COLUMNS if not (row[name] or "").strip()]
        if empty:
            yield f"{', '.join(empty)} must not be empty."
            return
        for name in NAMES:
            if wrong := (flaw_of_class if name == "class_name" else flaw)(row[name]):
                yield f"{name} {wrong}"
        for name in (*PATHS, ATTACKED):
            if row.get(name):
                try:
                    self._path(row[name])
                except StudyError as error:
                    yield f"{name} {error}"
        yield from self._contradictions(row)

    def _contradictions(self, row: Row) -> Iterator[str]:
        """Yield problems where a row differs from the first row about the same thing."""
        model, image = row["model"], row["image_id"]
        for what, value in (
            ("dataset", row["dataset"]),
            (f"attack on model {model!r}", row["attack"]),
            (f"class_name of image {image!r}", row["class_name"]),
        ):
            first, where = self.known.setdefault(what, (value, self.n_rows))
            if first != value:
                yield f"the {what} is {value!r}, in row {where} it is {first!r}; expected one."
        pair = f"model {model!r} has image {image!r}"
        _, where = self.known.setdefault(pair, ("", self.n_rows))
        if where != self.n_rows:
            yield f"{pair} in row {where} already."

    def _image(self, row: Row) -> SetImage:
        attacked = row.get(ATTACKED)
        return SetImage(
            image_id=row["image_id"],
            class_name=row["class_name"],
            original=self._path(row["original"]),
            reconstruction=self._path(row["reconstruction"]),
            attacked=self._path(attacked) if attacked else None,
            where=self._where(),
        )

    def _path(self, relative: str) -> Path:
        return place_below(self.path.parent, relative)
