"""`semsim-studio reproduce pbpfl`: Tables 2, 4, 5 and 6 of PBPFL, and what leaks.

Yang et al. 2020, arXiv:2002.09843. Other data stand in for the paper's (bank marketing, retina
images, skin lesions) unless `--table`, `--abd` and `--ldc` name them. What is compared is the
pattern of its tables: PBPFL's errors equal FedAvg's from the same start, at K = 1, 5 and 10
clients.

Below `leak/` lies a reconstruction set a network, round, seed and arm, of untrained and trained
networks. One that is there is not computed again.
"""

import functools
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import torch
import torch.nn.functional as F
import typer
from torch import Tensor

from semsim.base.cli import terminal
from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.orders import changed
from semsim.base.progress import Report, silent
from semsim.base.sets.reader import read_set
from semsim.base.storage.atomic import write_json
from semsim.base.storage.pieces import key_of
from semsim.base.storage.records import read_record, write_record
from semsim.base.words import counted, with_spread
from semsim.device import how_busy, one_thread
from semsim.grid.executor import Piece, make_files
from semsim.layer_graph import LayerGraph, count_parameters
from semsim.papers import engine
from semsim.systems.federated.comparison import largest_difference, load
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


_PRINTED = engine.PRINTED["pbpfl"]
# Table 2: squared error, of bank marketing (UBMD) and of retina images (ABD).
TABLE_2: Mapping[str, Cells] = {
    of: {(row[0], row[1]): row[2:] for row in rows} for of, rows in _PRINTED["table_2"].items()
}
# Table 4: accuracy in per cent, of skin images (LDC).
TABLE_4: Cells = {(row[0], row[1]): row[2:] for row in _PRINTED["table_4"]}
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
BATCH = 32  # of each client, as in the paper
_COST_CLASSES = 7  # of the paper's skin lesions: makes ResNet56 851,312 parameters
FORMAT = "semsim-pbpfl/1"  # of the folder: preset.json says it
_OF_FILES = ("table", "folder")  # somebody's own: there may be several of a name in one run
ROWS, VALUES, CLASSES = "Table 2", "Table 2, images", "Table 4"  # what is compared
_PAPER_DATA = {ROWS: "bank marketing", VALUES: "retina images"}


@dataclass(frozen=True, kw_only=True)
class LeakPlan:
    """Plan of the attacked networks, rounds and images.

    Attributes:
        arms: Of each network; the arms they are compared with come along.
        rounds: The attacked ones, of which 1 is an untrained network.
        seeds: Each with weights, clients and images of its own.
        images: As many clients, each with one image in its mini-batch.
        lr: Of the rounds before.
    """

    data: str = "digits"
    networks: tuple[str, ...] = ("lenet", "mlp-3")
    arms: tuple[str, ...] = tuple(ARMS)
    rounds: tuple[int, ...] = (1, 61)
    seeds: int = 3
    images: int = 4
    lr: float = 0.05
    attack: str = "invgrad:steps=300,tv=0.002"

    def arms_of(self, network: str) -> list[str]:
        """The arms that a network allows."""
        return arms_for(network, loaded(self.data).data, self.arms)


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
    leak: LeakPlan = field(default_factory=LeakPlan)

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
    name: changed(Preset(), changes) for name, changes in engine.DECLARED["pbpfl"].items()
}


def reproduce_pbpfl(
    out: engine.MadeOption = terminal.DATA / "reproduce/pbpfl",
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "small",
    workers: Annotated[int, typer.Option(min=1, help="Processes, which share the cores.")] = 1,
    table: Annotated[Path | None, typer.Option(help="Bank marketing, or another CSV.")] = None,
    target: Annotated[str | None, typer.Option(help="The column of --table to predict.")] = None,
    abd: Annotated[
        str, typer.Option(help="Retina images: table:path=train.csv,target=diagnosis,images=DIR.")
    ] = "",
    ldc: Annotated[str, typer.Option(help="Skin images in class folders: folder:root=DIR.")] = "",
    scheduler: terminal.SchedulerOption = "",
    plan: engine.PlanOption = False,
    as_json: terminal.Json = False,
) -> None:
    """Train FedAvg and PBPFL side by side, count their costs, and attack what leaks.

    With --scheduler all machines share --out and the data, below the same paths.
    """
    with terminal.told_errors():
        own = own_table_text(table, target) if table or target else ""
        chosen = with_own(engine.of_preset(PRESETS, preset), own, abd, ldc)
        folder = out.resolve() / preset
        if plan:

            def below(lower: str) -> list[engine.Work]:
                return works_of(PRESETS[lower], folder)

            engine.show_plan("pbpfl", works_of(chosen, folder), as_json, (preset, below))
            return
        with terminal.TerminalBar(unit="step") as bar:
            text = reproduced(chosen, folder, bar, workers, scheduler)
        terminal.show_told(table_parts(chosen, folder) if as_json else {}, text, as_json)


def works_of(chosen: Preset, folder: Path) -> list[engine.Work]:
    """Return what `reproduced` trains and attacks, and what of that is done below `folder`."""
    works = []
    for part, pieces in trainings(chosen, folder).items():
        for network in dict.fromkeys(one.asked[0].network for one in pieces):
            own = [one for one in pieces if one.asked[0].network == network]
            steps = sum(one.asked[0].rounds * one.asked[0].clients for one in own)
            works += [
                _work(part, f"train {network}, {scheme}", own, steps) for scheme in own[0].asked[2]
            ]
    plan, groups = chosen.leak, dict[tuple[str, str], list[Piece]]()
    for piece in leak_pieces(plan, folder):
        groups.setdefault((piece.asked[1].network, piece.asked[2]), []).append(piece)
    for (network, arm), own in groups.items():
        steps = len(own) * plan.images * engine.attack_steps(plan.attack)
        works.append(_work("What leaks", f"attack {network}, {arm}", own, steps, plan.images))
    return works


def _work(part: str, what: str, pieces: Sequence[Piece], steps: int, each: int = 1) -> engine.Work:
    done = sum(Path(one.key).exists() for one in pieces)
    return engine.Work(part, what, each * len(pieces), each * done, steps)


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
    parts = [trained_text(part, cells_of(own), chosen) for part, own in trained.items()]
    parts += [costs_text(fifth), traffic_text(fifth), leak_text(chosen.leak, out)]
    text = "\n\n".join(parts)
    (out / "tables.txt").write_text(text + "\n", encoding="utf-8")
    return text


def _begin(chosen: Preset, out: Path) -> None:
    """Keep what is computed here; `SettingsError` where the folder holds something else."""
    data = {one.data: digest_of(load(one.data).data) for one in chosen.compared.values()}
    asked = json.loads(json.dumps({**asdict(chosen), "examples": data}))
    path = out / "preset.json"
    if path.exists() and read_record(path, FORMAT, SettingsError) != asked:
        raise SettingsError(f"{out} holds tables of other settings or data. Choose another folder.")
    write_record(path, FORMAT, asked)


def table_parts(chosen: Preset, out: Path) -> dict[str, Any]:
    """Return the rows of all tables that `reproduced` has left in `out`.

    Tables 2 and 4 have one for each training.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for part, made in trainings(chosen, out).items():
        name = "table_4" if part == CLASSES else "table_2"
        rows = terminal.rows_of(cells_of(made), data=chosen.compared[part].data)
        parts.setdefault(name, []).extend(rows)
    known = jobs.read_json(out / "costs.json")
    for number, what, schemes in (
        (5, "seconds", ("FedAvg", "PBPFL", AGAIN)),
        (6, "traffic", ("FedAvg", "PBPFL")),
    ):
        parts[f"table_{number}"] = [{"scheme": one, **known[one][what]} for one in schemes]
    leaks = [
        {"network": one["network"], "round": one["round"], **score}
        for one in jobs.read_json(out / "leak.json")["found"]
        for score in one["scores"]
    ]
    return {**parts, "leak": leaks}


def under(settings: FederatedSettings, scheme: str) -> FederatedSettings:
    """Return the same training as FedAvg-CE, FedAvg-MSE or PBPFL, as the paper's tables say."""
    if scheme == "PBPFL":
        return replace(settings, scheme="pbpfl")
    return replace(settings, loss="cross-entropy" if scheme == "FedAvg-CE" else "mse")


def trainings(chosen: Preset, out: Path) -> dict[str, list[Piece]]:
    """The comparisons of Tables 2 and 4 by what they compare, FedAvg against PBPFL."""
    return {
        part: [
            _piece(settings, asked, out)
            for network in asked.networks
            for settings in _repeated(network, asked, chosen.seeds)
        ]
        for part, asked in chosen.compared.items()
    }


def _repeated(network: str, asked: ComparedTrainings, seeds: int) -> list[FederatedSettings]:
    """Settings for every number of clients and every seed."""
    found, examples = [], len(load(asked.data).data.train)
    for clients in CLIENTS:
        rounds = asked.epochs * math.ceil(math.ceil(examples / clients) / BATCH)
        usual = FederatedSettings(
            network=network,
            clients=clients,
            rounds=rounds,
            batch_size=BATCH,
            lr=asked.lr,
            evaluate_every=rounds,
            keep=(),
        )
        found += [replace(usual, seed=seed) for seed in range(seeds)]
    return found


def _piece(settings: FederatedSettings, asked: ComparedTrainings, out: Path) -> Piece:
    """One comparison of Tables 2 or 4, with a file of its own."""
    name, _, rest = asked.data.partition(":")
    name += f"-{key_of(asked.data, 8)}" if rest and name in _OF_FILES else ""
    stem = f"{name}-{settings.network}-k{settings.clients}-seed{settings.seed}"
    path = out / f"{stem}.json"
    given = (settings, asked.data, asked.schemes, path)
    return Piece(key=str(path), work=_compare, asked=given, note=stem)


def _compare(
    settings: FederatedSettings, data: str, schemes: tuple[str, ...], path: Path, *, report: Report
) -> None:
    del report  # these are many and short
    examples = load(data).data
    runs = {name: train(under(settings, name), examples) for name in schemes}
    plain, start = runs["FedAvg-MSE"].model, fresh_network(settings, examples)
    write_json(path, {"cells": [_cell(*one, plain, start) for one in runs.items()]})


def _cell(scheme: str, run: FederatedRun, plain: LayerGraph, start: LayerGraph) -> dict[str, Any]:
    """Return one training at its end.

    squared_error: mean over test examples and outputs; accuracy: None without classes; gap: PBPFL's
    largest difference from FedAvg-MSE's parameters, None of the others; moved: the largest change
    of a parameter since the start.
    """
    last, settings = run.curves[-1], run.settings
    return {
        **{"network": settings.network, "scheme": scheme, "clients": settings.clients},
        **{"seed": settings.seed, "squared_error": last.squared_error, "accuracy": last.accuracy},
        "gap": largest_difference(run.model, plain) if scheme == "PBPFL" else None,
        "moved": largest_difference(run.model, start),
    }


def cells_of(pieces: Sequence[Piece]) -> pd.DataFrame:
    """Return the trainings of finished pieces, a row each, as `_cell` has them."""
    found = [jobs.read_json(Path(piece.key))["cells"] for piece in pieces]
    return pd.DataFrame([cell for cells in found for cell in cells])


def seed_of(piece: Piece) -> int:
    """The seed of a comparison or of an attack."""
    first = piece.asked[0]
    return int(first.seed if isinstance(first, FederatedSettings) else piece.asked[1].seed)


def trained_text(part: str, cells: pd.DataFrame, chosen: Preset) -> str:
    """Table 2's pattern, or Table 4's, beside what is right without looking at an example."""
    data = chosen.compared[part].data
    if part == CLASSES:
        shown, digits, paper = cells.assign(value=100 * cells["accuracy"]), 1, TABLE_4
        head = engine.caption("pbpfl", "table_4", data=data, commonest=100 * commonest_share(data))
    else:
        of = _PAPER_DATA[part]
        shown, digits, paper = cells.assign(value=cells["squared_error"]), 3, TABLE_2[of]
        head = engine.caption("pbpfl", "table_2", data=data, mean=mean_error(data), paper=of)
    rows = []
    for (network, scheme), own in shown.groupby(["network", "scheme"], sort=False):
        values = {f"K={n}": list(one["value"]) for n, one in own.groupby("clients")}
        rows.append({"network": network, "scheme": scheme, **values})
    columns: engine.Columns = {
        "network": lambda row: row["network"],
        "scheme": lambda row: row["scheme"],
        **{f"K={n}": functools.partial(_mean, f"K={n}", digits) for n in CLIENTS},
        f"paper, K={' / '.join(map(str, CLIENTS))}": lambda row: " / ".join(
            f"{one:.{digits}f}" for one in paper.get((row["network"], row["scheme"]), ())
        ),
    }
    told = engine.caption(
        "pbpfl",
        "gap",
        seeds=counted(cells["seed"].nunique(), "seed"),
        worst=cells["gap"].max(),
        least=cells[cells["scheme"] == "FedAvg-MSE"]["moved"].min(),
    )
    return f"{head}\n{engine.text_of(columns, rows)}\n{told}"


def _mean(head: str, digits: int, row: engine.Row) -> str:
    values = row[head]
    sd = statistics.stdev(values) if len(values) > 1 else None
    return with_spread(statistics.fmean(values), sd, f".{digits}f")


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


def costs_text(costs: Mapping[str, Any]) -> str:
    """Table 5 as ratios: seconds depend on the machine."""
    plain, masked, again = (costs[name]["seconds"] for name in ("FedAvg", "PBPFL", AGAIN))
    sides = {
        "PBPFL": cost_figures(plain, masked),
        AGAIN: cost_figures(plain, again),
        "paper": cost_figures(TABLE_5["FedAvg"], TABLE_5["PBPFL"]),
    }
    columns: engine.Columns = {
        "": lambda row: row["title"],
        **{side: functools.partial(_ratio, side) for side in sides},
    }
    rows = [
        {"title": title, **dict(zip(sides, values, strict=True))}
        for title, *values in zip(_COSTS, *sides.values(), strict=True)
    ]
    return engine.caption(
        "pbpfl", "table_5", **costs, again=AGAIN, table=engine.text_of(columns, rows)
    )


def _ratio(side: str, row: engine.Row) -> str:
    one = row[side]
    return "–" if math.isnan(one) else f"{round(one, 2) + 0.0:.2f}"  # no minus before 0.00


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


_MESSAGES = {  # title, the paper's megabytes
    "down": ("server to client", "0.85 / 0.85"),
    "up": ("client to server", "0.85 / 2.55"),
}
_TRAFFIC: engine.Columns = {
    "": lambda row: _MESSAGES[row["way"]][0],
    "FedAvg": lambda row: _message(row, "FedAvg"),
    "PBPFL": lambda row: _message(row, "PBPFL"),
    "ratio": lambda row: "{:.4f}".format(
        row["PBPFL"][f"numbers_{row['way']}"] / row["FedAvg"][f"numbers_{row['way']}"]
    ),
    "paper, FedAvg / PBPFL": lambda row: _MESSAGES[row["way"]][1],
}


def _message(row: engine.Row, scheme: str) -> str:
    traffic, way = row[scheme], row["way"]
    return f"{traffic[f'numbers_{way}']:,} ({traffic[f'bytes_{way}'] / 1e6:.2f})"


def traffic_text(costs: Mapping[str, Any]) -> str:
    """Table 6 as counted numbers and real bytes of one client's round."""
    sides = {scheme: costs[scheme]["traffic"] for scheme in ("FedAvg", "PBPFL")}
    table = engine.text_of(_TRAFFIC, [{"way": way, **sides} for way in _MESSAGES])
    return engine.caption("pbpfl", "table_6", **costs, table=table)


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
        for network in plan.networks
        for number in plan.rounds
        for seed in range(plan.seeds)
        for arm in plan.arms_of(network)
    ]
    return sorted(pieces, key=lambda one: own_models(Path(one.key).parent.name), reverse=True)


def own_models(arm: str) -> bool:
    """Return whether every client's image is attacked by another model, which excludes batches."""
    own = ARMS[arm]
    return own.view != "server" and own.noise_scope == "client" and own.treatment != "closed-form"


def _attack(
    plan: LeakPlan, attacked: AttackedRound, arm: str, out: Path, *, report: Report
) -> None:
    study = _study(plan, attacked)
    write_arm(attacked.set_of(arm, out), study, study.attack(arm, report))


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


loaded = functools.lru_cache(maxsize=2)(load)  # once a process


def leak_text(plan: LeakPlan, out: Path) -> str:
    """Tables and verdicts of all that was attacked, which leak.json in `out` keeps, too."""
    found = [
        _summed(plan, out, network, number) for network in plan.networks for number in plan.rounds
    ]
    write_json(out / "leak.json", {"plan": asdict(plan), "found": found})
    return "\n\n".join(_words(plan, one) for one in found)


def _summed(plan: LeakPlan, out: Path, network: str, number: int) -> dict[str, Any]:
    """The scores of one network in one round over all seeds."""
    rounds = [AttackedRound(network, number, seed) for seed in range(plan.seeds)]
    scores = over_seeds([scores_in(one.within(out), plan.arms_of(network)) for one in rounds])
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
    told = engine.caption(
        "pbpfl",
        "leak",
        **{"network": one["network"], "accuracy": one["accuracy"]},
        **{"data": plan.data, "attack": plan.attack},
        state="untrained" if one["round"] == 1 else f"after {one['round'] - 1} rounds",
        seeds=counted(plan.seeds, "seed"),
        images=counted(plan.images, "image"),
        over="seeds" if plan.seeds > 1 else "images",
    )
    return "\n".join([told, leak_table(one), *one["sentences"], "In short:", *one["summary"]])
