"""`semsim-studio reproduce semsim`: Tables 1 and 2 and the figures of the SemSim paper."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from semsim.campaign import work
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import Plan, choose_images
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.vertical import vertical_sets
from semsim.datasets import DATASETS
from semsim.device import cores
from semsim.errors import DataError, SettingsError
from semsim.learning.ablations_run import Material, Workplace
from semsim.learning.leave_out import read_materials
from semsim.registry import read_plugin
from semsim.reproduce.plans import (
    BELOW,
    CAMPAIGN_STEPS,
    PlanOption,
    planned_rows,
    planned_text,
)
from semsim.reproduce.semsim_plan import plan_rows, plan_text, works_of
from semsim.reproduce.semsim_results import results
from semsim.reproduce.semsim_scales import Part, Scale, in_mixed_precision, scale_of
from semsim.reproduce.semsim_studies import LABELS, next_steps, write_studies
from semsim.reproduce.semsim_tables import OURS
from semsim.reproduce.simulated_people import simulated_people
from semsim.reproduce.simulated_votes import simulated_votes
from semsim.sets.reader import read_set
from semsim.terminal import (
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
from semsim.weights import CHECKPOINTS

SIMULATED = "simulated"


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
            works, lower = works_of(asked, data_dir), BELOW.get(preset)
            below = works_of(scale_of(lower), data_dir, known=False) if lower else ()
            said = planned_text("semsim", works, CAMPAIGN_STEPS, preset, below)
            show_told([*planned, *planned_rows(works)], said, as_json)
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


def carried_out(
    plans: Mapping[str, Plan], data: Path, *, workers: int, scheduler: str, device: str
) -> dict[str, list[Path]]:
    """The reconstruction sets of every plan, by its name; what is done is not computed again.

    Raises `DataError` where some images could not be attacked.
    """
    from semsim.grid.machines import connect  # with Dask, which takes a second

    made: dict[str, list[Path]] = {}
    with connect(scheduler, workers, needs=work.__name__) as client:
        for name, plan in plans.items():
            with TerminalBar(name) as bar:
                outcome = run_plan(plan, data, client, HowToRun(device=device), bar)
            if outcome["undone"]:
                why = "; ".join(outcome["undone"])
                raise DataError(f"Not all of {name} could be computed; run it again. {why}")
            made[name] = [Path(one) for one in outcome["sets"]]
    return made


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
    jury, controls = simulated_people(
        dataset, learned, scale.jury_epochs, images, folder, workers=workers, of=part.name
    )
    found = simulated_votes(part.name, part.task, sets, jury, controls)
    path = folder / "simulated" / f"{part.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    found.labels.to_parquet(path.with_name(f"{path.stem}{LABELS}"), index=False)
    if found.votes is not None:
        found.votes.to_parquet(path, index=False)
    return path
