"""Reconstruction sets on a page of the attack lab: those to come, and those it made."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError
from semsim.base.jobs.folders import LIVE, JobState
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.sets.set_format import RUN
from semsim.base.words import counted
from semsim.lab.markup import pieces, rooted, study_address
from semsim.reporting.writing import png_address
from semsim.sets.no_attack_baseline import Count, Shown, judged_set

_LAB = pieces("lab.html")
WAITING, RUNNING, DONE = ("waiting", "waiting"), ("running", "under way"), ("ok", "done")
ABSENT = ("failed", "not there")  # of what was not attacked, or deleted since
_STATES = (WAITING, RUNNING, DONE, ABSENT)
_STRIP = 8  # pictures that came back last
SHOWN = 8  # pictures of a set in a row
_ROWS = 12  # sets in the line-up
UNCLEAR = "statistic: not above the no-attack baseline"
BY_SHAPES = "statistic: clearer by its shapes alone"
METHOD = (
    "Clearer, a statistic: clearly nearer to the picture that was attacked than a plain picture "
    "and than the mean of the other originals; or told apart from the other originals by its "
    "shapes alone, as negatives, outlines and wrong colours are (by luck, one of a set is). A "
    "failed attack counts as not clearer. What people recognise takes a study."
)


@dataclass(frozen=True, kw_only=True)
class RunSet:
    """One set of a run.

    Attributes:
        name: In words.
        folder: Where it is, or will be.
        target: How good what is attacked is at its task, "" where that is not known.
        state: `WAITING`, `RUNNING`, `DONE` or `ABSENT`.
    """

    name: str
    folder: Path
    target: str
    state: tuple[str, str]


def in_turn(named: Sequence[tuple[str, Path]], state: JobState) -> list[RunSet]:
    """The sets that a job makes one after another, each with its name and folder."""
    there = [(folder / RUN).is_file() for _, folder in named]
    now = there.index(False) if state in LIVE and False in there else -1
    missing = ABSENT if state is JobState.DONE else WAITING
    return [
        RunSet(
            name=name,
            folder=folder,
            target=_read(folder).target_words if there[n] else "",
            state=DONE if there[n] else RUNNING if n == now else missing,
        )
        for n, (name, folder) in enumerate(named)
    ]


def drawn(
    steps: Sequence[RunSet],
    said: Sequence[str],
    method: str,
    result: str,
    figures: Sequence[Sequence[str]] = (),
) -> list[str]:
    """Return the parts of a page that makes `steps`: strip, progress, verdict, result, line-up.

    Args:
        said: The verdict's sentences, none before there is one.
        method: See `verdict_html`.
        figures: See `line_up_html`.
    """
    progress = sets_html(steps) if steps else ""
    verdict = verdict_html(said, steps, method if steps else "") if said else ""
    return [strip_html(steps), progress, verdict, result, line_up_html(steps, figures)]


def sets_html(steps: Sequence[RunSet]) -> str:
    """A row for every set of a run, with a square that says how far it is."""
    rows = [(one.name, one.target or "–", one.state[1], None, [one.state]) for one in steps]
    return str(_LAB.sets(_STATES, rows))


def strip_html(steps: Sequence[RunSet]) -> str:
    """The pictures that came back last, each beside what was attacked."""
    done = [one for one in steps if one.state is DONE]
    done.sort(key=lambda one: _stamp(one.folder), reverse=True)
    each = -(-_STRIP // max(1, len(done)))  # so that the newest sets are all seen
    shown = [pair for one in done[:_STRIP] for pair in _pairs(one)[:each]][:_STRIP]
    return str(_LAB.pairs(shown)) if shown else ""


def verdict_html(said: Sequence[str], steps: Sequence[RunSet], method: str) -> str:
    """The lead and what follows, how it was judged, and by set what is above the baseline."""
    rows = [
        (
            one.name,
            one.target,
            _read(one.folder).attacker_words,
            Count.of(shown_in(one.folder)).short,
        )
        for one in steps
        if one.state is DONE
    ]
    return str(_LAB.verdict(said, method, rows))


def chip(shown: Shown) -> str:
    """Return the words below a picture that came back, "" where it is plain to see."""
    if not shown.clearer:
        return UNCLEAR
    return BY_SHAPES if shown.by_shapes else ""


def line_up_html(steps: Sequence[RunSet], figures: Sequence[Sequence[str]] = ()) -> str:
    """The first pictures of the sets below one another, the originals on top.

    Args:
        figures: Of each of `steps`, lines beside its pictures; none where they are not known yet.
    """
    rows: list[tuple[str, list[tuple[str, str]], Sequence[str]]] = []
    done = [(n, one) for n, one in enumerate(steps) if one.state is DONE]
    for n, one in done[:_ROWS]:
        found = _read(one.folder)
        if not rows:
            rows.append(("Originals", _originals(found), ()))
        pictures = _pictures(found, one.name)
        rows.append((one.name, pictures, figures[n] if n < len(figures) else ()))
    dropped = len(done) - _ROWS
    return str(_LAB.line_up(rows, f"{dropped} more" if dropped > 0 else ""))


def shown_in(folder: Path) -> tuple[Shown, ...]:
    """Return what each row of a set shows; rows that failed come last."""
    return _shown(folder, _stamp(folder))


@lru_cache(maxsize=256)
def _shown(folder: Path, changed: int) -> tuple[Shown, ...]:
    return judged_set(_read(folder))


def _pairs(one: RunSet) -> list[dict[str, Any]]:
    """Return the pairs of a set that the strip shows: those that succeeded."""
    found, shown = _read(one.folder), shown_in(one.folder)
    return [
        {
            "original": _address(found, row, "original"),
            "result": _address(found, row, "reconstruction"),
            "words": one.name,
            "chip": chip(shown[row]),
        }
        for row in range(min(len(found.pairs), _STRIP))
    ]


def _originals(found: ReconstructionSet) -> list[tuple[str, str]]:
    """The first originals: what each is called, and its address."""
    paths = found.manifest["original"].tolist()[:SHOWN]
    return [
        (f"original, picture {n}", png_address((found.folder / path).read_bytes()))
        if isinstance(path, str)
        else ("", "")
        for n, path in enumerate(paths, start=1)
    ]


def _pictures(found: ReconstructionSet, words: str) -> list[tuple[str, str]]:
    """Return the name and address of each of the first reconstructions; "" where there is none."""
    rows = itertools.count()  # among the pairs
    return [
        (f"{words}, picture {n}", _address(found, next(rows), "reconstruction"))
        if status == "ok"
        else ("", "")
        for n, status in enumerate(found.manifest["status"].tolist()[:SHOWN], start=1)
    ]


def _address(found: ReconstructionSet, row: int, kind: str) -> str:
    key = key_of(found.folder)
    return rooted(f"/studio/pictures/image/{key}/{row}/{kind}.png?v={_stamp(found.folder)}")


def key_of(folder: Path) -> str:
    """By what a page asks for the set in a folder, given as `set_folders` finds it."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:20]


def _stamp(folder: Path) -> int:
    try:
        return (folder / RUN).stat().st_mtime_ns
    except FileNotFoundError:  # deleted since
        raise DataError(f"{folder} is gone.") from None


def _read(folder: Path) -> ReconstructionSet:
    return _kept(folder, _stamp(folder))


@lru_cache(maxsize=256)
def _kept(folder: Path, changed: int) -> ReconstructionSet:
    return read_set(folder)


def made_html(inside: str, folders: Sequence[str | Path]) -> str:
    """Return the link to a study of what was made, then `inside`, then the folders of the sets."""
    sets = counted(len(folders), "reconstruction set")
    return str(_LAB.made(study_address(folders), inside, sets, folders))
