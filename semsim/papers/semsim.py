"""`semsim-studio reproduce semsim`: Tables 1 and 2 and the figures of the SemSim paper.

Its studies are ready for people: a file each, and the commands that use it. The human study knows
nothing of it; what goes between are files. `semsim-studio study create --file FILE` makes the study
of a file written here.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    DeviceOption,
    Json,
    SchedulerOption,
    TerminalBar,
    WorkersOption,
    say,
    show_told,
    told_errors,
)
from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import read_plugin
from semsim.base.storage.atomic import write_text
from semsim.base.storage.places import PROGRAM
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import choose_images
from semsim.campaign.vertical import vertical_sets
from semsim.datasets import DATASETS
from semsim.device import cores
from semsim.learning.ablations_run import Material, Workplace
from semsim.learning.leave_out import read_materials
from semsim.papers.plans import CAMPAIGN_STEPS, PlanOption, carried_out, show_plan
from semsim.papers.semsim_results import OURS, results
from semsim.papers.semsim_scales import (
    LIST_SIZE,
    VOTES_PER_IMAGE,
    Part,
    Scale,
    in_mixed_precision,
    plan_rows,
    plan_text,
    scale_of,
    works_of,
)
from semsim.papers.simulated_votes import Voters, simulated_people, simulated_votes
from semsim.sets.reader import read_set
from semsim.weights import CHECKPOINTS

SIMULATED = "simulated"
LABELS = "-labels.parquet"  # ends the name of a study's labels, beside its votes
# Of pairs that show two originals, to one that does not, the paper names no rate.
_ASKED: dict[str, dict[str, Any]] = {
    "recognition": {"list_size": LIST_SIZE},
    "pair": {"decoy_rate": 0.5},
}


def reproduce_semsim(
    preset: Annotated[
        str, typer.Option(help="smoke, small (built-in data) or paper (a GPU, see --plan).")
    ] = "small",
    images: Annotated[
        Path | None,
        typer.Option(help="Folder <class>/<image>, as CIFAR-100's, in place of the first data."),
    ] = None,
    votes: Annotated[
        list[str] | None,
        typer.Option(
            help="Table of a study's votes, its labels beside it. simulated: by programs, "
            "for a dry run. Repeatable."
        ),
    ] = None,
    jury_epochs: Annotated[
        int,
        typer.Option(
            min=0, help="How long those programs learn, in tenths of the usual; 0: the preset's."
        ),
    ] = 0,
    mixed_precision: Annotated[
        bool,
        typer.Option(
            "--mixed-precision", help="bfloat16 in trainings and attacks, for a GPU; checked."
        ),
    ] = False,
    plan: PlanOption = False,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    device: DeviceOption = "auto",
    data_dir: DataOption = DATA,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    out: Annotated[Path, typer.Option(help="Folder for studies, tables and figures.")] = (
        DATA / "reproduce/semsim"
    ),
    as_json: Json = False,
) -> None:
    """Reconstructions of 14 targets on each data set, studies of them, and what votes on them say.

    Without --votes it ends with studies for people; with them it prints Tables 1 and 2 beside the
    paper's cells and writes Figures 3, 5, 6, 7 and 9. What was computed before is not again.
    """
    with told_errors():
        asked, given = scale_of(preset, images), list(votes or ())
        asked = in_mixed_precision(asked) if mixed_precision else asked
        folder, planned = out / asked.name, plan_rows(asked)
        (say if as_json else typer.echo)(plan_text(asked))
        if plan:
            works = works_of(asked, data_dir)
            show_plan(
                *("semsim", CAMPAIGN_STEPS, works, as_json),
                preset=preset,
                below=lambda lower: works_of(scale_of(lower), data_dir, known=False),
                rows=planned,
            )
            return
        check_votes(given, jury_epochs)
        folder.mkdir(parents=True, exist_ok=True)
        sets = reconstructions(asked, data_dir, workers=workers, scheduler=scheduler, device=device)
        studies = write_studies(asked, sets, folder / "studies")
        if not given:
            again = ["--data-dir", str(data_dir), "--out", str(out)]
            again += ["--images", str(images)] if images else []
            again += ["--mixed-precision"] if mixed_precision else []
            said = next_steps(asked, studies, folder, data_dir, again)
            show_told(planned, said, as_json)
            return
        if given == [SIMULATED]:
            longer = replace(asked, jury_epochs=jury_epochs or asked.jury_epochs)
            given = [str(one) for one in dry_run(longer, sets, folder, workers)]
        place = Workplace(
            checkpoints=checkpoints.resolve(),
            scores=(data_dir / "scores").resolve(),
            device=device,
            metrics=tuple(OURS.values()),
        )
        with TerminalBar("Judging") as bar:
            found = results(asked, material_of([Path(one) for one in given]), place, folder, bar)
        show_told(found.rows, found.text, as_json)
        say(f"Wrote {folder / 'tables.csv'} and {found.n_figures} figures.")


def check_votes(given: Sequence[str], jury_epochs: int = 0) -> None:
    """`SettingsError` for --votes that cannot be, before anything is computed.

    jury_epochs: not 0 where programs are to vote that learn so long.
    """
    if jury_epochs and list(given) != [SIMULATED]:
        raise SettingsError("--jury-epochs is of programs that vote: --votes simulated.")
    if SIMULATED in given and len(given) > 1:
        raise SettingsError("--votes is either simulated or the tables of people's votes.")
    for one in given:
        if one != SIMULATED:
            labels_beside(Path(one))


def labels_beside(votes: Path) -> Path:
    """The labels of the study whose votes are given; `DataError` where one of both is missing."""
    path = votes.with_name(f"{votes.stem}{LABELS}")
    for one, what in ((votes, "votes"), (path, "labels")):
        if not one.is_file():
            raise DataError(
                f"No {what} at {one}. Export both, `export STUDY --out NAME.parquet` and `labels "
                f"STUDY --out NAME{LABELS}` of `semsim-studio study`, into one folder."
            )
    return path


def material_of(votes: Sequence[Path]) -> Material:
    """Labels and votes of all studies as one table each."""
    return read_materials([labels_beside(path) for path in votes], votes)


def reconstructions(
    scale: Scale, data: Path, *, workers: int, scheduler: str, device: str
) -> dict[str, list[Path]]:
    """The reconstruction sets of every part, by its name; what is done is not computed again.

    Raises `DataError` where some images could not be attacked, or data sets are not there.
    """
    plans = {part.name: plan_of(part.campaign) for part in scale.parts if not part.vertical}
    made = carried_out(plans, data, workers=workers, scheduler=scheduler, device=device)
    for part in scale.parts:
        if part.vertical:
            with TerminalBar(part.name) as bar:
                made[part.name] = vertical_sets(
                    part.vertical, data, bar, workers=workers or cores(), scheduler=scheduler
                )
    return {name: with_pictures(sets, name) for name, sets in made.items()}


def with_pictures(sets: Sequence[Path], name: str) -> list[Path]:
    """The sets of a study in which an attack got any picture back; the others are named.

    Raises `DataError` where none did.
    """
    found = {one: not read_set(one).pairs.empty for one in sets}
    for one in (folder.name for folder, there in found.items() if not there):
        say(f"{name}: the attack on {one} failed on every image; it is in no study.")
    if not any(found.values()):
        raise DataError(f"Every attack of {name} failed, so there is nothing to ask people about.")
    return [one for one, there in found.items() if there]


def write_studies(scale: Scale, sets: Mapping[str, Sequence[Path]], folder: Path) -> list[Path]:
    """A file a part, as the paper asked: five votes a picture, 20 words or a pair, as YAML.

    Its lists and decoys are drawn by the study itself.
    """
    made = []
    for part in scale.parts:
        settings: dict[str, Any] = {"name": part.name, "task": part.task}
        settings["votes_per_item"] = VOTES_PER_IMAGE
        settings |= {**_ASKED[part.task], "repeat_rate": 0.0}
        lines = [f"{name}: {json.dumps(value)}" for name, value in settings.items()]
        lines += ["sets:", *(f"  - {json.dumps(str(one.resolve()))}" for one in sets[part.name])]
        made.append(folder / f"{part.name}.yaml")
        write_text(made[-1], "\n".join(lines) + "\n")
    return made


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


def dry_run(
    scale: Scale, sets: Mapping[str, Sequence[Path]], folder: Path, workers: int
) -> list[Path]:
    """Votes and labels of every part by programs, as tables below `folder`; those of the votes."""
    return [_simulated(part, scale, sets[part.name], folder, workers) for part in scale.parts]


def _simulated(part: Part, scale: Scale, sets: Sequence[Path], folder: Path, workers: int) -> Path:
    (text,) = part.campaign.datasets
    dataset, learned = (
        read_plugin(DATASETS, one) for one in (text, scale.jury_data.get(text, text))
    )
    images = choose_images(load(dataset, "test"), part.campaign)
    voters = Voters(dataset, learned, scale.jury_epochs, images)
    jury, controls = simulated_people(voters, folder, workers, part.name)
    found = simulated_votes(part.name, part.task, sets, jury, controls)
    path = folder / "simulated" / f"{part.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    found.labels.to_parquet(path.with_name(f"{path.stem}{LABELS}"), index=False)
    if found.votes is not None:
        found.votes.to_parquet(path, index=False)
    return path
