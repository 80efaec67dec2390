"""The built-in studies: ordinary campaigns, and what judges and the jury see in their sets.

Everything is computed here from seeds; `semsim-studio demo build` does it again. Finished
trainings and attacks are kept in a work folder, so that an interrupted build goes on. What the jury
sees lies as a file in each set of `symbols`.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from semsim.base.errors import DataError, SettingsError
from semsim.base.jobs.orders import to_record
from semsim.base.picture_files import read_pixels
from semsim.base.progress import Report, silent
from semsim.base.registry import check_settings, plain, setting
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.sets.set_format import JURY, JURY_COLUMNS
from semsim.base.storage.atomic import whole
from semsim.base.storage.pieces import key_of
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import DEMO_GRID, Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.datasets.symbols import GLYPHS
from semsim.device import pick_device
from semsim.distractors.apply import apply_judge
from semsim.distractors.judge_job import USUAL, JudgeOrder, do_judge
from semsim.distractors.registry import judge_path
from semsim.grid.executor import Piece, make_files
from semsim.images import from_uint8
from semsim.sets.writer import write_rows
from semsim.targets.simulated_annotators import (
    JURORS,
    JurySettings,
    TrainedJuror,
    keep_juror,
    kept_jury,
    log_probabilities,
    train_juror,
)

if TYPE_CHECKING:
    from semsim.grid.machines import Client

JUDGES = {"recogniser": "cnn-small", "predictor": "convnet8:width=12"}
# Under these no training reaches `until`, and 48 epochs end before the network has learned what the
# strategy lets it learn; after 96 it names its training pictures, and the share of test pictures
# has been flat for 24.
LONGER = ("3-1-7", "43-18-18", "hybrid")
STAGES = ("until=0.3", "until=0.97")  # beside the 0.65 of the others: early and late in a training
_FACES = 20  # in the test split of the detector
_JUROR = "jury/1"  # a change of what training does with the same settings
_LEAST = -12.0  # a log-probability that says no more than "never"; the file is smaller
_DIGITS = 2  # of a log-probability: who sees two classes alike names none, and the file is a third


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """Settings of the demo; few epochs and steps, so that two cores manage.

    Attributes:
        images: Each of another class, or face.
        train_per_class: Training images of the targets.
        width: Of their layers.
        epochs: Of their trainings, which end before where `until` of the test images are right.
        longer: Of those under the strategies in `LONGER`.
        attacks: Of all targets.
        judge_epochs, judge_per_class: Of the two classifiers that judge.
        jury_epochs, jury_per_class: Of the simulated annotators.
        device: Where targets are trained and attacked.
    """

    images: int = setting(12, "Images", "Originals attacked on each target.")
    train_per_class: int = 60
    width: int = 32
    epochs: int = 48
    longer: int = 96
    until: float = 0.65
    attacks: tuple[str, ...] = ("invgrad:fast", "prior:fast")
    judge_epochs: int = 10
    judge_per_class: int = 120
    jury_epochs: int = JurySettings.epochs
    jury_per_class: int = JurySettings.per_class
    seed: int = setting(0, "Seed", "Seed of all random draws.")
    together: int = setting(12, "Together", "Images attacked at once.", least=1)
    device: str = setting("auto", "Device", "auto, cpu, cuda or mps.")
    workers: int = setting(2, "Processes", "Processes, also on one GPU.", least=1)

    def __post_init__(self) -> None:
        check_settings(self)
        if not 1 <= self.images <= min(len(GLYPHS), _FACES):
            most = min(len(GLYPHS), _FACES)
            raise SettingsError(f"Between 1 and {most} images, each of another: {self.images}.")

    @property
    def jury(self) -> JurySettings:
        """Settings by which the simulated annotators are trained."""
        return JurySettings(
            per_class=self.jury_per_class,
            test_per_class=min(10, self.jury_per_class),
            epochs=self.jury_epochs,
            seed=self.seed,
        )


def plans(settings: DemoSettings) -> dict[str, tuple[Plan, ...]]:
    """The campaigns whose sets lie in each folder of the demo, worked out.

    "sets": symbols to be named, by two plain classifiers, with a smooth and a kinked activation,
    under the paper's seven strategies at the paper's strength, and the first without a strategy
    early and late in its training, too; the other learns too fast to be caught in between. Where a
    strategy keeps them below `until`, they are trained longer. "pairs": faces to be told apart, by
    detectors of faces.
    """
    width = settings.width
    symbols = replace(
        DEMO_GRID,
        datasets=(f"symbols:train_per_class={settings.train_per_class}",),
        architectures=tuple(
            text + ("" if width == 32 else f",width={width}") for text in DEMO_GRID.architectures
        ),
        strategies=tuple(name for name in DEMO_GRID.strategies if name not in LONGER),
        attacks=settings.attacks,
        images=settings.images,
        seeds=(settings.seed,),
        train=replace(DEMO_GRID.train, epochs=settings.epochs, until=settings.until),
        together=settings.together,
    )
    longer = replace(
        symbols,
        name="demo-longer",
        strategies=LONGER,
        train=replace(symbols.train, epochs=settings.longer),
    )
    stages = replace(symbols, name="demo-stages", strategies=("none",), trainings=STAGES)
    faces = replace(
        symbols,
        name="demo-faces",
        datasets=(f"face-or-not:train_per_picture={max(1, settings.train_per_class // 6)}",),
        strategies=("none", "crop-flip", "noise"),
        image_ids=tuple(f"face-or-not-test-{place:05d}" for place in range(settings.images)),
        train=replace(symbols.train, epochs=min(30, settings.epochs), lr=0.03, until=0.95),
    )
    return {
        "sets": (plan_of(symbols), plan_of(longer), _of_first_architecture(plan_of(stages))),
        "pairs": (plan_of(faces),),
    }


def _of_first_architecture(plan: Plan) -> Plan:
    """Planned together, so that its models have the names they have beside the others'."""
    first = plan.targets[0].plan.architecture
    targets = tuple(one for one in plan.targets if one.plan.architecture == first)
    return replace(plan, targets=targets, sets=tuple(s for s in plan.sets if s.target in targets))


def build_demo(
    out: Path, work: Path, settings: DemoSettings, client: "Client", *, report: Report = silent
) -> list[Path]:
    """Make the demo in `out`, keeping finished pieces in `work`; returns the set folders.

    Args:
        client: Of the cluster that trains and attacks, see `connect`.

    Raises:
        DataError: Where an attack could not be computed; another build goes on from there.
    """
    settings = replace(settings, device=str(pick_device(settings.device)))
    judges = _train_judges(work, settings, report)
    jury = train_jury(work, settings.jury, workers=settings.workers, report=report)
    made: dict[str, list[Path]] = {}
    for kind, wanted in plans(settings).items():
        found = [one for each in wanted for one in _sets(each, work, settings, client, report)]
        shutil.rmtree(out / kind, ignore_errors=True)
        made[kind] = [shutil.copytree(one, out / kind / _plain(one.name)) for one in sorted(found)]
    apply_judge(judges["predictor"], made["sets"], report=report)
    write_jury(made["sets"], jury)
    shutil.copyfile(judges["recogniser"], out / "recogniser.safetensors")
    return [folder for folders in made.values() for folder in folders]


def _plain(name: str) -> str:
    """The name of a campaign's set without the digits that tell odd names apart; here none is."""
    return re.sub("-[0-9a-f]{6}(?=__)", "", name)


def _sets(
    plan: Plan, work: Path, settings: DemoSettings, client: "Client", report: Report
) -> list[Path]:
    """The finished sets of a campaign, in `work`."""
    how = HowToRun(device=settings.device)
    outcome = run_plan(plan, work, client, how, report)
    if outcome["undone"]:
        why = "; ".join(outcome["undone"])
        raise DataError(f"Not all of {plan.campaign.name} could be computed; build again. {why}")
    return [Path(folder) for folder in outcome["sets"]]


def _train_judges(work: Path, settings: DemoSettings, report: Report) -> dict[str, Path]:
    """The weights of both judges; those that are there are used again."""
    orders = {name: _judge_order(name, work, settings) for name in JUDGES}
    paths = {name: judge_path(name, order.checkpoints) for name, order in orders.items()}
    pieces = [
        Piece(key=str(paths[name]), work=_train_judge, asked=(order,), note=f"trained the {name}")
        for name, order in orders.items()
    ]
    make_files(pieces, settings.workers, report)
    return paths


def _judge_order(name: str, work: Path, settings: DemoSettings) -> JudgeOrder:
    """Return an order for a judge as users train one; networks and first weights of all differ."""
    order = JudgeOrder(
        name=name,
        dataset=f"symbols:train_per_class={settings.judge_per_class}",
        architecture=JUDGES[name],
        train=replace(USUAL, epochs=settings.judge_epochs, seed=settings.seed),
        device=settings.device,
        data=Path(),
        checkpoints=Path(),
    )
    place = work / "judges" / key_of(to_record(order), 16)
    return replace(order, data=work, checkpoints=place)


def _train_judge(order: JudgeOrder, *, report: Report) -> None:
    torch.set_num_threads(1)
    do_judge(order, order.checkpoints, report)


def train_jury(
    work: Path, settings: JurySettings, *, workers: int = 2, report: Report = silent
) -> list[Path]:
    """The weights of all jurors in `work`; those that are there are used again."""
    paths = [juror_path(work, place, settings) for place in range(len(JURORS))]
    pieces = [
        Piece(
            key=str(path),
            work=_train_juror,
            asked=(place, settings, path),
            note=f"trained {one.name}",
        )
        for place, (path, one) in enumerate(zip(paths, JURORS, strict=True))
    ]
    make_files(pieces, workers, report)
    return paths


def juror_path(work: Path, place: int, settings: JurySettings) -> Path:
    """Return the file of the weights of juror number `place`."""
    juror = JURORS[place]
    bad = [step.__name__ for step in juror.bad]
    key = key_of(
        [_JUROR, juror.name, plain(juror.architecture), bad, juror.lr, plain(settings)], 16
    )
    return work / "jury" / f"{key}.safetensors"


def _train_juror(place: int, settings: JurySettings, path: Path, *, report: Report) -> None:
    torch.set_num_threads(1)
    keep_juror(JURORS[place], train_juror(place, settings, report=report), path)


def write_jury(folders: Iterable[Path], weights: Sequence[Path]) -> None:
    """Put what each juror sees into every set of `folders`; `DataError` for other classes."""
    jury = kept_jury(weights)
    for folder in folders:
        found = read_set(folder)
        if found.run["dataset"]["classes"] != list(GLYPHS):
            raise DataError(
                f"{folder} is of {found.run['dataset']['name']!r}; the simulated annotators know "
                f"only the {len(GLYPHS)} classes of the built-in symbols."
            )
        table = jury_table(found, jury)
        with whole(folder / JURY) as part:
            write_rows(table, part)


def jury_table(found: ReconstructionSet, jury: dict[str, TrainedJuror]) -> pd.DataFrame:
    """Return what each of `jury` sees in every original and reconstruction, as `JURY_COLUMNS`."""
    logs, subjects = [], ("original", "reconstruction")
    for subject in subjects:
        images = torch.stack([from_uint8(read_pixels(Path(one))) for one in found.pairs[subject]])
        logs += [log_probabilities(juror.model, images)[:, :-1].T for juror in jury.values()]
    of = {"subject": subjects, "juror": jury, "class_name": GLYPHS}
    told = [*map(pd.Categorical, map(list, of.values())), pd.Categorical(found.pairs["image_id"])]
    rows = pd.MultiIndex.from_product(told, names=[*of, "image_id"]).to_frame(index=False)
    rows["log_probability"] = np.ravel(logs).clip(_LEAST).round(_DIGITS).astype("float32")
    limits = {name: round(juror.threshold, 4) for name, juror in jury.items()}
    rows["threshold"] = rows["juror"].map(limits).astype("float32")
    return rows[list(JURY_COLUMNS)]
