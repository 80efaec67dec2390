"""The studies of a reproduction, ready for people: a file each, and the commands that use it.

The human study knows nothing of it; what goes between are files. `semsim-studio study create
--file FILE` makes the study of a file written here.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from semsim.base.places import PROGRAM
from semsim.base.whole import whole
from semsim.reproduce.semsim_paper import LIST_SIZE, VOTES_PER_IMAGE
from semsim.reproduce.semsim_scales import Part, Scale

LABELS = "-labels.parquet"  # ends the name of a study's labels, beside its votes
_DECOYS = 0.5  # pairs that show two originals, to one that does not; the paper names no rate


def write_studies(scale: Scale, sets: Mapping[str, Sequence[Path]], folder: Path) -> list[Path]:
    """A file a part, as the paper asked: five votes a picture, 20 words or a pair."""
    made = []
    for part in scale.parts:
        path = folder / f"{part.name}.yaml"
        with whole(path) as unfinished:
            unfinished.write_text(study_text(part, sets[part.name]), encoding="utf-8")
        made.append(path)
    return made


def study_text(part: Part, sets: Sequence[Path]) -> str:
    """The study of a part as YAML. Its lists and decoys are drawn by the study itself."""
    own = (
        {"list_size": LIST_SIZE, "repeat_rate": 0.0}
        if part.task == "recognition"
        else {"decoy_rate": _DECOYS, "repeat_rate": 0.0}
    )
    settings = {"name": part.name, "task": part.task, "votes_per_item": VOTES_PER_IMAGE, **own}
    lines = [f"{name}: {json.dumps(value)}" for name, value in settings.items()]
    lines += ["sets:", *(f"  - {json.dumps(str(one.resolve()))}" for one in sets)]
    return "\n".join(lines) + "\n"


def next_steps(
    scale: Scale, studies: Sequence[Path], folder: Path, data: Path, again: Sequence[str]
) -> str:
    """The commands that make the studies, export what people said, and go on from there.

    again: options of this command that must be given once more.
    """
    make, take, given = [], [], []
    below = shlex.join(["--data-dir", str(data)])
    for part, study in zip(scale.parts, studies, strict=True):
        votes = folder / "votes" / f"{part.name}.parquet"
        labels = votes.with_name(f"{votes.stem}{LABELS}")
        file, *out = (shlex.quote(str(path)) for path in (study, votes, labels))
        make.append(f"{PROGRAM} study create --file {file} {below}")
        take.append(f"{PROGRAM} study export {part.name} --out {out[0]} {below}")
        take.append(f"{PROGRAM} study labels {part.name} --out {out[1]} {below}")
        given.append(f"--votes {out[0]}")
    return "\n".join(
        [
            f"{len(studies)} studies are ready for people, {VOTES_PER_IMAGE} votes a picture:",
            *make,
            "When they have voted:",
            *take,
            f"{PROGRAM} reproduce semsim --preset {scale.name} {shlex.join(again)} "
            f"{' '.join(given)}",
            "A dry run without people: the same with --votes simulated.",
        ]
    )
