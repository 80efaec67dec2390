"""The COPA paper's two tables: computed numbers beside the printed ones."""

import itertools
import math
from collections.abc import Sequence

import pandas as pd

from semsim.attacks.linear.rows import METHODS, cnn3_model
from semsim.attacks.security.advice import signed
from semsim.attacks.security.check import has_full_rank
from semsim.attacks.security.index import CIFAR, CNN3, security_index
from semsim.errors import SettingsError
from semsim.reproduce.copa_paper import TABLE_1, TABLE_2, Cell
from semsim.terminal import text_table
from semsim.types import LabelledImages

_SETTING = ["activation", "variant", "method"]
_ODD = {"failed": "failed", "blew_up": "blew up", "as_rgap": "as rgap"}
_FITS = {"equation_residual": "equation_residual", "gradient_distance": "residual"}


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

    rows: of `linear_rows`. Columns: activation, variant, method, n (with an image), failed,
    blew_up, as_rgap (where COPA took R-GAP's image; 0 in rows kept from before that was said), mean
    and sd (of a sample; NaN of one) of mse, psnr and psnr_paper, and the medians equation_residual
    and gradient_distance; NaN in rows kept from before they were.
    """
    lines = []
    for keys, part in rows.groupby(_SETTING, sort=False):
        ok = part[part["error"] == ""]
        line: dict[str, object] = dict(zip(_SETTING, keys, strict=True))
        line |= {"n": len(ok), "failed": len(part) - len(ok), "blew_up": int(ok["blew_up"].sum())}
        line["as_rgap"] = int((ok["solver"] == "rgap").sum()) if "solver" in ok else 0
        for name in ("mse", "psnr", "psnr_paper"):
            exact = bool((ok[name] == math.inf).any())
            line[name] = ok[name].mean()
            line[f"{name}_sd"] = math.nan if exact else ok[name].std(ddof=1)
        for name, column in _FITS.items():
            line[name] = ok[column].median() if column in ok else math.nan
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
    printed = TABLE_2.get((row["activation"], row["variant"]), {}).get(row["method"])
    odd = [f"{row[name]} {words}" for name, words in _ODD.items() if row[name]]
    return [
        *(row["activation"], str(row["variant"]), row["method"]),
        _spread(row["mse"], row["mse_sd"], ".2g" if row["mse"] < 1e-3 else ".4f"),
        _spread(row["psnr"], row["psnr_sd"], ".1f"),
        _spread(row["psnr_paper"], row["psnr_paper_sd"], ".1f"),
        *("-" if math.isnan(row[name]) else f"{row[name]:.0e}" for name in _FITS),
        ", ".join([str(row["n"]), *odd]),
        *(("", "") if printed is None else map(_cell, printed)),
    ]


def _spread(mean: float, sd: float, form: str) -> str:
    if math.isnan(mean):
        return "-"
    return f"{mean:{form}}" + ("" if math.isnan(sd) else f" ± {sd:{form}}")


def _cell(cell: Cell) -> str:
    mse, psnr = cell
    return f"{mse:.4f}, {psnr:.1f}"


def grid_of(
    variants: Sequence[int], activations: Sequence[str], seeds: Sequence[int]
) -> list[tuple[str, int, int]]:
    """(activation, variant, seed) of every piece of Table 2, in order."""
    return list(itertools.product(activations, variants, seeds))
