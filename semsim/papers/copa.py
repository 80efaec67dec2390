"""`semsim-studio reproduce copa`: Tables 1 and 2 and Figures 1 and 2 of the COPA paper.

Chen and Campbell 2021, arXiv:2111.10178. Computed numbers stand beside the printed ones.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd
import torch
import typer
from torch import Tensor, nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.linear.copa import Copa
from semsim.attacks.linear.copa_prior import CopaPrior
from semsim.attacks.linear.outcome import Inversion, denoised, gradient_distance
from semsim.attacks.linear.rank import has_full_rank
from semsim.attacks.linear.rgap import RGap
from semsim.base.cli import terminal
from semsim.base.cli.terminal import say
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import build
from semsim.base.storage.pieces import Pieces, key_of
from semsim.base.words import with_spread
from semsim.datasets import DATASETS
from semsim.datasets.folder import Folder
from semsim.grid.executor import Piece, spread
from semsim.papers.engine import (
    PRINTED,
    Columns,
    PlanOption,
    Row,
    Work,
    caption,
    column,
    show_plan,
    text_of,
)
from semsim.reporting.export import write_both
from semsim.reporting.picture_grids import GridPicture, method_figure
from semsim.systems.audit.advice import signed
from semsim.systems.audit.security_index import CIFAR, CNN3, security_index
from semsim.targets import cnn3
from semsim.targets.checkpoint import images_digest
from semsim.targets.lenet import start_uniform
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation, LabelledImages

TV_WEIGHT = 0.15  # of the paper's denoising
CLASSES = 10
SCALE = 20 * math.log10(255)  # the paper's PSNR is so much above that of images in [0, 1]
METHODS = ("rgap", "copa", "copa denoised", "copa-prior", "grey")
FIGURES = {"tanh": 1, "leaky-relu": 2}  # activation → the paper's figure
_SIZE = 32
FORMAT = "semsim-copa/1"  # part of every key: raise it where the same images get other rows
_SETTING = ["activation", "variant", "method"]
_ODD = {"failed": "failed", "blew_up": "blew up", "as_rgap": "as rgap"}
_FITS = {"equation_residual": "equation_residual", "gradient_distance": "residual"}
Cell = tuple[float, float]  # MSE of images in [0, 1], and PSNR in dB, 48.13 dB above the usual one
TABLE_1: dict[int, int] = dict(enumerate(PRINTED["copa"]["table_1"], 1))  # variant → c(M), rounded
# Activation, variant and method → the truck's cell and the animal's.
TABLE_2: dict[tuple[str, int, str], tuple[Cell, Cell]] = {
    (kind, variant, method): ((mse, psnr), (other_mse, other_psnr))
    for kind, variant, method, mse, psnr, other_mse, other_psnr in PRINTED["copa"]["table_2"]
}


class Networks(NamedTuple):
    """The images that Table 2 attacks, and on which networks: each of every kind, by seed."""

    images: LabelledImages
    variants: Sequence[int]
    activations: Sequence[str]
    seeds: Sequence[int]

    @property
    def pieces(self) -> dict[str, tuple[str, int, int]]:
        """Activation, variant and seed of every network, in order, by the keys of their pieces."""
        mark = key_of([FORMAT, images_digest(self.images)], 12)
        grid = product(self.activations, self.variants, self.seeds)
        return {"{}-{}-{}-{}".format(mark, *one): one for one in grid}


def reproduce_copa(
    images: Annotated[
        Path | None,
        typer.Option(
            "--image-dir", help="Folder <class>/<image>, as CIFAR-10's; else built-in pictures."
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Images, as many of every class.")] = 16,
    seeds: Annotated[int, typer.Option(help="Networks of each kind.")] = 3,
    variants: Annotated[str, typer.Option(help="Of CNN3, with commas between.")] = "1,2,3,4",
    activations: Annotated[
        str, typer.Option(help="tanh (Figure 1), leaky-relu (Figure 2) or both.")
    ] = "tanh,leaky-relu",
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    scheduler: terminal.SchedulerOption = "",
    plan: PlanOption = False,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = (
        terminal.DATA / "reproduce/copa"
    ),
    as_json: terminal.Json = False,
) -> None:
    """Print Tables 1 and 2 of the COPA paper beside our numbers; write both and the figures.

    What was computed before, with the same images, is read from the folder and not computed again.
    """
    with terminal.told_errors():
        known = "--variants is some of 1,2,3,4", "--activations is tanh, leaky-relu or both"
        numbers = [int(one) for one in chosen(variants, map(str, cnn3.VARIANTS), known[0])]
        kinds = chosen(activations, FIGURES, known[1])
        if seeds < 1:
            raise SettingsError(f"--seeds is 1 or more; got {seeds}.")
        attacked = varied(pictures_of(images), count)
        networks = Networks(attacked, numbers, kinds, range(seeds))
        if plan:
            show_plan("copa", works_of(networks, out / "pieces"), as_json)
            return
        out.mkdir(parents=True, exist_ok=True)
        first = table_1()
        first.to_csv(out / "table1.csv", index=False)
        told = caption("copa", "table_1", table=text_1(first))
        (say if as_json else typer.echo)(f"{told}\n")
        with terminal.TerminalBar(unit="image") as bar:
            rows = kept_rows(networks, out / "pieces", bar, workers, scheduler)
        rows.to_parquet(out / "rows.parquet", index=False)
        second = table_2(rows)
        second.to_csv(out / "table2.csv", index=False)
        where = "built-in pictures" if images is None else attacked.dataset
        asked = {"count": count, "seeds": seeds, "where": where, "table": text_2(second)}
        both = {"table_1": terminal.rows_of(first), "table_2": terminal.rows_of(second)}
        terminal.show_told(both, caption("copa", "table_2", **asked), as_json)
        for kind in kinds:
            say(f"Wrote {write_figure(attacked, numbers, kind, out)}")
    say(f"Wrote {out / 'table1.csv'}, {out / 'table2.csv'}, {out / 'rows.parquet'}")


def works_of(networks: Networks, folder: Path) -> list[Work]:
    """Return what Table 2 attacks, a row a kind of network; `folder`: of the pieces."""
    found, kept, count = [], _pieces(folder), len(networks.images)
    for kind, variant in product(networks.activations, networks.variants):
        own = networks._replace(variants=[variant], activations=[kind]).pieces
        cells, left = (count * len(some) for some in (own, kept.missing(own)))
        what = f"attack variant {variant}, {kind}"
        found.append(Work("Table 2", what, cells, cells - left, cells))
    return found


def pictures_of(folder: Path | None) -> LabelledImages:
    """The test images of a folder at 32×32, or the built-in symbols'."""
    if folder is None:
        return build(DATASETS, "symbols", {"test_per_class": 2})("test")
    return Folder(root=str(folder), size=_SIZE, test_share=1.0)("test")


def chosen(text: str, known: Iterable[str], said: str) -> list[str]:
    """The names in `text`, with commas between; `SettingsError` for one that is not `known`.

    Args:
        said: The option, and what it takes.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not set(names) <= set(known):
        raise SettingsError(f"{said}; got {text!r}.")
    return list(dict.fromkeys(names))


def kept_rows(
    networks: Networks, folder: Path, report: Report = silent, workers: int = 1, scheduler: str = ""
) -> pd.DataFrame:
    """`linear_rows`, network by network; a finished network is read from `folder`.

    Args:
        workers, scheduler: Who takes networks, as for `spread`; with one worker all is done here.
    """
    kept, grid = _pieces(folder), networks.pieces
    missing = kept.missing(grid)
    pieces = [
        Piece(key=key, work=linear_rows, asked=(networks.images, *grid[key])) for key in missing
    ]
    done = len(grid) - len(missing)
    spread(pieces, lambda p, rows: kept.write(p.key, rows), report, workers, scheduler, ready=done)
    return pd.concat([kept.read(key) for key in grid], ignore_index=True)


def _pieces(folder: Path) -> Pieces[pd.DataFrame]:
    return Pieces(
        folder,
        ".parquet",
        read=pd.read_parquet,
        write=lambda path, rows: terminal.write_table(rows, path),
    )


Back = Inversion | AttackFailedError  # what a method finds, or why it finds nothing


class Try(NamedTuple):
    """One attacked image: the observation, and the truth that the attack never sees."""

    seen: GradientObservation
    image: Tensor


def cnn3_model(variant: int, activation: str, seed: int) -> TargetModel:
    """CNN3 as the paper attacks it: never trained, weights uniform in ±0.5, in float64.

    Args:
        activation: "tanh", or "leaky-relu", which comes with a sigmoid behind the last layer
            (Appendix C). It sees images less 0.5.
    """
    architecture = cnn3.CNN3(variant=variant, activation=activation)  # type: ignore[arg-type]
    names = [str(number) for number in range(CLASSES)]
    with torch.random.fork_rng():
        model = TargetModel(architecture, names, mean=[0.5] * 3, std=[1.0] * 3, size=(32, 32))
    start_uniform(model, torch.Generator().manual_seed(seed))
    if activation == "leaky-relu":
        model.head = nn.Sequential(model.head, nn.Sigmoid())  # type: ignore[assignment]
    return model.double().eval()


def attempt(model: TargetModel, image: Tensor, label: int) -> Try:
    """Return one image, (3, 32, 32) in [0, 1], and what leaks of it, in float64."""
    exact = image.double()
    gradients = parameter_gradients(model, exact[None], torch.tensor([label % CLASSES]))
    shape = (image.shape[0], image.shape[1], image.shape[2])
    seen = GradientObservation(model=model, gradients=gradients, shape=shape, label=label % CLASSES)
    return Try(seen=seen, image=exact)


def linear_rows(
    images: LabelledImages, activation: str, variant: int, seed: int, *, report: Report = silent
) -> pd.DataFrame:
    """One row a method and image, of CNN3's `variant` with weights of `seed`.

    Args:
        images: 32×32. Columns: activation, variant, seed, image_id, class_name, method (one of
            `METHODS`), mse (of the image in [0, 1], not clamped, as the paper takes it), psnr (dB),
            psnr_paper (dB on the paper's scale), equation_residual (of the worst layer, as it was
            solved; NaN of grey, which solves nothing), residual (distance of the gradient, after
            clamping; grey's is the baseline), blew_up, solver (of `Inversion`), error ("" or why
            there is no image).
    """
    model = cnn3_model(variant, activation, seed)
    where = {"activation": activation, "variant": variant, "seed": seed}
    rows: list[dict[str, object]] = []
    for place, label in enumerate(images.labels.tolist()):
        what = {"image_id": images.ids[place], "class_name": images.classes[label]}
        one = attempt(model, images.images[place], label)
        for method, found in inversions(one.seen):
            rows.append({**where, **what, "method": method, **_judged(one, found)})
        report(Progress(place + 1, len(images)))
    return pd.DataFrame(rows)


def inversions(seen: GradientObservation) -> Iterator[tuple[str, Back]]:
    """The name of each method and what it finds, in the order of `METHODS`."""
    for name, attack in (("rgap", RGap()), ("copa", Copa()), ("copa-prior", CopaPrior())):
        found: Back
        try:
            found = attack.inversion(seen)
        except AttackFailedError as failure:
            found = failure
        yield name, found
        if name == "copa":
            if isinstance(found, Inversion):
                found = replace(found, image=denoised(found.image, TV_WEIGHT))
            yield "copa denoised", found
    grey = torch.full(seen.shape, 0.5, dtype=torch.float64)
    yield "grey", Inversion(image=grey, residuals=(), solver="grey")


def _judged(one: Try, found: Back) -> dict[str, object]:
    if isinstance(found, AttackFailedError):
        names = ("mse", "psnr", "psnr_paper", "equation_residual", "residual")
        lost = dict.fromkeys(names, math.nan)
        return {**lost, "blew_up": False, "solver": "", "error": str(found)}
    mse = float((found.image - one.image).square().mean())
    psnr = -10 * math.log10(mse) if mse else math.inf
    return {
        "mse": mse,
        "psnr": psnr,
        "psnr_paper": psnr + SCALE,
        "equation_residual": math.nan if found.solver == "grey" else found.residual,
        "residual": gradient_distance(one.seen, found.image.clamp(0, 1)),
        "blew_up": found.blew_up,
        "solver": found.solver,
        "error": "",
    }


def table_1() -> pd.DataFrame:
    """Variants of CNN3 with c(M), the rank and size of U of both layers, and the printed c(M).

    Columns: variant, features, rank_1, n_1, rank_2, n_2, value, paper, and the conditions for the
    pull-back onto layer 2: pull_back (ours: layer 1 puts out more values than it gets) and
    full_rank (the paper's: its weight has full column rank too, as drawn with seed 0).
    """
    rows = []
    for variant, layers in CNN3.items():
        index = security_index(layers, CIFAR)
        facts = {"variant": variant, "features": index.features}
        for layer in index.layers:
            facts |= {f"rank_{layer.place}": layer.rank, f"n_{layer.place}": layer.unknowns}
        first = index.layers[0]
        weight = next(cnn3_model(variant, "tanh", seed=0).parameters())
        full = has_full_rank(first.convolution, first.inputs, first.outputs, weight)
        known = {"value": index.value, "paper": TABLE_1[variant]}
        rows.append({**facts, **known, "pull_back": first.pulls_back, "full_rank": full})
    return pd.DataFrame(rows)


def table_2(rows: pd.DataFrame) -> pd.DataFrame:
    """One line an activation, variant and method, over all images and seeds of `rows`.

    Args:
        rows: Of `linear_rows`. Columns: activation, variant, method, n (with an image), failed,
            blew_up, as_rgap (where COPA took R-GAP's image), mean and sd (of a sample; NaN of one)
            of mse, psnr and psnr_paper, and the medians equation_residual and gradient_distance.
    """
    lines = []
    for keys, part in rows.groupby(_SETTING, sort=False):
        ok = part[part["error"] == ""]
        line: dict[str, object] = dict(zip(_SETTING, keys, strict=True))
        line |= {"n": len(ok), "failed": len(part) - len(ok), "blew_up": int(ok["blew_up"].sum())}
        line["as_rgap"] = int((ok["solver"] == "rgap").sum())
        for name in ("mse", "psnr", "psnr_paper"):
            exact = bool((ok[name] == math.inf).any())
            line[name] = ok[name].mean()
            line[f"{name}_sd"] = math.nan if exact else ok[name].std(ddof=1)
        for name, source in _FITS.items():
            line[name] = ok[source].median()
        lines.append(line)
    order = {method: place for place, method in enumerate(METHODS)}
    table = pd.DataFrame(lines)
    return table.sort_values(
        ["activation", "variant", "method"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ascending=[False, True, True],
        ignore_index=True,
    )


_TABLE_1: Columns = {
    "variant": column("variant"),
    "features": column("features"),
    "rank U, n (1)": lambda row: f"{row['rank_1']:,} of {row['n_1']:,}",
    "rank U, n (2)": lambda row: f"{row['rank_2']:,} of {row['n_2']:,}",
    "c(M)": lambda row: signed(row["value"]),
    "paper": lambda row: signed(row["paper"]),
    "layer 1 widens": lambda row: "yes" if row["pull_back"] else "no",
    "its W has full rank": lambda row: "yes" if row["full_rank"] else "no",
}
_TABLE_2: Columns = {
    "activation": column("activation"),
    "variant": column("variant"),
    "method": column("method"),
    "MSE": lambda row: _spread(row, "mse", ".2g" if row["mse"] < 1e-3 else ".4f"),
    "PSNR dB": lambda row: _spread(row, "psnr", ".1f"),
    "on the paper's scale": lambda row: _spread(row, "psnr_paper", ".1f"),
    "equations": lambda row: with_spread(row["equation_residual"], None, ".0e", "-"),
    "gradient": lambda row: with_spread(row["gradient_distance"], None, ".0e", "-"),
    "n": lambda row: ", ".join(
        [str(row["n"]), *(f"{row[name]} {words}" for name, words in _ODD.items() if row[name])]
    ),
    "paper: truck": lambda row: _printed(row, 0),
    "paper: animal": lambda row: _printed(row, 1),
}


def _spread(row: Row, name: str, form: str) -> str:
    return with_spread(row[name], row[f"{name}_sd"], form, "-")


def _printed(row: Row, place: int) -> str:
    pair = TABLE_2.get((row["activation"], row["variant"], row["method"]))
    return "" if pair is None else "{:.4f}, {:.1f}".format(*pair[place])


def text_1(table: pd.DataFrame) -> str:
    """`table_1` for a terminal."""
    return text_of(_TABLE_1, terminal.rows_of(table))


def text_2(table: pd.DataFrame) -> str:
    """`table_2` for a terminal, with the paper's cells."""
    return text_of(_TABLE_2, terminal.rows_of(table))


def varied(images: LabelledImages, count: int) -> LabelledImages:
    """The first image of every class, then the second, …, `count` in all.

    Raises `SettingsError` where there are not so many.
    """
    if not 1 <= count <= len(images):
        raise SettingsError(f"--count is 1 to {len(images)}, the images there are; got {count}.")
    labels = images.labels.tolist()
    ranks = pd.Series(labels).groupby(labels).cumcount()
    order = sorted(range(len(labels)), key=lambda place: (ranks[place], labels[place], place))
    return images.pick(order[:count])


def shown_pair(images: LabelledImages) -> LabelledImages:
    """Two images for the figures: a truck and a deer as in the paper where there are, else any."""
    names = [images.classes[label] for label in images.labels.tolist()]
    wanted = [names.index(name) for name in ("truck", "deer") if name in names]
    others = [place for place in range(len(images)) if place not in wanted]
    return images.pick([*wanted, *others][:2])


def write_figure(images: LabelledImages, variants: Sequence[int], kind: str, out: Path) -> Path:
    """Write the paper's figure of an activation as PNG and SVG; returns the PNG's path."""
    shown = [one for variant in variants for one in _attacked(shown_pair(images), variant, kind)]
    drawing = method_figure(shown, FIGURES[kind], kind)
    return write_both(drawing, out / f"figure{FIGURES[kind]}.png")


def _attacked(images: LabelledImages, variant: int, kind: str) -> list[GridPicture]:
    model, found = cnn3_model(variant, kind, seed=0), []
    for image, label in zip(images.images, images.labels.tolist(), strict=True):
        one = attempt(model, image, label)
        found.append(GridPicture(variant=variant, method="original", image=image, mse=0.0))
        for method, result in inversions(one.seen):
            if method != "grey":
                back = getattr(result, "image", None)
                found.append(_shown(variant, method, image, back))
    return found


def _shown(variant: int, method: str, image: Tensor, back: Tensor | None) -> GridPicture:
    if back is None:
        return GridPicture(variant=variant, method=method, image=None, mse=math.nan)
    mse = float((back - image.double()).square().mean())
    return GridPicture(variant=variant, method=method, image=back.clamp(0, 1).float(), mse=mse)
