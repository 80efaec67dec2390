"""Simulated annotators: votes by networks on any data set, for a dry run of a paper's tables.

Five classifiers of the jury learn the data set's training images as bad as reconstructions are, and
answer what people would be asked. Every row says that it is simulated: no number made of it says
anything about people. What they say of originals, and of pictures that show nothing, stands beside.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from semsim.base.cli.terminal import TerminalBar
from semsim.base.columns import IMAGE_KEY
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.registry import Plugin, built, plain
from semsim.base.stats.evidence import NONE_ANSWER
from semsim.base.storage.pieces import key_of
from semsim.campaign.campaign_job import load
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import content_of
from semsim.device import cores
from semsim.grid.executor import Piece, make_files
from semsim.images import read_images, to_uint8
from semsim.learning.ablations_run import Material
from semsim.metrics.scoring import PAIR_COLUMNS, PairSet, pair_sets_of_folders
from semsim.sets.image import AttackResult, set_images
from semsim.sets.writer import write_set
from semsim.targets.simulated_annotators import (
    JURORS,
    Juror,
    TrainedJuror,
    certainty,
    juror_of,
    keep_juror,
    kept_jury,
    log_probabilities,
)
from semsim.types import LabelledImages

SAYS_NOTHING = "Simulated annotators: no evidence about people."
LIST_SIZE = 20  # words offered for a picture, the right one among them, as in the SemSim paper
_HELD_OUT = 5  # one of so many training images sets a juror's threshold,
_MOST_HELD_OUT = 2_000  # unless these are enough
SAME, DIFFERENT = "same", "different"
ORIGINAL, GREY, MEAN = "original", "grey", "mean"  # kinds of votes on what no attack made
CONTROL = "control"  # the attack of sets that no attack made
TITLES: Mapping[str, str] = MappingProxyType(
    {GREY: "a grey picture", MEAN: "the mean training picture", ORIGINAL: "the original itself"}
)
_NO_SETS: Mapping[str, Path] = MappingProxyType({})


class Jury(NamedTuple):
    """Shares of a jury's votes, 0 to 1, on pictures that no attack made.

    Attributes:
        originals: That recognise an original shown as it is.
        grey, mean: False alarms, which see something in a grey picture and in the mean training
            picture.
    """

    originals: float
    grey: float
    mean: float

    @property
    def blind(self) -> bool:
        """True if it recognises originals no more often than it raises a false alarm."""
        return self.originals <= max(self.grey, self.mean)

    @property
    def words(self) -> str:
        """All of it as a sentence."""
        return (
            f"these programs recognise {self.originals:.0%} of the originals; they see something "
            f"in {self.grey:.0%} of grey pictures and in {self.mean:.0%} of mean ones."
        )


def jury_of(votes: pd.DataFrame | None) -> Jury | None:
    """Return the `Jury` of `votes` on original, grey and mean pictures; None without such votes."""
    if votes is None or "kind" not in votes:
        return None
    something = ~votes["answer"].isin([NONE_ANSWER, DIFFERENT])
    shares = votes.assign(something=something).groupby("kind")[["recognised", "something"]].mean()
    if not {ORIGINAL, GREY, MEAN} <= set(shares.index):
        return None
    of = (("recognised", ORIGINAL), ("something", GREY), ("something", MEAN))
    return Jury(*(float(shares[column][kind]) for column, kind in of))


class Voters(NamedTuple):
    """Simulated annotators: their sets, what they learn, and for how many tenths of the usual.

    Attributes:
        dataset: Whose originals, `images`, are attacked.
    """

    dataset: Plugin
    learned: Plugin
    epochs: int
    images: LabelledImages


def simulated_people(
    voters: Voters, folder: Path, workers: int, of: str = ""
) -> tuple[list[Path], dict[str, Path]]:
    """A jury that has learned, and the controls by kind; jurors below `folder` are used again.

    Args:
        workers: 0 is one a core.
        of: The part of a scale that has controls of its own.

    Raises:
        DataError: Where pictures are missing.
    """
    dataset, learned, epochs, images = voters
    with TerminalBar(f"Simulated annotators of {of}" if of else "Simulated annotators") as bar:
        jury = data_set_jury(learned, epochs, folder, workers=workers or cores(), report=bar)
    return jury, write_controls(images, load(dataset, "train"), folder / "controls" / of)


def write_controls(images: LabelledImages, train: LabelledImages, folder: Path) -> dict[str, Path]:
    """Sets of pictures that no attack made, below `folder`, by kind.

    Args:
        images: The originals, (N, 3, H, W) in [0, 1].
        train: What targets learn from, of that size.
    """
    pictures = {
        GREY: torch.full_like(images.images, 0.5),
        MEAN: train.images.mean(0, keepdim=True).expand_as(images.images),
        ORIGINAL: images.images,
    }
    originals = [to_uint8(one) for one in images.images]
    made = {}
    for kind, shown in pictures.items():
        title, pairs = TITLES[kind], zip(map(to_uint8, shown), originals, strict=True)
        results = [AttackResult(picture=one, attacked=original) for one, original in pairs]
        run = {"name": title, "model": title, "attack": CONTROL, "dataset": images.dataset}
        made[kind] = write_set(folder / title.replace(" ", "-"), run, set_images(images, results))
    return made


def simulated_votes(
    study: str,
    task: str,
    sets: Sequence[Path],
    jury: Sequence[Path],
    controls: Mapping[str, Path] = _NO_SETS,
) -> Material:
    """Return a jury's votes on reconstruction sets, as the votes and labels a study exports.

    Args:
        task: "recognition", named from a list of `LIST_SIZE` words that all pictures of an original
            share, or "pair", same or not.
        jury: Of `data_set_jury`, of the data set of all `sets`.
        controls: Sets that no attack made, by the kind of votes that they get; they have no labels.
    """
    jurors, votes, labels = kept_jury(jury), [], []
    for one in pair_sets_of_folders(sets):
        own = _votes_on(one, task, jurors)
        votes.append(own.assign(kind="reconstruction"))
        labels.append(_labels_of(one, own, len(jurors)))
    for kind, folder in controls.items():
        (one,) = pair_sets_of_folders([folder])
        votes.append(_votes_on(one, task, jurors).assign(kind=kind))
    told: dict[str, Any] = {"study": study, "simulated": True, "votes_per_item": len(jurors)}
    marks = {**told, "task": task, "status": "counted", "headline": "majority"}
    return Material(
        labels=pd.concat(labels, ignore_index=True).assign(**told),
        votes=pd.concat(votes, ignore_index=True).assign(**marks),
    )


def data_set_jury(
    dataset: Plugin,
    epochs: int,
    work: Path,
    *,
    jurors: Sequence[Juror] | None = None,
    workers: int = 1,
    report: Report = silent,
) -> list[Path]:
    """The weights of all jurors of a data set, in `work`; those that are there are used again.

    Args:
        epochs: In tenths of those that each takes. They learn four of five training images; the
            fifth sets their thresholds, of many thousands only 2,000. No attacked image is among
            either; those of faces are changed copies.
        jurors: Others than `JURORS`.
    """
    jurors = JURORS if jurors is None else jurors
    paths = _jury_paths(dataset, epochs, work, jurors)
    pieces = [
        Piece(
            key=str(path), work=_train, asked=(place, juror, dataset, epochs, path), note=juror.name
        )
        for place, (path, juror) in enumerate(zip(paths, jurors, strict=True))
    ]
    make_files(pieces, workers, report)
    return paths


def _jury_paths(
    dataset: Plugin, epochs: int, work: Path, jurors: Sequence[Juror] = JURORS
) -> list[Path]:
    content = content_of(built(DATASETS, dataset))
    asked = [plain(dataset), epochs, *([content] if content else [])]
    keys = [
        key_of(["jury/3", place, *_plain(juror), *asked], 16) for place, juror in enumerate(jurors)
    ]
    return [work / "jury" / f"{key}.safetensors" for key in keys]


def _plain(juror: Juror) -> list[Any]:
    """Return all that tells its training from another's, so not its name."""
    bad = [getattr(step, "__name__", repr(step)) for step in juror.bad]
    return [plain(juror.architecture), bad, juror.lr, juror.epochs, dict(juror.training)]


def _train(
    place: int, juror: Juror, dataset: Plugin, epochs: int, path: Path, report: Report
) -> None:
    torch.set_num_threads(1)
    data = load(dataset, "train")
    every = max(_HELD_OUT, len(data) // _MOST_HELD_OUT)
    held = data.pick(range(0, len(data), every))
    learned = data.pick([number for number in range(len(data)) if number % every])
    begun = path.with_suffix(".begun")
    path.parent.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    found = juror_of(
        place, learned, held, epochs, place, juror=juror, checkpoint=begun, report=report
    )
    keep_juror(juror, found, path, cpu_seconds=time.process_time() - started)
    for one in path.parent.glob(f"{path.stem}-*.begun"):
        one.unlink()


def _votes_on(one: PairSet, task: str, jurors: dict[str, TrainedJuror]) -> pd.DataFrame:
    pictures = read_images([Path(path) for path in one.pairs["reconstruction"]])
    parts = []
    for name, juror in jurors.items():
        classes, logs = list(juror.model.classes[:-1]), log_probabilities(juror.model, pictures)
        answers = [
            _answer(task, row, classes, juror.threshold, image_id, shown)
            for row, image_id, shown in zip(
                logs, one.pairs["image_id"], one.pairs["class_name"], strict=True
            )
        ]
        right = one.pairs["class_name"].astype(str) if task == "recognition" else SAME
        found = one.pairs[["image_id", "class_name"]].assign(annotator=name, answer=answers)
        parts.append(found.assign(recognised=found["answer"] == right))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(dataset=one.dataset, attack=one.attack, model=one.model)


def _answer(
    task: str, logs: np.ndarray, classes: list[str], threshold: float, image_id: str, shown: str
) -> str:
    """Return the answer of a juror: a word of the list or none; same or different."""
    if shown not in classes:
        raise DataError(
            f"Simulated annotators do not know {shown!r}, only the classes they were trained on."
        )
    truth = classes.index(shown)
    offered = np.arange(len(classes))
    if task == "recognition":
        rng = np.random.default_rng(int(key_of([str(image_id), shown], 12), 16))
        wrong = rng.permutation(np.setdiff1d(offered, [truth]))[: LIST_SIZE - 1]
        offered = np.sort(np.append(wrong, truth))
    best = int(offered[logs[offered].argmax()])
    sure = certainty(logs, offered, best) >= threshold
    if task == "recognition":
        return classes[best] if sure else NONE_ANSWER
    return SAME if sure and best == truth else DIFFERENT


def _labels_of(one: PairSet, votes: pd.DataFrame, jurors: int) -> pd.DataFrame:
    """One row a reconstruction with its majority."""
    yes = votes.groupby("image_id")["recognised"].sum()
    table = one.pairs[list(PAIR_COLUMNS)].assign(
        dataset=one.dataset, attack=one.attack, model=one.model, n_votes=jurors
    )
    table["n_recognised"] = table["image_id"].map(yes).astype(int)
    table["recognisable"] = (table["n_recognised"] > jurors // 2).astype("boolean")
    return table[[*IMAGE_KEY, *(name for name in table.columns if name not in IMAGE_KEY)]]
