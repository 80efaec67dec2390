"""Tables 2, 4, 5 and 6 of PBPFL as text, beside what the paper has (arXiv:2002.09843)."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semsim.base.cli.terminal import text_table
from semsim.base.storage.places import toml_of
from semsim.base.words import counted

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
class Cell:
    """One training at its end.

    squared_error: mean over test examples and outputs. accuracy: share, None without classes.
    gap: PBPFL's largest difference from FedAvg-MSE's parameters, None for the others. moved: the
    largest change of a parameter since the start.
    """

    network: str
    scheme: str
    clients: int
    seed: int
    squared_error: float
    accuracy: float | None
    gap: float | None
    moved: float


def squared_error_text(cells: Sequence[Cell], data: str, paper: str, mean: float) -> str:
    """Table 2's pattern. paper: which of its data. mean: the error of the training mean."""
    head = (
        f"Table 2. Squared error on test examples of {data}, mean ± sd over seeds; lower is "
        f"better. The training mean for every example: {mean:.3f}. The paper's are of {paper}."
    )
    table = _by_clients(cells, lambda cell: cell.squared_error, 3, TABLE_2[paper])
    return f"{head}\n{table}\n{_gap(cells)}"


def accuracy_text(cells: Sequence[Cell], data: str, commonest: float) -> str:
    """Table 4's pattern. commonest: the share of test images in the commonest training class."""

    def per_cent(cell: Cell) -> float:
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
        [title, *(f"{round(value, 2) + 0.0:.2f}" for value in values)]  # no minus before 0.00
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
    """`_COSTS` of another scheme's seconds beside plain FedAvg's, each by PP, LFP, LBP and MU."""
    client = plain["forward"] + plain["backward"]
    return [
        other["forward"] / plain["forward"],
        other["backward"] / plain["backward"],
        (other["forward"] + other["backward"]) / client,
        other["update"] / plain["update"],
        (other["perturb"] - plain["perturb"]) / client,
        (other["update"] - plain["update"]) / client,
    ]


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
    cells: Sequence[Cell], value: Callable[[Cell], float], digits: int, paper: Cells
) -> str:
    counts = sorted({cell.clients for cell in cells})
    keys = dict.fromkeys((cell.network, cell.scheme) for cell in cells)
    rows = []
    for key in keys:
        row = [*key]
        for count in counts:
            same = (*key, count)
            found = [value(c) for c in cells if (c.network, c.scheme, c.clients) == same]
            row.append(_mean_and_spread(found, digits))
        row.append(" / ".join(f"{one:.{digits}f}" for one in paper.get(key, ())))
        rows.append(row)
    told = f"paper, K={' / '.join(map(str, CLIENTS))}"
    return text_table(["network", "scheme", *(f"K={count}" for count in counts), told], rows)


def _mean_and_spread(values: Sequence[float], digits: int) -> str:
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def _gap(cells: Sequence[Cell]) -> str:
    worst = max(cell.gap for cell in cells if cell.gap is not None)
    least = min(cell.moved for cell in cells if cell.scheme == "FedAvg-MSE")
    seeds = counted(len({cell.seed for cell in cells}), "seed")
    return (
        f"{seeds}. PBPFL and FedAvg-MSE end {worst:.0e} apart in their most different "
        f"parameter, the worst of all trainings; since the start FedAvg-MSE's has changed by "
        f"{least:.0e} or more."
    )
