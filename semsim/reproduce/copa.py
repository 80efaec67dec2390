"""`semsim-studio reproduce copa`: Tables 1 and 2 and Figures 1 and 2 of the COPA paper."""

import hashlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
import typer

from semsim.attacks.linear.rows import attempt, cnn3_model, inversions, linear_rows
from semsim.base.whole import whole
from semsim.datasets import DATASETS
from semsim.datasets.folder import Folder
from semsim.errors import SettingsError
from semsim.grid.engine import Piece, spread
from semsim.kept.pieces import Pieces
from semsim.progress import Report, silent
from semsim.registry import build
from semsim.reporting.export import write_both
from semsim.reporting.picture_grids import Shown, method_figure
from semsim.reproduce.copa_tables import (
    grid_of,
    shown_pair,
    table_1,
    table_2,
    text_1,
    text_2,
    varied,
)
from semsim.reproduce.plans import PlanOption, Work, planned_rows, planned_text
from semsim.targets.cnn3 import VARIANTS
from semsim.terminal import (
    DATA,
    Json,
    SchedulerOption,
    TerminalBar,
    rows_of,
    say,
    show_told,
    told_errors,
)
from semsim.types import LabelledImages

FIGURES = {"tanh": 1, "leaky-relu": 2}  # activation → the paper's figure
STEPS = (
    "A cell is a picture that COPA, R-GAP and grey are asked for, a step one picture. It writes "
    "Tables 1 and 2, their rows, a file a network, and a figure an activation."
)
_SIZE = 32
FORMAT = "semsim-copa/1"  # part of every key: raise it where the same images get other rows


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
        numbers, kinds = chosen_variants(variants), chosen_activations(activations)
        if seeds < 1:
            raise SettingsError(f"--seeds is 1 or more; got {seeds}.")
        attacked = varied(pictures_of(images), count)
        if plan:
            works = works_of(attacked, numbers, kinds, range(seeds), out / "pieces")
            show_told(planned_rows(works), planned_text("copa", works, STEPS), as_json)
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
            asked = attacked, numbers, kinds, range(seeds)
            rows = kept_rows(*asked, out / "pieces", bar, workers, scheduler)
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


def works_of(
    images: LabelledImages,
    variants: Sequence[int],
    activations: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
) -> list[Work]:
    """Return what Table 2 attacks, a row a kind of network; `folder`: of the pieces."""
    found, kept = [], _pieces(folder)
    for kind, variant in product(activations, variants):
        grid = _grid(images, [variant], [kind], seeds)
        cells, left = (len(images) * len(some) for some in (grid, kept.missing(grid)))
        what = f"attack variant {variant}, {kind}"
        found.append(Work(part="Table 2", what=what, cells=cells, done=cells - left, steps=cells))
    return found


def pictures_of(folder: Path | None) -> LabelledImages:
    """The test images of a folder at 32×32, or the built-in symbols'."""
    if folder is None:
        return build(DATASETS, "symbols", {"test_per_class": 2})("test")
    return Folder(root=str(folder), size=_SIZE, test_share=1.0)("test")


def chosen_variants(text: str) -> list[int]:
    """The variants of CNN3 named in `text`; `SettingsError` for one there is not."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not set(names) <= {str(variant) for variant in VARIANTS}:
        raise SettingsError(f"--variants is some of 1,2,3,4; got {text!r}.")
    return [int(name) for name in dict.fromkeys(names)]


def chosen_activations(text: str) -> list[str]:
    """The activations named in `text`; `SettingsError` for one the paper does not have."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not set(names) <= set(FIGURES):
        raise SettingsError(f"--activations is tanh, leaky-relu or both; got {text!r}.")
    return list(dict.fromkeys(names))


def kept_rows(
    images: LabelledImages,
    variants: Sequence[int],
    activations: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
    report: Report = silent,
    workers: int = 1,
    scheduler: str = "",
) -> pd.DataFrame:
    """`linear_rows`, network by network; a finished network is read from `folder`.

    workers, scheduler: who takes networks, as for `spread`; with one worker all is done here.
    """
    kept = _pieces(folder)
    grid = _grid(images, variants, activations, seeds)
    missing = kept.missing(grid)
    pieces = [Piece(key=key, work=_network_rows, asked=(images, *grid[key])) for key in missing]
    ready = len(grid) - len(missing)

    def keep(piece: Piece, rows: pd.DataFrame) -> None:
        kept.write(piece.key, rows)

    spread(pieces, keep, report, workers, scheduler, ready=ready)
    return pd.concat([kept.read(key) for key in grid], ignore_index=True)


def _pieces(folder: Path) -> Pieces[pd.DataFrame]:
    return Pieces(folder, ".parquet", read=pd.read_parquet, write=_write_rows)


def _grid(
    images: LabelledImages,
    variants: Sequence[int],
    activations: Sequence[str],
    seeds: Sequence[int],
) -> dict[str, tuple[str, int, int]]:
    """Return the networks of Table 2, by the keys of their pieces."""
    mark = _fingerprint(images)
    return {"{}-{}-{}-{}".format(mark, *one): one for one in grid_of(variants, activations, seeds)}


def _network_rows(
    images: LabelledImages, activation: str, variant: int, seed: int, *, report: Report
) -> pd.DataFrame:
    return linear_rows(images, [variant], [activation], [seed], report)


def _write_rows(path: Path, rows: pd.DataFrame) -> None:
    with whole(path) as part:
        rows.to_parquet(part, index=False)


def write_figure(images: LabelledImages, variants: Sequence[int], kind: str, out: Path) -> Path:
    """Write the paper's figure of an activation as PNG and SVG; returns the PNG's path."""
    shown = [one for variant in variants for one in _attacked(shown_pair(images), variant, kind)]
    drawing = method_figure(shown, FIGURES[kind], kind)
    return write_both(drawing, out / f"figure{FIGURES[kind]}.png")


def _attacked(images: LabelledImages, variant: int, kind: str) -> list[Shown]:
    model = cnn3_model(variant, kind, seed=0)
    found = []
    for image, label in zip(images.images, images.labels.tolist(), strict=True):
        one = attempt(model, image, label)
        found.append(Shown(variant=variant, method="original", image=image, mse=0.0))
        for method, result in inversions(one.seen):
            if method != "grey":
                back = getattr(result, "image", None)
                found.append(_shown(variant, method, image, back))
    return found


def _shown(variant: int, method: str, image: torch.Tensor, back: torch.Tensor | None) -> Shown:
    if back is None:
        return Shown(variant=variant, method=method, image=None, mse=float("nan"))
    mse = float((back - image.double()).square().mean())
    return Shown(variant=variant, method=method, image=back.clamp(0, 1).float(), mse=mse)


def _fingerprint(images: LabelledImages) -> str:
    """Changes with any pixel, label or name."""
    made = hashlib.sha256(FORMAT.encode() + images.images.numpy().tobytes())
    made.update(repr((images.ids, images.labels.tolist(), images.classes)).encode())
    return made.hexdigest()[:12]
