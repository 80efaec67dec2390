"""What the jury sees in reconstruction sets of `symbols`, as a file in each of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import torch

from semsim.base.whole import whole
from semsim.datasets.symbols import GLYPHS
from semsim.errors import DataError
from semsim.grid.engine import Piece, make_files
from semsim.images import from_uint8, read_pixels
from semsim.kept.keys import key_of
from semsim.progress import Report, silent
from semsim.registry import plain
from semsim.sets.format import JURY, JURY_COLUMNS
from semsim.sets.reader import ReconstructionSet, read_set
from semsim.sets.writer import write_rows
from semsim.targets.jurors import (
    JURORS,
    JurySettings,
    Verdict,
    keep_juror,
    kept_jury,
    log_probabilities,
    train_juror,
)

_PIECE = "jury/1"  # a change of what training does with the same settings
_LEAST = -12.0  # a log-probability that says no more than "never"; the file is smaller
_DIGITS = 2  # of a log-probability: who sees two classes alike names none, and the file is a third


def train_jury(
    work: Path, settings: JurySettings, *, workers: int = 2, report: Report = silent
) -> list[Path]:
    """The weights of all jurors in `work`; those that are there are used again."""
    paths = [juror_path(work, place, settings) for place in range(len(JURORS))]
    pieces = [
        Piece(key=str(path), work=_train, asked=(place, settings, path), note=f"trained {one.name}")
        for place, (path, one) in enumerate(zip(paths, JURORS, strict=True))
    ]
    make_files(pieces, workers, report)
    return paths


def juror_path(work: Path, place: int, settings: JurySettings) -> Path:
    """Where the weights of juror number `place` lie."""
    juror = JURORS[place]
    bad = [step.__name__ for step in juror.bad]
    key = key_of(
        [_PIECE, juror.name, plain(juror.architecture), bad, juror.lr, plain(settings)], 16
    )
    return work / "jury" / f"{key}.safetensors"


def _train(place: int, settings: JurySettings, path: Path, *, report: Report) -> None:
    torch.set_num_threads(1)
    keep_juror(place, train_juror(place, settings, report=report), path)


def write_jury(folders: Iterable[Path], weights: Sequence[Path]) -> None:
    """Put what each juror sees into every set of `folders`; `DataError` for other classes."""
    jury = kept_jury(weights)
    for folder in folders:
        found = read_set(folder)
        if found.run["dataset"]["classes"] != list(GLYPHS):
            raise DataError(
                f"{folder} is of {found.run['dataset']['name']!r}; the jury knows only the "
                f"{len(GLYPHS)} classes of the built-in symbols."
            )
        table = jury_table(found, jury)
        with whole(folder / JURY) as part:
            write_rows(table, part)


def jury_table(found: ReconstructionSet, jury: dict[str, Verdict]) -> pd.DataFrame:
    """What each of `jury` sees in every original and reconstruction, with `JURY_COLUMNS`."""
    parts = []
    for subject in ("original", "reconstruction"):
        pictures = [read_pixels(Path(path)) for path in found.pairs[subject]]
        images = torch.stack([from_uint8(picture) for picture in pictures])
        for name, juror in jury.items():
            logs = log_probabilities(juror.model, images)[:, :-1]
            parts.append(
                pd.DataFrame(logs.clip(_LEAST).round(_DIGITS), columns=list(GLYPHS))
                .assign(image_id=found.pairs["image_id"], subject=subject, juror=name)
                .melt(["image_id", "subject", "juror"], None, "class_name", "log_probability")
                .assign(threshold=round(juror.threshold, 4))
            )
    table = pd.concat(parts, ignore_index=True)[list(JURY_COLUMNS)]
    texts = dict.fromkeys(("image_id", "subject", "class_name", "juror"), "category")
    return table.astype({**texts, "threshold": "float32", "log_probability": "float32"})
