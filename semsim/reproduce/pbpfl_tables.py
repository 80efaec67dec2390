"""Tables 2, 4, 5 and 6 of PBPFL as text, beside what the paper has."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semsim.federated.summary import COST_COLUMNS
from semsim.terminal import text_table

# Seconds of Table 5, PBPFL's over FedAvg's; FedAvg has nothing in PP.
PAPER_RATIOS = {"perturb": "3.66 s / 0 s", "forward": "1.00", "backward": "2.54", "update": "1.04"}
_TITLES = {
    "perturb": "PP, parameter perturbation",
    "forward": "LFP, local forward",
    "backward": "LBP, local backward",
    "update": "MU, model update",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training at its end.

    squared_error: mean over test examples and outputs. accuracy: share, None without classes.
    gap: PBPFL's largest difference from FedAvg-MSE's parameters, None for the others.
    """

    network: str
    scheme: str
    clients: int
    seed: int
    squared_error: float
    accuracy: float | None
    gap: float | None


def squared_error_text(cells: Sequence[Cell], data: str) -> str:
    """Table 2's pattern."""
    head = (
        f"Table 2. Squared error on test examples of {data}, mean ± sd over seeds; lower is better."
    )
    return f"{head}\n{_by_clients(cells, lambda cell: cell.squared_error, 3)}\n{_gap(cells)}"


def accuracy_text(cells: Sequence[Cell], data: str) -> str:
    """Table 4's pattern."""

    def per_cent(cell: Cell) -> float:
        return float("nan") if cell.accuracy is None else 100 * cell.accuracy

    head = f"Table 4. Accuracy on test images of {data} in per cent, mean ± sd over seeds."
    return f"{head}\n{_by_clients(cells, per_cent, 1)}\n{_gap(cells)}"


def costs_text(costs: Mapping[str, Any]) -> str:
    """Table 5 as ratios: seconds depend on the machine."""
    rows = []
    for key in COST_COLUMNS:
        plain, masked = (costs[name]["seconds"][key] for name in ("FedAvg", "PBPFL"))
        ratio = f"{masked:.2f} s / {plain:.2f} s"
        if key != "perturb" and plain > 0:
            ratio = f"{masked / plain:.2f}"
        rows.append([_TITLES[key], ratio, PAPER_RATIOS[key]])
    head = (
        f"Table 5. PBPFL's seconds over FedAvg's in one round: {costs['network']}, float64, "
        f"{costs['batch']} images of {costs['side']} × {costs['side']}, median of "
        f"{costs['rounds']} rounds."
    )
    defined = (
        "Timed, all clients together: PP is drawing the masks, masking and packing the model. LFP "
        "and LBP are a client's passes, without packing. MU is unpacking the updates, recovery "
        "with its condition number, the weighted sum and the step; nobody waits for a client in "
        "it. Three times as many bytes are unpacked, and FedAvg recovers nothing. The "
        "paper's MU is 92.39 s to 89.11 s: nearly as long as FedAvg's clients take (91.08 s), far "
        "longer than averaging does. What it holds besides is not said, so that only the "
        "difference, 3.28 s, can be PBPFL's."
    )
    return f"{head}\n{text_table(['', 'here', 'paper'], rows)}\n{defined}"


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


def _by_clients(cells: Sequence[Cell], value: Callable[[Cell], float], digits: int) -> str:
    counts = sorted({cell.clients for cell in cells})
    keys = dict.fromkeys((cell.network, cell.scheme) for cell in cells)
    rows = []
    for network, scheme in keys:
        row = [network, scheme]
        for count in counts:
            same = (network, scheme, count)
            found = [value(c) for c in cells if (c.network, c.scheme, c.clients) == same]
            row.append(_mean_and_spread(found, digits))
        rows.append(row)
    return text_table(["network", "scheme", *(f"K={count}" for count in counts)], rows)


def _mean_and_spread(values: Sequence[float], digits: int) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {spread:.{digits}f}"


def _gap(cells: Sequence[Cell]) -> str:
    worst = max(cell.gap for cell in cells if cell.gap is not None)
    seeds = len({cell.seed for cell in cells})
    return (
        f"{seeds} seeds. PBPFL and FedAvg-MSE end {worst:.0e} apart in their most different "
        "parameter, the worst of all trainings."
    )
