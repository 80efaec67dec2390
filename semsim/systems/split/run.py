"""An experiment in split inference: systems are trained, then attacked, each kept by its key.

    <data>/runs/_split/<key>.pt      a trained system, or what an attack on it got back
    <data>/runs/_split/<key>/        stages of a training under way
    <data>/runs/_split/<key>.safetensors  the recogniser of a data set

What is finished is taken from there, so that an interrupted run goes on. Every file is written
whole or not at all, and several runs may share them.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from semsim.base.errors import JobError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import built, plain
from semsim.base.storage import pieces
from semsim.base.storage.optional import arrow
from semsim.base.storage.pieces import Pieces
from semsim.base.storage.versions import software_versions
from semsim.base.threat import ThreatModel
from semsim.base.words import counted
from semsim.datasets import DATASETS
from semsim.defences.none import NoDefence
from semsim.device import now_on, pick_device
from semsim.grid.executor import Piece, Standing, compute
from semsim.images import to_uint8
from semsim.lab import Effort
from semsim.layer_graph import count_parameters
from semsim.metrics import Pairs, Resources, find_metric
from semsim.metrics.classifier import Classifier, load_classifier, recognised
from semsim.metrics.pixel import psnr
from semsim.metrics.reference_classifier import RECOGNISER, RECOGNISER_TRAIN
from semsim.metrics.structural import ssim
from semsim.sets.image import SetImage, picture_bytes
from semsim.sets.no_attack_baseline import Count, judged
from semsim.sets.writer import write_set
from semsim.systems.split import SPLIT_DEFENCES
from semsim.systems.split.attacks import FeatureInversion
from semsim.systems.split.defences import draw_selector, stage_of
from semsim.systems.split.networks import (
    AnyTask,
    ImageTask,
    SplitNetwork,
    SplitSystem,
    empty_system,
    observe,
    system_accuracy,
    task_of,
)
from semsim.systems.split.plan import (
    VALID_POINTS,
    ShadowAttack,
    SplitJob,
    SplitPlace,
    SplitPlan,
    attack_name,
    attacks_on,
    check,
    make_network,
    model_name,
    set_folder,
    without_metrics,
)
from semsim.systems.split.summary import COLUMNS, summary
from semsim.systems.split.training import Bench, read_tensors, write_tensors
from semsim.targets.chance import chance_of, facts_of_test
from semsim.targets.checkpoint import images_digest
from semsim.targets.model import save_target
from semsim.targets.train import accuracy, train_target
from semsim.types import LabelledImages, worse_than_grey

_BYTES = 4  # of a float32
_MIN_SSIM_SIDE = 11


@dataclass(frozen=True, kw_only=True)
class FeatureLeak:
    """Reconstructions of some test images by one attack, and measures of what they show.

    Attributes:
        images: (N, 3, H, W) in [0, 1].
        ssim, psnr: (N,) against the originals; SSIM is NaN where images are too small for its
            window.
        residuals, grey_residuals: (N,), the attack's own measure.
    """

    images: Tensor
    ssim: np.ndarray
    psnr: np.ndarray
    residuals: np.ndarray
    grey_residuals: np.ndarray
    shadow_accuracy: float
    decoder_error: float

    @property
    def worse_than_grey(self) -> list[bool]:
        """Of each image, see `semsim.types.worse_than_grey`."""
        pairs = zip(self.residuals.tolist(), self.grey_residuals.tolist(), strict=True)
        return [worse_than_grey(residual, grey) for residual, grey in pairs]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of one classification, for one image.

    Attributes:
        client, server: Multiplications and additions.
        sent, returned: Bytes.
    """

    client: int
    server: int
    sent: int
    returned: int


def leak_of(got: FeatureInversion, private: LabelledImages, count: int) -> FeatureLeak:
    """Measure what an attack on all test images, which the client sends, shows of `count` of them.

    Args:
        private: The client's images.
        count: See `evenly_spread`.
    """
    places = evenly_spread(private, count)
    found = [got.found[place] for place in places]
    images = (torch.stack([one.image for one in found]) * 255).round() / 255  # as files have it
    originals = private.images[places]
    return FeatureLeak(
        images=images,
        ssim=likeness(originals, images),
        psnr=psnr(originals, images).numpy(),
        residuals=np.array([one.residual for one in found]),
        grey_residuals=np.array([one.grey_residual for one in found]),
        shadow_accuracy=got.shadow_accuracy,
        decoder_error=got.decoder_error,
    )


def evenly_spread(data: LabelledImages, count: int) -> list[int]:
    """Places of at most `count` images, evenly over the data set and so over its classes."""
    count = min(count, len(data))
    return [place * len(data) // count for place in range(count)]


def likeness(originals: Tensor, images: Tensor) -> np.ndarray:
    """(N,) SSIM, NaN for images smaller than its window."""
    if min(originals.shape[2:]) < _MIN_SSIM_SIDE:
        return np.full(len(originals), np.nan)
    return ssim(originals, images).numpy()


def baselines(data: tuple[LabelledImages, LabelledImages], count: int) -> dict[str, np.ndarray]:
    """SSIM and PSNR of what an attacker has without any feature, (N,) each.

    "grey": a mid-grey image. "mean": the mean of the public images.
    """
    public, private = data
    originals = private.images[evenly_spread(private, count)]
    guesses = {
        "grey": torch.full_like(originals, 0.5),
        "mean": public.images.mean(dim=0, keepdim=True).expand_as(originals).contiguous(),
    }
    scores = {}
    for name, guess in guesses.items():
        scores[f"{name}_ssim"] = likeness(originals, guess)
        scores[f"{name}_psnr"] = psnr(originals, guess).numpy()
    return scores


@torch.no_grad()
def cost_of(system: SplitSystem, image: Tensor) -> Cost:
    """Measure the cost of classifying one image, (1, 3, H, W) in [0, 1]."""
    system.eval()
    image = image.to(system.selector.device)
    with FlopCounterMode(display=False) as head:
        features = system.send(image)
    with FlopCounterMode(display=False) as server:
        answers = [body(features) for body in system.bodies]
    with FlopCounterMode(display=False) as tail:
        system.tail(torch.cat(answers, dim=1))
    return Cost(
        client=head.get_total_flops() + tail.get_total_flops(),
        server=server.get_total_flops(),
        sent=_BYTES * features.numel(),
        returned=_BYTES * sum(answer.numel() for answer in answers),
    )


FORMAT = "semsim-split/1"  # part of every key: raise it where the same settings mean another thing
_ARRAYS = ("ssim", "psnr", "residuals", "grey_residuals")


def key_of(facts: dict[str, Any]) -> str:
    """A hash of all that decides a piece."""
    return pieces.key_of({"format": FORMAT, **facts}, 20)


def check_shared(pieces: Pieces[Any], keys: Iterable[str]) -> None:
    """`JobError` where what workers have made under `keys` is not among `pieces`."""
    if pieces.missing(keys):
        raise JobError(
            f"The workers are done, and what they have made is not in {pieces.folder}. The data "
            "folder must be one that all machines share, below the same path; or leave --scheduler "
            "out."
        )


class SplitStore:
    """The finished pieces below `data`.

    Attributes:
        leaks: What attacks got back, and the seconds they took.
    """

    def __init__(self, data: Path) -> None:
        self.folder = Path(data) / "runs" / "_split"
        self.leaks = Pieces(self.folder, ".pt", read=_read_leak, write=_write_leak)
        self.systems = Pieces(self.folder, ".pt", read=read_tensors, write=write_tensors)

    def recogniser(self, key: str) -> Path:
        """Return the path where a data set's recogniser is, or will be."""
        return self.folder / f"{key}.safetensors"

    def stages(self, key: str) -> Path:
        """Return the folder where a training keeps its half-finished stages."""
        return self.folder / key

    def write_system(self, key: str, system: SplitSystem, facts: dict[str, Any]) -> None:
        """Keep a trained system; its half-finished stages go."""
        content = {
            "state": {name: value.cpu() for name, value in system.state_dict().items()},
            "bodies": len(system.bodies),
            "fresh": system.noise.fresh,
            "facts": facts,
        }
        self.systems.write(key, content)
        shutil.rmtree(self.stages(key), ignore_errors=True)

    def read_system(
        self, key: str, network: SplitNetwork, task: AnyTask
    ) -> tuple[SplitSystem, dict[str, Any]]:
        """The kept system, in eval mode on the CPU, and what was told about it."""
        content = self.systems.read(key)
        system = empty_system(network, task, bodies=content["bodies"], fresh=content["fresh"])
        system.load_state_dict(content["state"])
        return system.eval(), content["facts"]


def _write_leak(path: Path, found: tuple[FeatureLeak, float]) -> None:
    leak, seconds = found
    content = {
        "images": (leak.images * 255).round().to(torch.uint8),
        "shadow_accuracy": leak.shadow_accuracy,
        "decoder_error": leak.decoder_error,
        "seconds": seconds,
        **{name: torch.from_numpy(getattr(leak, name)) for name in _ARRAYS},
    }
    write_tensors(path, content)


def _read_leak(path: Path) -> tuple[FeatureLeak, float]:
    content = read_tensors(path)
    leak = FeatureLeak(
        images=content["images"].float() / 255,
        shadow_accuracy=content["shadow_accuracy"],
        decoder_error=content["decoder_error"],
        **{name: content[name].numpy() for name in _ARRAYS},
    )
    return leak, float(content["seconds"])


def write_split_set(
    folder: Path, record: Mapping[str, Any], images: LabelledImages, leak: FeatureLeak
) -> Path:
    """Write the set, one row an image of `images`; `record` says what was attacked and how."""
    dataset = {
        "name": images.dataset,
        "classes": list(images.classes),
        "size": list(images.images.shape[2:]),
    }
    run = {**record, "dataset": dataset, "status": "ok", "versions": software_versions()}
    return write_set(folder, run, (_image(images, leak, place) for place in range(len(images))))


def _image(images: LabelledImages, leak: FeatureLeak, place: int) -> SetImage:
    original, label = to_uint8(images.images[place]), int(images.labels[place])
    residual, grey = float(leak.residuals[place]), float(leak.grey_residuals[place])
    return SetImage(
        image_id=images.ids[place],
        class_id=label,
        class_name=images.classes[label],
        original=original,
        reconstruction=to_uint8(leak.images[place]),
        attacked=original,
        objective=residual,
        shift_x=0,
        shift_y=0,
        flipped=False,
        residual=residual,
        grey_residual=grey,
        worse_than_grey=leak.worse_than_grey[place],
    )


_TIMED = 20  # classifications of one image of which the median time is told
_TRAINING, _ATTACKS = 0.3, 0.65  # shares of the progress of several workers
_System = tuple[str, str, int]  # network, defence, seed


@dataclass(frozen=True, kw_only=True)
class TrainedSystem:
    """A system of the plan.

    Attributes:
        change: Of accuracy, against the undefended one of the same seed.
    """

    system: SplitSystem
    network: str
    defence: str
    seed: int
    accuracy: float
    change: float
    key: str

    @property
    def valid(self) -> bool:
        """True if its accuracy is near enough to the undefended one's."""
        return self.change >= -VALID_POINTS - 1e-9

    @property
    def model(self) -> str:
        """Its name, unique within an experiment."""
        return model_name(self.network, self.defence, self.seed)


def run_split(
    plan: SplitPlan,
    place: SplitPlace,
    report: Report = silent,
    workers: int = 1,
    scheduler: str = "",
) -> dict[str, Any]:
    """Carry out `plan`; finished pieces are taken from the data folder.

    Args:
        workers: Processes that share systems and attacks; none of these is ever divided.
        scheduler: Address of a Dask scheduler whose workers, which have the same data folder, are
            these instead.

    Returns:
        What a result page needs, ready for JSON: rows, summary, baselines, costs, sets; reused: how
        many pieces were there before, or are of other processes.

    Raises:
        SettingsError: For a plan that cannot be.
        StopRequestedError: Where `report` does.
        JobError: Where workers cannot be reached or keep what they make elsewhere.
    """
    check(plan)
    arrow()  # sets are written at the end of hours
    if workers > 1 or scheduler:
        _spread(plan, place.resolved(), workers, scheduler, report)
    run = SplitRun(plan, place)
    systems = run.systems()
    rows: list[dict[str, Any]] = []
    costs, sets = [], []
    for number, (network, defence, seed) in enumerate(systems):
        told = stage_of(report, number, len(systems))
        trained = run.train(network, defence, seed, stage_of(told, 0, 4))
        costs.append(run.cost(trained) if seed == plan.defence_seeds[0] else None)
        for row, folder in run.attack(trained, told):
            rows.append(row)
            sets += [str(folder)] if folder else []
    table = pd.DataFrame(rows, columns=[*COLUMNS, *plan.metrics])
    report(Progress(100 * len(systems), 100 * len(systems), "done"))
    return {
        "plan": plain(plan),
        "rows": _records(table),
        "summary": _records(summary(table)),
        "baselines": run.baselines(),
        "costs": [cost for cost in costs if cost],
        "sets": sets,
        "reused": run.reused,
    }


def _spread(
    plan: SplitPlan, place: SplitPlace, workers: int, scheduler: str, report: Report
) -> None:
    """Train the systems side by side, then attack them side by side."""
    from semsim.grid.machines import connect, cores_for_each  # takes a second

    lean = without_metrics(plan)
    run = SplitRun(lean, place)  # trains the recogniser, once
    systems = run.systems()
    total = 100 * len(systems)
    needed = dict.fromkeys([(n, "none", seed) for n, _, seed in systems] + systems)
    threads = cores_for_each(workers, scheduler)
    with connect(scheduler, workers, needs=__name__) as client:

        def do(pieces: Sequence[Piece], start: float, share: float, note: str) -> None:
            def tell(standing: Standing) -> None:
                reached = round(total * (start + share * standing.done / max(1, len(pieces))))
                report(Progress(reached, total, f"{note}: {standing.over} of {len(pieces)}"))

            compute(pieces, lambda *_: None, tell, client, threads=threads)

        do([_piece(_train, lean, place, one) for one in needed], 0.0, _TRAINING, "systems trained")
        check_shared(run.store.systems, [run.key(*one) for one in needed])
        attacks = [
            _piece(_attack, lean, place, (system, tool, seed))
            for system in systems
            for _, tool, seed in run.tools(run.train(*system, silent))
        ]
        do(attacks, _TRAINING, _ATTACKS, "attacks made")


def _piece(
    work: Callable[..., None], plan: SplitPlan, place: SplitPlace, what: tuple[Any, ...]
) -> Piece:
    return Piece(key=key_of({"piece": plain(what)}), work=work, asked=(plan, place, what))


def _train(plan: SplitPlan, place: SplitPlace, system: _System, *, report: Report) -> None:
    _run(plan, place).system(*system, report)


def _attack(
    plan: SplitPlan, place: SplitPlace, what: tuple[_System, ShadowAttack, int], *, report: Report
) -> None:
    (system, tool, seed), run = what, _run(plan, place)
    run.leak(run.train(*system, silent), tool, seed, report)


class SplitRun:
    """The plan with its images at hand."""

    def __init__(self, plan: SplitPlan, place: SplitPlace) -> None:
        dataset = built(DATASETS, plan.dataset)
        self.plan, self.place = plan, place
        self.data: tuple[LabelledImages, LabelledImages] = (dataset("train"), dataset("test"))
        self.store = SplitStore(place.data)
        self._made: set[str] = set()
        self._found: set[str] = set()
        self.device = pick_device(place.device)
        self.digests = [images_digest(part) for part in self.data]
        self.judged = self.data[1].pick(evenly_spread(self.data[1], plan.images))
        self.originals = [to_uint8(image) for image in self.judged.images]
        self.classifier = self._recogniser()
        resources = Resources(checkpoints=place.checkpoints, device=self.device)
        self.judges = {name: find_metric(name).prepare(resources) for name in plan.metrics}

    @property
    def reused(self) -> int:
        """Number of pieces that were there before it needed them."""
        return len(self._found)

    def systems(self) -> list[_System]:
        """Network, defence and seed of every system, in the order of the results."""
        return [
            (network, defence, seed)
            for network in self.plan.networks
            for seed in self.plan.defence_seeds
            for defence in self.plan.defences
        ]

    def train(self, network: str, defence: str, seed: int, report: Report) -> TrainedSystem:
        """The system, trained now or before."""
        system, facts, key = self.system(network, defence, seed, report)
        plain_accuracy = facts["accuracy"]
        if defence != "none":
            plain_accuracy = self.system(network, "none", seed, report)[1]["accuracy"]
        return TrainedSystem(
            system=system.to(self.device),
            network=network,
            defence=defence,
            seed=seed,
            accuracy=facts["accuracy"],
            change=facts["accuracy"] - plain_accuracy,
            key=key,
        )

    def attack(
        self, trained: TrainedSystem, told: Report
    ) -> Iterator[tuple[dict[str, Any], Path | None]]:
        """A row of results and, for the first seed, a reconstruction set, an attack."""
        facts = {
            "network": trained.network,
            "defence": trained.defence,
            "defence_seed": trained.seed,
            "accuracy": trained.accuracy,
            "change": trained.change,
            "valid": trained.valid,
        }
        if not self.attacked(trained):
            yield facts, None
            return
        tools = self.tools(trained)
        for number, (arm, tool, seed) in enumerate(tools):
            # Training the system counts as a quarter of the work on it.
            before = len(tools) // 3 + 1
            part = stage_of(told, before + number, before + len(tools))
            leak, seconds = self.leak(trained, tool, seed, part)
            folder = None
            if seed == self.plan.attack_seeds[0]:
                folder = self._write(trained, arm, tool, seed, leak, seconds)
            yield {**facts, **self._scores(arm, tool, seed, leak)}, folder

    def attacked(self, trained: TrainedSystem) -> bool:
        """Return whether the plan has the system attacked: it is valid, or that does not matter."""
        return trained.valid or self.plan.attack_invalid

    def tools(self, trained: TrainedSystem) -> list[tuple[str, ShadowAttack, int]]:
        """Every attack on a system: its name in the plan, its settings, its seed."""
        if not self.attacked(trained):
            return []
        return [
            (arm, tool, seed)
            for arm in self.plan.attacks
            for tool in attacks_on(trained.system, arm, self.plan.shadow)
            for seed in self.plan.attack_seeds
        ]

    def cost(self, trained: TrainedSystem) -> dict[str, Any]:
        """Operations, bytes and median milliseconds of classifying one image."""
        image = self.data[1].images[:1]
        cost = cost_of(trained.system, image)
        head, server = _milliseconds(trained.system, image.to(self.device))
        names = {"network": trained.network, "defence": trained.defence}
        return {**names, **asdict(cost), "client_ms": head, "server_ms": server}

    def baselines(self) -> dict[str, float]:
        """Mean scores of what an attacker has without any feature, and the `chance` of a guess."""
        scores = baselines(self.data, self.plan.images)
        means: dict[str, float] = {name: float(np.mean(values)) for name, values in scores.items()}
        originals = Pairs(
            originals=self.judged.images,
            reconstructions=self.judged.images,
            class_names=self._names(),
        )
        means["chance"] = chance_of(self.data[1].labels.tolist(), len(self.data[1].classes))
        grey = replace(originals, reconstructions=torch.full_like(originals.originals, 0.5))
        for name, pairs in (("recogniser", originals), ("recogniser_grey", grey)):
            means[name] = float(recognised(self.classifier, pairs).mean())
        return means

    def key(self, network: str, defence: str, seed: int) -> str:
        """Of a trained system."""
        parts = [make_network(network), built(SPLIT_DEFENCES, defence), self.plan.train]
        return key_of({"data": self.digests[0], "parts": plain(parts), "seed": seed})

    def system(
        self, network: str, defence: str, seed: int, report: Report
    ) -> tuple[SplitSystem, dict[str, Any], str]:
        """The system on the CPU, trained now or before, what is told about it, and its key."""
        net, shield = make_network(network), built(SPLIT_DEFENCES, defence)
        key = self.key(network, defence, seed)
        bench = Bench(
            network=net,
            data=self.data[0],
            settings=self.plan.train,
            seed=seed,
            device=self.device,
            folder=self.store.stages(key),
        )
        if self._lacks(key, key in self.store.systems):
            began = time.monotonic()
            system = shield(bench, report)
            facts = {**self._tested(system, seed), "seconds": time.monotonic() - began}
            self.store.write_system(key, system, facts)
        system, facts = self.store.read_system(key, net, bench.task)
        if facts["test"] != self.digests[1]:  # of the key are the images it learned alone
            facts |= self._tested(system.to(self.device), seed)
            self.store.write_system(key, system, facts)
        return system.cpu(), facts, key

    def _tested(self, system: SplitSystem, seed: int) -> dict[str, Any]:
        """The system's accuracy on the client's images, and a hash of these."""
        return {"accuracy": system_accuracy(system, self.data[1], seed), "test": self.digests[1]}

    def leak(
        self, trained: TrainedSystem, tool: ShadowAttack, seed: int, report: Report
    ) -> tuple[FeatureLeak, float]:
        """Return the leak of an attack, made now or before, and the seconds it took."""
        facts = {"system": trained.key, "data": self.digests, "tool": plain(tool)}
        key = key_of({**facts, "images": self.plan.images, "seed": seed})
        if self._lacks(key, key in self.store.leaks):
            began = time.monotonic()
            rng = torch.Generator().manual_seed(seed)  # also of noise that is drawn anew
            network, (public, private) = make_network(trained.network), self.data
            seen = observe(trained.system, private.images, network, public, rng)
            leak = leak_of(tool(seen, rng=rng, report=report), private, self.plan.images)
            self.store.leaks.write(key, (leak, time.monotonic() - began))
        return self.store.leaks.read(key)

    def _lacks(self, key: str, there: bool) -> bool:
        """Return whether a piece is to be made now; what this run has made itself is not reused."""
        if not there:
            self._made.add(key)
        elif key not in self._made:
            self._found.add(key)
        return not there

    def _scores(self, arm: str, tool: ShadowAttack, seed: int, leak: FeatureLeak) -> dict[str, Any]:
        pairs = Pairs(
            originals=self.judged.images,
            reconstructions=leak.images,
            class_names=self._names(),
        )
        more = {name: float(judge(pairs).values.mean()) for name, judge in self.judges.items()}
        count = Count.of(judged([*map(to_uint8, leak.images)], self.originals))
        return {
            "attack": arm,
            "body": tool.bodies[0] if tool.bodies and arm.startswith("one-body") else -1,
            "attack_seed": seed,
            "ssim": float(leak.ssim.mean()),
            "psnr": float(leak.psnr.mean()),
            "recognised": float(recognised(self.classifier, pairs).mean()),
            "shadow_accuracy": leak.shadow_accuracy,
            "worse_than_grey": float(np.mean(leak.worse_than_grey)),
            "clearer": count.clearer,
            "by_shapes": count.by_shapes,
            "judged": count.over,
            **more,
        }

    def _write(
        self,
        trained: TrainedSystem,
        arm: str,
        tool: ShadowAttack,
        seed: int,
        leak: FeatureLeak,
        seconds: float,
    ) -> Path:
        attack, test = attack_name(arm, tool), self.data[1]
        record = {
            "name": f"{self.plan.name}/{trained.model}/{attack}",
            "model": trained.model,
            "target": {
                "architecture": plain(make_network(trained.network)),
                "strategy": plain(built(SPLIT_DEFENCES, trained.defence)),
                "train": plain(self.plan.train),
                **facts_of_test(trained.accuracy, test.labels.tolist(), len(test.classes)),
                "valid": trained.valid,
                "seed": trained.seed,
            },
            "attack": {"name": attack, "settings": plain(tool)},
            "threat": ThreatModel(auxiliary_data=True, system="split").record(),
            "seed": seed,
            "seconds": round(seconds, 2),
        }
        folder = set_folder(self.place.data, self.plan, trained.model, attack)
        return write_split_set(folder, record, self.judged, leak)

    def _recogniser(self) -> Classifier:
        """An independent classifier of the data set, trained now or before."""
        key = key_of({"recogniser": self.digests[0]})
        path = self.store.recogniser(key)
        if self._lacks(key, path.exists()):
            model = train_target(RECOGNISER, self.data[0], NoDefence(), RECOGNISER_TRAIN)
            save_target(
                model,
                path,
                name="cnn-small",
                facts={"test_accuracy": accuracy(model, self.data[1])},
            )
        return load_classifier(path, self.device)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.judged.classes[label] for label in self.judged.labels.tolist())


_run = cache(SplitRun)  # the images, read once a process


@torch.no_grad()
def _milliseconds(system: SplitSystem, image: torch.Tensor) -> tuple[float, float]:
    """Median time of the client's and of the server's part, one image at a time."""
    client, server = [], []
    for _ in range(_TIMED):
        start = now_on(image.device)
        features = system.send(image)
        middle = now_on(image.device)
        answers = [body(features) for body in system.bodies]
        end = now_on(image.device)
        system.tail(torch.cat(answers, dim=1))
        client.append(middle - start + now_on(image.device) - end)
        server.append(end - middle)
    return 1000 * float(np.median(client)), 1000 * float(np.median(server))


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; what is missing is None."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [
        {str(k): v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
        for row in rows
    ]


def effort(plan: SplitPlan) -> Effort:
    """Return what carrying out `plan` makes; raises what is wrong with it."""
    check(plan)
    made = built(DATASETS, plan.dataset)
    task, test = task_of(made("train")), made("test")
    systems = [
        untrained(make_network(network), defence, task)
        for network, defence in product(plan.networks, plan.defences)
    ]
    seeds, pictures = len(plan.defence_seeds), min(plan.images, len(test))
    attacks = sum(len(attacks_on(one, arm, plan.shadow)) for one in systems for arm in plan.attacks)
    judged = seeds * attacks * len(plan.attack_seeds)
    return Effort(
        made=counted(seeds * len(systems), "system"),
        more=" to train",
        attacked=f"{counted(judged, 'attack')}, each judged on {counted(pictures, 'picture')}",
        disk=seeds * sum(4 * count_parameters(one) for one in systems)
        + judged * pictures * picture_bytes(test.images[0].numel()),
    )


def planned_sets(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """Return the model, the attack and the folder of every set of a plan, in their order."""
    any_task = ImageTask(size=(32, 32), classes=2, mean=(0.5,) * 3, std=(0.25,) * 3)
    found = []
    for network, seed, defence in product(plan.networks, plan.defence_seeds, plan.defences):
        made = untrained(make_network(network), defence, any_task)
        model = model_name(network, defence, seed)
        for arm in plan.attacks:
            for tool in attacks_on(made, arm, plan.shadow):
                attack = attack_name(arm, tool)
                found.append((model, attack, set_folder(data, plan, model, attack)))
    return tuple(found)


def untrained(network: SplitNetwork, defence: str, task: AnyTask) -> SplitSystem:
    """Return a system that has the parts of one with `defence`, written as text."""
    shield = built(SPLIT_DEFENCES, defence)
    bodies = getattr(shield, "bodies", 1)
    made = empty_system(network, task, bodies=bodies)
    made.selector = draw_selector(bodies, getattr(shield, "selected", bodies), 0)
    return made


def do_split(order: SplitJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order; what is finished lies in the data folder, not in `folder`."""
    del folder
    return run_split(order.plan, order.place, report, order.workers, order.scheduler)
