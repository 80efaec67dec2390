"""`semsim-studio reproduce copa`: Tables 1 and 2 and Figures 1 and 2 of the COPA paper.

Chen and Campbell 2021, arXiv:2111.10178. Computed numbers stand beside the printed ones.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd
import torch
import typer

from semsim.attacks.linear.rank import has_full_rank
from semsim.base.cli.terminal import (
    DATA,
    Json,
    SchedulerOption,
    TerminalBar,
    rows_of,
    say,
    show_told,
    text_table,
    told_errors,
    write_table,
)
from semsim.base.errors import SettingsError
from semsim.base.progress import Report, silent
from semsim.base.registry import build
from semsim.base.storage.pieces import Pieces, key_of
from semsim.base.storage.places import toml_of
from semsim.base.words import with_spread
from semsim.datasets import DATASETS
from semsim.datasets.folder import Folder
from semsim.grid.executor import Piece, spread
from semsim.papers.copa_rows import METHODS, attempt, cnn3_model, inversions, linear_rows
from semsim.papers.engine import PlanOption, Work, WorkPlan
from semsim.reporting.export import write_both
from semsim.reporting.picture_grids import GridPicture, method_figure
from semsim.systems.audit.advice import signed
from semsim.systems.audit.security_index import CIFAR, CNN3, security_index
from semsim.targets.checkpoint import images_digest
from semsim.targets.cnn3 import VARIANTS
from semsim.types import LabelledImages

FIGURES = {"tanh": 1, "leaky-relu": 2}  # activation → the paper's figure
STEPS = (
    "A cell is a picture that COPA, R-GAP and grey are asked for, a step one picture. It writes "
    "Tables 1 and 2, their rows, a file a network, and a figure an activation."
)
_SOME_VARIANTS = "--variants is some of 1,2,3,4"
_SOME_ACTIVATIONS = "--activations is tanh, leaky-relu or both"
_SIZE = 32
FORMAT = "semsim-copa/1"  # part of every key: raise it where the same images get other rows
_SETTING = ["activation", "variant", "method"]
_ODD = {"failed": "failed", "blew_up": "blew up", "as_rgap": "as rgap"}
_FITS = {"equation_residual": "equation_residual", "gradient_distance": "residual"}
Cell = tuple[float, float]  # MSE of images in [0, 1], and PSNR in dB, 48.13 dB above the usual one

_PRINTED = toml_of("semsim.papers", "printed.toml")["copa"]
TABLE_1: dict[int, int] = dict(enumerate(_PRINTED["table_1"], 1))  # variant → c(M), rounded
# Activation, variant and method → the truck's cell and the animal's.
TABLE_2: dict[tuple[str, int, str], tuple[Cell, Cell]] = {
    (kind, variant, method): ((mse, psnr), (other_mse, other_psnr))
    for kind, variant, method, mse, psnr, other_mse, other_psnr in _PRINTED["table_2"]
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
        typer.Option(help="Folder <class>/<image>, as CIFAR-10's; built-in pictures without it."),
    ] = None,
    count: Annotated[int, typer.Option(help="Images, as many of every class.")] = 16,
    seeds: Annotated[int, typer.Option(help="Networks of each kind.")] = 3,
    variants: Annotated[str, typer.Option(help="Of CNN3, with commas between.")] = "1,2,3,4",
    activations: Annotated[
        str, typer.Option(help="tanh (Figure 1), leaky-relu (Figure 2) or both.")
    ] = "tanh,leaky-relu",
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    scheduler: SchedulerOption = "",
    plan: PlanOption = False,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = (
        DATA / "reproduce/copa"
    ),
    as_json: Json = False,
) -> None:
    """Print Tables 1 and 2 of the COPA paper beside our numbers; write both and the figures.

    What was computed before, with the same images, is read from the folder and not computed again.
    """
    with told_errors():
        numbers = [int(one) for one in chosen(variants, map(str, VARIANTS), _SOME_VARIANTS)]
        kinds = chosen(activations, FIGURES, _SOME_ACTIVATIONS)
        if seeds < 1:
            raise SettingsError(f"--seeds is 1 or more; got {seeds}.")
        attacked = varied(pictures_of(images), count)
        networks = Networks(attacked, numbers, kinds, range(seeds))
        if plan:
            works = works_of(networks, out / "pieces")
            WorkPlan(name="copa", note=STEPS, works=works).show(as_json)
            return
        out.mkdir(parents=True, exist_ok=True)
        first = table_1()
        first.to_csv(out / "table1.csv", index=False)
        one = rows_of(first, table=1)
        (say if as_json else typer.echo)(
            f"Table 1: c(M) in closed form\n{text_1(first)}\n\nThe pull-back onto layer 2: we ask "
            "that layer 1 puts out more values than it gets, the paper also that its weight W "
            "has full (column) rank, as these do or do not with seed 0.\n"
        )
        with TerminalBar(unit="image") as bar:
            rows = kept_rows(networks, out / "pieces", bar, workers, scheduler)
        rows.to_parquet(out / "rows.parquet", index=False)
        second = table_2(rows)
        second.to_csv(out / "table2.csv", index=False)
        where = "built-in pictures" if images is None else attacked.dataset
        two = rows_of(second, table=2)
        show_told(
            [*one, *two],
            f"Table 2: {count} images of {where}, {seeds} networks each; mean ± standard "
            f"deviation\n{text_2(second)}\n\nThe paper's PSNR is 20·log10(255) = 48.13 dB above "
            "that of images in [0, 1]. A method that does not beat grey has found nothing. "
            "Medians: the worst layer's equation residual, as solved, and the distance of the "
            "clamped image's gradient from the leaked one, to be compared with grey's. Where a "
            "layer hides nothing, COPA solves it as R-GAP does; so both are the same on variants 3 "
            "and 4, where the paper's differ. 'as rgap': COPA's own end explained the gradient "
            "worse than R-GAP's image, so that was taken.",
            as_json,
        )
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
        found.append(Work(part="Table 2", what=what, cells=cells, done=cells - left, steps=cells))
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
    ready = len(grid) - len(missing)

    def keep(piece: Piece, rows: pd.DataFrame) -> None:
        kept.write(piece.key, rows)

    spread(pieces, keep, report, workers, scheduler, ready=ready)
    return pd.concat([kept.read(key) for key in grid], ignore_index=True)


def _pieces(folder: Path) -> Pieces[pd.DataFrame]:
    def write(path: Path, rows: pd.DataFrame) -> None:
        write_table(rows, path)

    return Pieces(folder, ".parquet", read=pd.read_parquet, write=write)


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
        for name, column in _FITS.items():
            line[name] = ok[column].median()
        lines.append(line)
    order = {method: place for place, method in enumerate(METHODS)}
    table = pd.DataFrame(lines)
    return table.sort_values(
        ["activation", "variant", "method"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ascending=[False, True, True],
        ignore_index=True,
    )


def text_1(table: pd.DataFrame) -> str:
    """`table_1` for a terminal."""
    header = ["variant", "features", "rank U, n (1)", "rank U, n (2)", "c(M)", "paper"]
    header += ["layer 1 widens", "its W has full rank"]
    rows = [
        [
            *(str(row["variant"]), str(row["features"])),
            *(f"{row[f'rank_{i}']:,} of {row[f'n_{i}']:,}" for i in (1, 2)),
            *(signed(row["value"]), signed(row["paper"])),
            *("yes" if row[name] else "no" for name in ("pull_back", "full_rank")),
        ]
        for row in table.to_dict("records")
    ]
    return text_table(header, rows)


def text_2(table: pd.DataFrame) -> str:
    """`table_2` for a terminal, with the paper's cells."""
    header = ["activation", "variant", "method", "MSE", "PSNR dB", "on the paper's scale"]
    header += ["equations", "gradient", "n", "paper: truck", "paper: animal"]
    rows = [_line(row) for row in table.to_dict("records")]
    return text_table(header, rows)


def varied(images: LabelledImages, count: int) -> LabelledImages:
    """The first image of every class, then the second, …, `count` in all.

    Raises `SettingsError` where there are not so many.
    """
    if not 1 <= count <= len(images):
        raise SettingsError(f"--count is 1 to {len(images)}, the images there are; got {count}.")
    seen: dict[int, int] = {}
    rounds = []
    for place, label in enumerate(images.labels.tolist()):
        seen[label] = seen.get(label, -1) + 1
        rounds.append((seen[label], label, place))
    return images.pick([place for _, _, place in sorted(rounds)[:count]])


def shown_pair(images: LabelledImages) -> LabelledImages:
    """Two images for the figures: a truck and a deer as in the paper where there are, else any."""
    names = [images.classes[label] for label in images.labels.tolist()]
    wanted = [names.index(name) for name in ("truck", "deer") if name in names]
    others = [place for place in range(len(images)) if place not in wanted]
    return images.pick([*wanted, *others][:2])


def _line(row: dict) -> list[str]:
    printed = TABLE_2.get((row["activation"], row["variant"], row["method"]))
    odd = [f"{row[name]} {words}" for name, words in _ODD.items() if row[name]]
    return [
        *(row["activation"], str(row["variant"]), row["method"]),
        with_spread(row["mse"], row["mse_sd"], ".2g" if row["mse"] < 1e-3 else ".4f", "-"),
        *(with_spread(row[name], row[f"{name}_sd"], ".1f", "-") for name in ("psnr", "psnr_paper")),
        *("-" if math.isnan(row[name]) else f"{row[name]:.0e}" for name in _FITS),
        ", ".join([str(row["n"]), *odd]),
        *(("", "") if printed is None else (f"{mse:.4f}, {psnr:.1f}" for mse, psnr in printed)),
    ]


def write_figure(images: LabelledImages, variants: Sequence[int], kind: str, out: Path) -> Path:
    """Write the paper's figure of an activation as PNG and SVG; returns the PNG's path."""
    shown = [one for variant in variants for one in _attacked(shown_pair(images), variant, kind)]
    drawing = method_figure(shown, FIGURES[kind], kind)
    return write_both(drawing, out / f"figure{FIGURES[kind]}.png")


def _attacked(images: LabelledImages, variant: int, kind: str) -> list[GridPicture]:
    model = cnn3_model(variant, kind, seed=0)
    found = []
    for image, label in zip(images.images, images.labels.tolist(), strict=True):
        one = attempt(model, image, label)
        found.append(GridPicture(variant=variant, method="original", image=image, mse=0.0))
        for method, result in inversions(one.seen):
            if method != "grey":
                back = getattr(result, "image", None)
                found.append(_shown(variant, method, image, back))
    return found


def _shown(
    variant: int, method: str, image: torch.Tensor, back: torch.Tensor | None
) -> GridPicture:
    if back is None:
        return GridPicture(variant=variant, method=method, image=None, mse=float("nan"))
    mse = float((back - image.double()).square().mean())
    return GridPicture(variant=variant, method=method, image=back.clamp(0, 1).float(), mse=mse)
