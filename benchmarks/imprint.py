"""Count pictures that an imprint layer gives away, beside the expected count, and its signs.

python -m benchmarks.imprint [--images FOLDER] [--runs 50] [--pictures 64] [--bins 256]
    [--train 1000] [--draws 2000] [--results imprint]

Every second picture of FOLDER, one folder of images a class, is the server's: from these come the
thresholds and the training. Each run draws a batch of the others, and weights where the network was
not trained. The control is the same network without the layer. Without FOLDER the built-in symbols
are attacked.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, stdev

import torch
from torch import Tensor

from benchmarks.attacks import psnr, rng
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin, judge
from benchmarks.spear import fresh, learned, pictures_in
from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.imprint import Imprint as Attack
from semsim.attacks.linear.imprint import expected
from semsim.attacks.observe import BatchGradient, assigned, observe_round
from semsim.base.errors import SettingsError
from semsim.defences.none import NoDefence
from semsim.metrics.pixel import exact
from semsim.targets.imprint import Imprint, Imprinted
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel
from semsim.targets.noticed import HELD, signs
from semsim.types import LabelledImages, Reconstruction

OFF = 0.02  # target: deviation of the mean count from the expected one
Made = Callable[[int], TargetModel]


@dataclass(frozen=True)
class Try:
    """One batch: pictures returned, those of them that are exact; dB of the best grey picture."""

    returned: int
    exact: int
    grey: float


def drawn(pictures: LabelledImages, count: int, seed: int) -> LabelledImages:
    """Return pictures that `seed` draws."""
    return pictures.pick(torch.randperm(len(pictures), generator=rng(seed))[:count].tolist())


def shades(pictures: LabelledImages, mean: Tensor, std: Tensor) -> Tensor:
    """Return the brightness of pictures, (N,), as networks normalise them; mean, std: (C,)."""
    return ((pictures.images.mean((2, 3)) - mean) / std).mean(1)


def attempt(model: TargetModel, batch: LabelledImages, seed: int) -> Try:
    """Attack a batch; a network that the attack refuses gives nothing away."""
    grey = max(psnr(torch.full_like(one, 0.5), one) for one in batch.images)
    rngs = [rng(seed * 1000 + place) for place in range(len(batch))]
    sharing = BatchGradient(batch=len(batch))
    leak = observe_round(model, batch.images, batch.labels, sharing, NoDefence(), rngs)
    try:
        found = attack_updates(Attack(), [leak.observation], rngs=rngs)
    except SettingsError:
        return Try(0, 0, grey)
    made = [one.image for one in found if isinstance(one, Reconstruction)]
    if not made:
        return Try(0, 0, grey)
    places = assigned(torch.stack(made), batch.images)
    back = [n for n, place in enumerate(places) if place >= 0]
    whole = exact(batch.images[back], torch.stack([made[places[n]] for n in back]))
    return Try(len(made), int(whole.sum()), grey)


def main() -> None:
    """Print and keep both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--images", default="", help="a folder of images a class")
    parser.add_argument("--runs", type=int, default=50, help="0 leaves attacks and signs out")
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--bins", type=int, default=256)
    parser.add_argument("--train", type=int, default=1000, help="pictures of a training")
    parser.add_argument("--draws", type=int, default=2000, help="batches that are only counted")
    add_option(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begin()
    data = pictures_in(asked.images)
    server, clients = data.pick(range(0, len(data), 2)), data.pick(range(1, len(data), 2))
    trap, plain = Imprinted(bins=asked.bins), CNN4()

    with Finds(asked.results) as finds:
        alone(finds, server, clients, asked)
    if not asked.runs:
        return

    def placed(model: TargetModel) -> TargetModel:
        trap.calibrate(model.body, shades(server, model.mean.flatten(), model.std.flatten()))
        return model

    some = drawn(server, asked.train, 0)
    trained, control = placed(learned(some, 0, trap)), learned(some, 0, plain)
    networks: dict[str, Made] = {
        "untrained, server's pictures": lambda seed: placed(fresh(server, seed, trap)),
        "untrained, normal distribution": lambda seed: fresh(server, seed, trap),
        "trained, server's pictures": lambda seed: trained,
        "untrained, without the layer": lambda seed: fresh(server, seed, plain),
        "trained, without the layer": lambda seed: control,
    }
    with Finds(asked.results) as finds:
        count(finds, networks, clients, asked)
        notice(finds, networks, clients)


def alone(
    finds: Finds, server: LabelledImages, clients: LabelledImages, asked: argparse.Namespace
) -> None:
    """Keep how many pictures of a batch are alone by their brightness, with no attack."""
    layer = Imprint(3, (server.images.shape[2], server.images.shape[3]), asked.bins)
    by = server.images.mean((0, 2, 3)), server.images.std((0, 2, 3))
    layer.learn(shades(server, *by))
    bins = torch.bucketize(shades(clients, *by), layer.thresholds)
    counts = [
        int(
            (
                torch.bincount(
                    bins[torch.randperm(len(bins), generator=rng(seed))[: asked.pictures]]
                )
                == 1
            ).sum()
        )
        for seed in range(asked.draws)
    ]
    error = stdev(counts) / len(counts) ** 0.5
    finds.figure("draws", asked.draws)
    finds.figure("alone.mean", round(mean(counts), 2), n=f"{asked.draws} batches")
    finds.figure("alone.error", round(error, 2), n=f"{asked.draws} batches")
    runs = asked.runs or 50
    finds.figure("alone.first", round(mean(counts[:runs]), 2), n=f"{runs} batches")


def count(
    finds: Finds, networks: dict[str, Made], clients: LabelledImages, asked: argparse.Namespace
) -> None:
    """Keep the table of pictures that came back."""
    wanted = expected(asked.pictures, asked.bins)
    finds.figure("pictures", asked.pictures)
    finds.figure("bins", asked.bins)
    finds.figure("expected", round(wanted, 1), f"of {asked.pictures} pictures")
    columns = ("network", "runs", "exact, mean ± sd", "expected", "deviation", "target")
    row = finds.table("counts", *columns, "not exact", "grey")
    for name, network in networks.items():
        tries = [
            attempt(network(seed), drawn(clients, asked.pictures, seed), seed)
            for seed in range(asked.runs)
        ]
        exact = [one.exact for one in tries]
        layer = "without" not in name
        off = mean(exact) / wanted - 1
        row(
            name,
            asked.runs,
            f"{mean(exact):.1f} ± {stdev(exact):.1f}",
            f"{wanted:.1f}" if layer else "0",
            f"{off:+.1%}".replace("-", "−") if layer else "",
            judge(abs(off), most=OFF) if "untrained, server" in name else "",
            sum(one.returned - one.exact for one in tries),
            f"{max(one.grey for one in tries):.1f} dB",
        )
        key = name.replace(",", "").replace("'", "").replace(" ", "-")
        finds.figure(f"{key}.exact", round(mean(exact), 1), n=f"{asked.runs} batches")


def notice(finds: Finds, networks: dict[str, Made], clients: LabelledImages) -> None:
    """Keep the table of signs, each on pictures of a client."""
    held = drawn(clients, HELD, 0)
    found = {
        name: signs(network(0), held.images, held.labels) for name, network in networks.items()
    }
    first = next(iter(found.values()))
    row = finds.table("signs", "network", *(one.what for one in first), "warns")
    for name, own in found.items():
        warns = "yes" if any(one.warns for one in own) else "no"
        row(name, *(one.value for one in own), warns)


if __name__ == "__main__":
    main()
