"""`semsim-studio reproduce pbpfl`: Tables 2, 4, 5 and 6 of PBPFL, and what leaks.

Yang et al. 2020, arXiv:2002.09843. The paper's data sets (bank marketing, retina images, skin
lesions) are not here, and others stand in for them unless `--table`, `--abd` and `--ldc` name them.
What is compared is the pattern of its tables: PBPFL's errors equal FedAvg's from the same start, at
K = 1, 5 and 10 clients.

Below `leak/` lies a reconstruction set a network, round, seed and arm, of untrained and trained
networks. One that is there is not computed again.
"""

import functools
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import torch.nn.functional as F
import typer
from torch import Tensor

from semsim.base.cli.terminal import (
    DATA,
    Json,
    SchedulerOption,
    TerminalBar,
    show_told,
    text_table,
    told_errors,
)
from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.progress import Report, silent
from semsim.base.sets.reader import read_set
from semsim.base.storage.atomic import write_json
from semsim.base.storage.pieces import key_of
from semsim.base.storage.places import toml_of
from semsim.base.storage.records import read_record, write_record
from semsim.base.words import counted, with_spread
from semsim.device import how_busy, one_thread
from semsim.grid.executor import Piece, make_files
from semsim.layer_graph import LayerGraph, count_parameters
from semsim.papers.engine import MadeOption, PlanOption, Work, WorkPlan, attack_steps
from semsim.systems.federated.comparison import Loaded, largest_difference, load
from semsim.systems.federated.data import (
    FederatedData,
    FederatedExamples,
    digest_of,
    own_table_text,
)
from semsim.systems.federated.leak import LeakStudy, arms_for, write_arm
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.rounds import FederatedRun, train
from semsim.systems.federated.settings import ARMS, REFERENCE, FederatedOrder, FederatedSettings
from semsim.systems.federated.summary import COST_COLUMNS, leak_table
from semsim.systems.federated.verdict import over_seeds, scores_in, sentence, summary

CLIENTS = (1, 5, 10)
Cells = Mapping[tuple[str, str], Sequence[float]]  # network and scheme → by `CLIENTS`

_PRINTED = toml_of("semsim.papers", "printed.toml")["pbpfl"]
# Table 2: squared error, of bank marketing (UBMD) and of retina images (ABD).
TABLE_2: Mapping[str, Cells] = {
    data: {(network, scheme): cells for network, scheme, *cells in rows}
    for data, rows in _PRINTED["table_2"].items()
}
# Table 4: accuracy in per cent, of skin images (LDC).
TABLE_4: Cells = {(network, scheme): cells for network, scheme, *cells in _PRINTED["table_4"]}
# Table 5: seconds of PP, LFP, LBP and MU, ResNet56.
TABLE_5: Mapping[str, Mapping[str, float]] = _PRINTED["table_5"]

AGAIN = "FedAvg again"  # Table 5's control
_COSTS = (
    "LFP, local forward, × FedAvg's",
    "LBP, local backward, × FedAvg's",
    "a client in all, × FedAvg's",
    "MU, model update, × FedAvg's",
    "PP, parameter perturbation, of a FedAvg client's seconds",
    "what MU takes longer, of a FedAvg client's seconds",
)


@dataclass(frozen=True, kw_only=True)
class TrainingEnd:
    """One training at its end.

    Attributes:
        squared_error: Mean over test examples and outputs.
        accuracy: Share, None without classes.
        gap: PBPFL's largest difference from FedAvg-MSE's parameters, None for the others.
        moved: The largest change of a parameter since the start.
    """

    network: str
    scheme: str
    clients: int
    seed: int
    squared_error: float
    accuracy: float | None
    gap: float | None
    moved: float


def squared_error_text(cells: Sequence[TrainingEnd], data: str, paper: str, mean: float) -> str:
    """Table 2's pattern.

    Args:
        paper: Which of its data.
        mean: The error of the training mean.
    """
    head = (
        f"Table 2. Squared error on test examples of {data}, mean ± sd over seeds; lower is "
        f"better. The training mean for every example: {mean:.3f}. The paper's are of {paper}."
    )
    table = _by_clients(cells, lambda cell: cell.squared_error, 3, TABLE_2[paper])
    return f"{head}\n{table}\n{_gap(cells)}"


def accuracy_text(cells: Sequence[TrainingEnd], data: str, commonest: float) -> str:
    """Table 4's pattern.

    Args:
        commonest: The share of test images in the commonest training class.
    """

    def per_cent(cell: TrainingEnd) -> float:
        return float("nan") if cell.accuracy is None else 100 * cell.accuracy

    head = (
        f"Table 4. Accuracy on test images of {data} in per cent, mean ± sd over seeds. The "
        f"commonest class for every image: {100 * commonest:.1f}. The paper's are of skin images."
    )
    return f"{head}\n{_by_clients(cells, per_cent, 1, TABLE_4)}\n{_gap(cells)}"


def costs_text(costs: Mapping[str, Any]) -> str:
    """Table 5 as ratios: seconds depend on the machine."""
    plain, masked, again = (costs[name]["seconds"] for name in ("FedAvg", "PBPFL", AGAIN))
    columns = (
        cost_figures(plain, masked),
        cost_figures(plain, again),
        cost_figures(TABLE_5["FedAvg"], TABLE_5["PBPFL"]),
    )
    rows = [
        [title, *("–" if math.isnan(one) else f"{round(one, 2) + 0.0:.2f}" for one in values)]
        for title, *values in zip(_COSTS, *columns, strict=True)
    ]
    head = (
        f"Table 5. CPU seconds of one round in one thread: {costs['network']}, float64, "
        f"{costs['batch']} images of {costs['side']} × {costs['side']}, the least of "
        f"{costs['rounds']} rounds; begun with {costs['began']}."
    )
    defined = (
        f"{AGAIN}: what PBPFL's column would be if nothing but chance told the two apart. "
        "PP is drawing the masks, masking and packing the model. LFP "
        "and LBP are a client's passes, without packing. MU is unpacking the updates, recovery "
        "with its condition number, the weighted sum and the step; nobody waits for a client in "
        "it. Three times as many bytes are unpacked, and FedAvg recovers nothing. The "
        "paper's MU is 92.39 s to 89.11 s: nearly as long as FedAvg's clients take (91.08 s), far "
        "longer than averaging does. What it holds besides is not said, so that only the "
        "difference, 3.28 s, can be PBPFL's: it and PP are told as shares of a client's seconds. "
        "Both depend on weights alone, and a client's seconds on its pictures too."
    )
    return f"{head}\n{text_table(['', 'PBPFL', AGAIN, 'paper'], rows)}\n{defined}"


def cost_figures(plain: Mapping[str, float], other: Mapping[str, float]) -> list[float]:
    """Return `_COSTS` of another scheme's seconds beside plain FedAvg's, by PP, LFP, LBP and MU.

    NaN where plain FedAvg took less than the processor's clock tells.
    """
    client = plain["forward"] + plain["backward"]
    pairs = (
        (other["forward"], plain["forward"]),
        (other["backward"], plain["backward"]),
        (other["forward"] + other["backward"], client),
        (other["update"], plain["update"]),
        (other["perturb"] - plain["perturb"], client),
        (other["update"] - plain["update"], client),
    )
    return [seconds / of if of else math.nan for seconds, of in pairs]


def traffic_text(costs: Mapping[str, Any]) -> str:
    """Table 6 as counted numbers and real bytes of one client's round."""
    rows = []
    for title, way in (("server to client", "down"), ("client to server", "up")):
        plain, masked = (costs[name]["traffic"] for name in ("FedAvg", "PBPFL"))
        here = [
            f"{traffic[f'numbers_{way}']:,} ({traffic[f'bytes_{way}'] / 1e6:.2f})"
            for traffic in (plain, masked)
        ]
        ratio = masked[f"numbers_{way}"] / plain[f"numbers_{way}"]
        paper = "0.85 / 0.85" if way == "down" else "0.85 / 2.55"
        rows.append([title, *here, f"{ratio:.4f}", paper])
    head = (
        f"Table 6. Numbers in one message (megabytes), {costs['network']} with "
        f"{costs['parameters']:,} parameters."
    )
    header = ["", "FedAvg", "PBPFL", "ratio", "paper, FedAvg / PBPFL"]
    remark = (
        "The paper writes 0.85 MB and 2.55 MB; ResNet56 has 0.85 million parameters, which are "
        "3.4 MB in float32 and 6.8 MB in float64. β of the last layer is zero and is not sent."
    )
    return f"{head}\n{text_table(header, rows)}\n{remark}"


def _by_clients(
    cells: Sequence[TrainingEnd], value: Callable[[TrainingEnd], float], digits: int, paper: Cells
) -> str:
    counts = sorted({cell.clients for cell in cells})
    keys = dict.fromkeys((cell.network, cell.scheme) for cell in cells)
    rows = []
    for key in keys:
        row = [*key]
        for count in counts:
            same = (*key, count)
            found = [value(c) for c in cells if (c.network, c.scheme, c.clients) == same]
            sd = statistics.stdev(found) if len(found) > 1 else None
            row.append(with_spread(statistics.fmean(found), sd, f".{digits}f"))
        row.append(" / ".join(f"{one:.{digits}f}" for one in paper.get(key, ())))
        rows.append(row)
    told = f"paper, K={' / '.join(map(str, CLIENTS))}"
    return text_table(["network", "scheme", *(f"K={count}" for count in counts), told], rows)


def _gap(cells: Sequence[TrainingEnd]) -> str:
    worst = max(cell.gap for cell in cells if cell.gap is not None)
    least = min(cell.moved for cell in cells if cell.scheme == "FedAvg-MSE")
    seeds = counted(len({cell.seed for cell in cells}), "seed")
    return (
        f"{seeds}. PBPFL and FedAvg-MSE end {worst:.0e} apart in their most different "
        f"parameter, the worst of all trainings; since the start FedAvg-MSE's has changed by "
        f"{least:.0e} or more."
    )


@dataclass(frozen=True, kw_only=True)
class LeakPlan:
    """Plan of the attacked networks, rounds and images.

    Attributes:
        networks: Names, with the arms of each; the arms they are compared with come along.
        rounds: The attacked ones, of which 1 is an untrained network.
        seeds: Each with weights, clients and images of its own.
        images: As many clients, each with one image in its mini-batch.
        lr: Of the rounds before.
    """

    data: str = "digits"
    networks: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("lenet", tuple(ARMS)),
        ("mlp-3", tuple(ARMS)),
    )
    rounds: tuple[int, ...] = (1, 61)
    seeds: int = 5
    images: int = 16
    lr: float = 0.05
    attack: str = "invgrad:steps=300,tv=0.002"


class AttackedRound(NamedTuple):
    """A round of a network's training under a seed, whose messages are attacked."""

    network: str
    number: int
    seed: int

    def set_of(self, arm: str, out: Path) -> Path:
        """Return the folder where an arm's reconstruction set is, or will be, below `out`."""
        return self.within(out) / "sets" / arm

    def within(self, out: Path) -> Path:
        """Return the folder of all arms' sets below `out`."""
        return out / "leak" / f"{self.network}-round{self.number}-seed{self.seed}"


def leak_pieces(plan: LeakPlan, out: Path) -> list[Piece]:
    """One attack an arm; those that attack one image after the other first, as they take long."""
    pieces = [
        Piece(
            key=str(AttackedRound(network, number, seed).set_of(arm, out) / "run.json"),
            work=_attack,
            asked=(plan, AttackedRound(network, number, seed), arm, out),
            note=f"{network}, round {number}, seed {seed}: {ARMS[arm].title}",
        )
        for network, wanted in plan.networks
        for number in plan.rounds
        for seed in range(plan.seeds)
        for arm in arms_for(network, loaded(plan.data).data, wanted)
    ]
    return sorted(pieces, key=lambda one: own_models(Path(one.key).parent.name), reverse=True)


def leak_works(plan: LeakPlan, pieces: Sequence[Piece]) -> list[Work]:
    """Return a row a network and party of the attacks in `pieces`; a cell is a picture."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        _, attacked, arm, _ = piece.asked
        groups.setdefault((attacked.network, arm), []).append(piece)
    works = []
    for (network, arm), own in groups.items():
        cells, done = (plan.images * n for n in (len(own), n_done(own)))
        what, steps = f"attack {network}, {arm}", cells * attack_steps(plan.attack)
        works.append(Work(part="What leaks", what=what, cells=cells, done=done, steps=steps))
    return works


def n_done(pieces: Sequence[Piece]) -> int:
    """Count the files of `pieces` that are there."""
    return sum(Path(one.key).exists() for one in pieces)


def leak_text(plan: LeakPlan, out: Path) -> str:
    """Tables and verdicts of all that was attacked, which leak.json in `out` keeps, too."""
    found = [
        _summed(plan, out, network, number, arms_for(network, loaded(plan.data).data, wanted))
        for network, wanted in plan.networks
        for number in plan.rounds
    ]
    write_json(out / "leak.json", {"plan": asdict(plan), "found": found})
    return "\n\n".join(_words(plan, one) for one in found)


def _attack(
    plan: LeakPlan, attacked: AttackedRound, arm: str, out: Path, *, report: Report
) -> None:
    study = _study(plan, attacked)
    write_arm(attacked.set_of(arm, out), study, study.attack(arm, report))


def _summed(
    plan: LeakPlan, out: Path, network: str, number: int, arms: Sequence[str]
) -> dict[str, Any]:
    """The scores of one network in one round over all seeds."""
    rounds = [AttackedRound(network, number, seed) for seed in range(plan.seeds)]
    scores = over_seeds([scores_in(one.within(out), list(arms)) for one in rounds])
    references = [read_set(one.set_of(REFERENCE, out)) for one in rounds]
    shares = [one.run["target"]["accuracy"] for one in references]
    return {
        "network": network,
        "round": number,
        "accuracy": sum(shares) / len(shares),
        "scores": [asdict(score) for score in scores],
        "sentences": [sentence(score) for score in scores],
        "summary": summary(scores),
    }


def _words(plan: LeakPlan, one: dict[str, Any]) -> str:
    state = "untrained" if one["round"] == 1 else f"after {one['round'] - 1} rounds"
    head = (
        f"What leaks: {one['network']}, {state} (accuracy {one['accuracy']:.0%}), {plan.data}, "
        f"{counted(plan.seeds, 'seed')} of {counted(plan.images, 'image')}, {plan.attack}. Mean ± "
        f"sd and differences with 95 % intervals over {'seeds' if plan.seeds > 1 else 'images'}."
    )
    return "\n".join([head, leak_table(one), *one["sentences"], "In short:", *one["summary"]])


def own_models(arm: str) -> bool:
    """Return whether every client's image is attacked by another model, which excludes batches."""
    own = ARMS[arm]
    return own.view != "server" and own.noise_scope == "client" and own.treatment != "closed-form"


@functools.lru_cache(maxsize=4)  # of a seed: both networks, untrained and trained
def _study(plan: LeakPlan, attacked: AttackedRound) -> LeakStudy:
    found = loaded(plan.data)
    if found.images is None:
        raise SettingsError(f"Only images can be reconstructed; {plan.data!r} is a table.")
    order = FederatedOrder(
        network=attacked.network,
        images=plan.images,
        attack_round=attacked.number,
        lr=plan.lr,
        seed=attacked.seed,
        attack=plan.attack,
    )
    return LeakStudy(found.data, found.images, order)


@functools.lru_cache(maxsize=2)
def loaded(name: str) -> Loaded:
    """`load`, once a process."""
    return load(name)


BATCH = 32  # of each client, as in the paper
_TINY = "symbols:train_per_class=1,test_per_class=1,size=16"
_COST_CLASSES = 7  # of the paper's skin lesions: makes ResNet56 851,312 parameters
FORMAT = "semsim-pbpfl/1"  # of the folder: preset.json says it
_OF_FILES = ("table", "folder")  # somebody's own: there may be several of a name in one run
ROWS, VALUES, CLASSES = "Table 2", "Table 2, images", "Table 4"  # what is compared
_PAPER_DATA = {ROWS: "bank marketing", VALUES: "retina images"}
STEPS = (
    "A step is a mini-batch of a client, or a step of an attack on one picture. Not counted: "
    "Tables 5 and 6, the rounds before an attacked one, and answers on test examples."
)


class ComparedTrainings(NamedTuple):
    """Trainings side by side: each network on `data`, a text, under every scheme."""

    data: str
    networks: tuple[str, ...]
    epochs: int
    lr: float
    schemes: tuple[str, ...] = ("FedAvg-MSE", "PBPFL")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Extent of the computation.

    Attributes:
        networks, table: Table 2's networks, and the rows of which they predict one number.
        valued: Images of which `image_network` predicts one number, Table 2's other half.
        image_network, images: Table 4's. epochs are passes of every client over its own part, so
            that more clients take fewer rounds, as in the paper (200).
        seeds: Repetitions, each with a start and a split of its own.
        costs: Table 5's network, on `cost_batch` images of `side` pixels, `cost_rounds` times.
        leak: What is attacked.
    """

    table: str = "breast-cancer"
    networks: tuple[str, ...] = ("mlp-3", "mlp-5", "mlp-7")
    table_epochs: int = 20
    table_lr: float = 0.02
    valued: str = "digit-values"
    images: str = "digits:size=8"  # as they are; 16 × 16 takes four times as long
    image_network: str = "resnet20"
    image_epochs: int = 12
    image_lr: float = 0.05
    seeds: int = 3
    costs: str = "resnet56-add"
    side: int = 32
    cost_batch: int = 4
    cost_rounds: int = 10
    leak: LeakPlan = field(default_factory=lambda: LeakPlan(seeds=3, images=4))

    @property
    def compared(self) -> dict[str, ComparedTrainings]:
        """Predictions of Table 2 from rows and from images, and Table 4; some may be left out."""
        how = (self.image_network,), self.image_epochs, self.image_lr
        classes = ("FedAvg-CE", "FedAvg-MSE", "PBPFL")
        found = {
            ROWS: ComparedTrainings(self.table, self.networks, self.table_epochs, self.table_lr),
            VALUES: ComparedTrainings(self.valued, *how),
            CLASSES: ComparedTrainings(self.images, *how, schemes=classes),
        }
        return {part: one for part, one in found.items() if one.data}


PRESETS: Mapping[str, Preset] = {
    "smoke": Preset(
        networks=("mlp-3",),
        table_epochs=1,
        images=_TINY,
        image_network="mlp-3",
        valued="",
        image_epochs=1,
        seeds=1,
        costs="resnet20-add",
        side=8,
        cost_batch=1,
        cost_rounds=1,
        leak=LeakPlan(
            data=_TINY,
            networks=(("mlp-3", ("uplink-closed-form",)),),
            rounds=(1, 2),
            seeds=2,
            images=2,
            attack="invgrad:steps=2",
        ),
    ),
    "small": Preset(),
    "paper": Preset(
        table_epochs=200,
        images="symbols",
        image_epochs=200,
        side=64,
        cost_batch=32,
        leak=LeakPlan(
            data="symbols",
            networks=tuple((name, tuple(ARMS)) for name in ("lenet", "resnet20", "mlp-3")),
            attack="invgrad:paper",
        ),
    ),
}


def reproduce_pbpfl(
    out: MadeOption = DATA / "reproduce/pbpfl",
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "small",
    workers: Annotated[int, typer.Option(min=1, help="Processes, which share the cores.")] = 1,
    table: Annotated[Path | None, typer.Option(help="Bank marketing, or another CSV.")] = None,
    target: Annotated[str | None, typer.Option(help="The column of --table to predict.")] = None,
    abd: Annotated[
        str, typer.Option(help="Retina images: table:path=train.csv,target=diagnosis,images=DIR.")
    ] = "",
    ldc: Annotated[str, typer.Option(help="Skin images in class folders: folder:root=DIR.")] = "",
    scheduler: SchedulerOption = "",
    plan: PlanOption = False,
    as_json: Json = False,
) -> None:
    """Train FedAvg and PBPFL side by side, count their costs, and attack what leaks.

    With --scheduler all machines share --out and the data, below the same paths.
    """
    if preset not in PRESETS:
        raise typer.BadParameter(f"{preset!r}: choose from {', '.join(PRESETS)}.")
    with told_errors(), TerminalBar(unit="step") as bar:
        own = own_table_text(table, target) if table or target else ""
        chosen = with_own(PRESETS[preset], own, abd, ldc)
        folder = out.resolve() / preset
        if plan:
            works = works_of(chosen, folder)
            WorkPlan(
                name="pbpfl",
                note=STEPS,
                works=works,
                preset=preset,
                below=lambda lower: works_of(PRESETS[lower], folder),
            ).show(as_json)
            return
        text = reproduced(chosen, folder, bar, workers, scheduler)
        rows = table_rows(chosen, folder) if as_json else []
    show_told(rows, text, as_json)


def works_of(chosen: Preset, folder: Path) -> list[Work]:
    """Return what `reproduced` trains and attacks, and what of that is done below `folder`."""
    works = []
    for table, pieces in trainings(chosen, folder).items():
        for network in dict.fromkeys(one.asked[0].network for one in pieces):
            own = [one for one in pieces if one.asked[0].network == network]
            steps = sum(one.asked[0].rounds * one.asked[0].clients for one in own)
            counts: dict[str, int] = {"cells": len(own), "done": n_done(own), "steps": steps}
            works += [
                Work(part=table, what=f"train {network}, {scheme}", **counts)
                for scheme in own[0].asked[2]
            ]
    return works + leak_works(chosen.leak, leak_pieces(chosen.leak, folder))


def with_own(chosen: Preset, table: str = "", valued: str = "", images: str = "") -> Preset:
    """`chosen` on the paper's data: data texts of UBMD, ABD and LDC, empty where one is missing.

    Raises `SettingsError` and `DataError` where these cannot be read or are of another kind.
    """
    found: dict[str, Any] = {"table": table, "valued": valued, "images": images}
    named = {name: text for name, text in found.items() if text}
    for name, text in named.items():
        data = load(text).data
        if (len(data.input_shape) == 1) != (name == "table"):
            raise SettingsError(f"{text} holds {'images' if name == 'table' else 'no images'}.")
        if bool(data.classes) != (name == "images"):
            raise SettingsError(f"{text} has {'classes' if data.classes else 'no classes'}.")
    return replace(chosen, **named)


def under(settings: FederatedSettings, scheme: str) -> FederatedSettings:
    """Return the same training as FedAvg-CE, FedAvg-MSE or PBPFL, as the paper's tables say."""
    if scheme == "PBPFL":
        return replace(settings, scheme="pbpfl")
    return replace(settings, loss="cross-entropy" if scheme == "FedAvg-CE" else "mse")


def reproduced(
    chosen: Preset, out: Path, report: Report = silent, workers: int = 1, scheduler: str = ""
) -> str:
    """All tables of `chosen` as text, which is also kept as tables.txt in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    _begin(chosen, out)
    if not (out / "costs.json").exists():  # timed first, while nothing else runs
        write_json(out / "costs.json", costs(chosen))
    trained = trainings(chosen, out)
    pieces = [*leak_pieces(chosen.leak, out), *(one for own in trained.values() for one in own)]
    # A run cut short has whole seeds.
    make_files(sorted(pieces, key=seed_of), workers, report, scheduler)
    fifth = jobs.read_json(out / "costs.json")
    parts = [
        squared_error_text(_cells(trained[part]), one.data, _PAPER_DATA[part], mean_error(one.data))
        for part, one in chosen.compared.items()
        if part in _PAPER_DATA
    ]
    parts += [
        accuracy_text(_cells(trained[CLASSES]), chosen.images, commonest_share(chosen.images)),
        costs_text(fifth),
        traffic_text(fifth),
        leak_text(chosen.leak, out),
    ]
    text = "\n\n".join(parts)
    (out / "tables.txt").write_text(text + "\n", encoding="utf-8")
    return text


def table_rows(chosen: Preset, out: Path) -> list[dict[str, Any]]:
    """The rows of all tables that `reproduced` has left in `out`; of 2 and 4, one a training."""
    rows: list[dict[str, Any]] = [
        {"table": 4 if part == CLASSES else 2, "data": chosen.compared[part].data, **asdict(cell)}
        for part, made in trainings(chosen, out).items()
        for cell in _cells(made)
    ]
    known = jobs.read_json(out / "costs.json")
    rows += [
        {"table": number, "scheme": scheme, **known[scheme][what]}
        for number, what, schemes in (
            (5, "seconds", ("FedAvg", "PBPFL", AGAIN)),
            (6, "traffic", ("FedAvg", "PBPFL")),
        )
        for scheme in schemes
    ]
    return rows + [
        {"table": "leak", "network": one["network"], "round": one["round"], **score}
        for one in jobs.read_json(out / "leak.json")["found"]
        for score in one["scores"]
    ]


def mean_error(data: str) -> float:
    """The mean squared error on test examples of whoever says the training mean of all of them."""
    examples = load(data).data
    gaps = examples.test.targets - examples.train.targets.double().mean(0)
    return float(gaps.square().mean())


def commonest_share(data: str) -> float:
    """The share of test images that are of the commonest class among the training images."""
    examples = load(data).data
    if examples.train.labels is None or examples.test.labels is None:
        raise SettingsError(f"{data} has no classes.")
    commonest = examples.train.labels.mode().values
    return float((examples.test.labels == commonest).double().mean())


def trainings(chosen: Preset, out: Path) -> dict[str, list[Piece]]:
    """The comparisons of Tables 2 and 4 by what they compare, FedAvg against PBPFL."""
    return {
        part: [
            _piece(settings, asked.data, out, asked.schemes)
            for network in asked.networks
            for settings in _repeated(network, asked, chosen.seeds)
        ]
        for part, asked in chosen.compared.items()
    }


def costs(chosen: Preset) -> dict[str, Any]:
    """Tables 5 and 6: CPU seconds of one round, numbers and bytes of its messages, one client.

    Both schemes take turns, and the least of each is kept, since other programs only add to it.
    FedAvg has a second turn, by which chance is told from a difference.
    """
    data, began, size = _noise_images(chosen), how_busy(), chosen.cost_batch
    plain = FederatedSettings(
        network=chosen.costs, clients=1, rounds=1, batch_size=size, lr=1e-4, keep=()
    )
    runs: dict[str, list[FederatedRun]] = {"FedAvg": [], "PBPFL": [], AGAIN: []}
    with one_thread():
        for turn in range(chosen.cost_rounds + 1):
            for name, own in runs.items():
                run = train(under(plain, name), data)
                if turn:  # the first warms caches up
                    own.append(run)
    parameters = count_parameters(runs["FedAvg"][0].model)
    found: dict[str, Any] = {"network": chosen.costs, "parameters": parameters, "began": began}
    found |= {"side": chosen.side, "batch": size, "rounds": chosen.cost_rounds}
    for name, own in runs.items():
        all_seconds = [asdict(run.costs) for run in own]
        seconds = {key: min(one[key] for one in all_seconds) for key in COST_COLUMNS}
        found[name] = {"seconds": seconds, "traffic": asdict(own[0].traffic)}
    return found


def seed_of(piece: Piece) -> int:
    """The seed of a comparison or of an attack."""
    first = piece.asked[0]
    return int(first.seed if isinstance(first, FederatedSettings) else piece.asked[1].seed)


def _piece(settings: FederatedSettings, data: str, out: Path, schemes: tuple[str, ...]) -> Piece:
    """One comparison of Tables 2 or 4, with a file of its own."""
    name, _, rest = data.partition(":")
    name += f"-{key_of(data, 8)}" if rest and name in _OF_FILES else ""
    stem = f"{name}-{settings.network}-k{settings.clients}-seed{settings.seed}"
    path = out / f"{stem}.json"
    return Piece(key=str(path), work=_compare, asked=(settings, data, schemes, path), note=stem)


def _compare(
    settings: FederatedSettings, data: str, schemes: tuple[str, ...], path: Path, *, report: Report
) -> None:
    del report  # these are many and short
    examples = load(data).data
    runs = {name: train(under(settings, name), examples) for name in schemes}
    plain, start = runs["FedAvg-MSE"].model, fresh_network(settings, examples)
    cells = [asdict(_cell(name, run, plain, start)) for name, run in runs.items()]
    write_json(path, {"cells": cells})


def _cells(pieces: Sequence[Piece]) -> list[TrainingEnd]:
    found = [jobs.read_json(Path(piece.key))["cells"] for piece in pieces]
    return [TrainingEnd(**cell) for cells in found for cell in cells]


def _begin(chosen: Preset, out: Path) -> None:
    """Keep what is computed here; `SettingsError` where the folder holds something else."""
    data = {one.data: digest_of(load(one.data).data) for one in chosen.compared.values()}
    asked = json.loads(json.dumps({**asdict(chosen), "examples": data}))
    path = out / "preset.json"
    if path.exists() and read_record(path, FORMAT, SettingsError) != asked:
        raise SettingsError(f"{out} holds tables of other settings or data. Choose another folder.")
    write_record(path, FORMAT, asked)


def _cell(scheme: str, run: FederatedRun, plain: LayerGraph, start: LayerGraph) -> TrainingEnd:
    last = run.curves[-1]
    return TrainingEnd(
        network=run.settings.network,
        scheme=scheme,
        clients=run.settings.clients,
        seed=run.settings.seed,
        squared_error=last.squared_error,
        accuracy=last.accuracy,
        gap=largest_difference(run.model, plain) if scheme == "PBPFL" else None,
        moved=largest_difference(run.model, start),
    )


def _repeated(network: str, asked: ComparedTrainings, seeds: int) -> list[FederatedSettings]:
    """Settings for every number of clients and every seed."""
    found, examples = [], len(load(asked.data).data.train)
    for clients in CLIENTS:
        share = math.ceil(examples / clients)
        rounds = asked.epochs * math.ceil(share / BATCH)
        found += [
            FederatedSettings(
                network=network,
                clients=clients,
                rounds=rounds,
                batch_size=BATCH,
                lr=asked.lr,
                seed=seed,
                evaluate_every=rounds,
                keep=(),
            )
            for seed in range(seeds)
        ]
    return found


def _noise_images(chosen: Preset) -> FederatedData:
    """Images for timing: noise takes as long as skin does."""
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(chosen.cost_batch, 3, chosen.side, chosen.side, generator=rng)
    labels = torch.arange(chosen.cost_batch) % _COST_CLASSES
    return FederatedData(
        name="noise",
        train=_examples(images, labels),
        test=_examples(images[:1], labels[:1]),
        mean=(0.5,) * 3,
        std=(0.3,) * 3,
        classes=tuple(str(number) for number in range(_COST_CLASSES)),
    )


def _examples(images: Tensor, labels: Tensor) -> FederatedExamples:
    targets = F.one_hot(labels, _COST_CLASSES).double()
    return FederatedExamples(inputs=images, targets=targets, labels=labels)
