"""`python -m semsim federated`: FedAvg against PBPFL, and what each party gets to see."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from semsim.cli.job import do
from semsim.cli.options import given, settings_of, taking
from semsim.federated.arms import ARMS
from semsim.federated.comparison_job import FederatedJob, do_comparison
from semsim.federated.settings import FederatedOrder
from semsim.federated.summary import cost_table, curve_table, leak_table, training_words
from semsim.jobs.folders import read_job
from semsim.terminal import TerminalBar, check_folder

_NONE = "none"


def chosen_arms(text: str) -> tuple[str, ...]:
    """The arms that `text` names."""
    if text.strip() == "all":
        return tuple(ARMS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return () if names == [_NONE] else tuple(names)


_ORDER = settings_of(FederatedOrder, arms=chosen_arms)


@taking(order=_ORDER)
def federated(
    ctx: typer.Context,
    out: Annotated[Path, Option(help="Folder for the results; an interrupted run goes on.")],
    order: FederatedOrder,
    job: Annotated[Path | None, Option(help="Job of an older version.", hidden=True)] = None,
) -> None:
    """Train FedAvg and PBPFL from one start, attack what each party sees, and say what leaks."""
    check_folder(out)
    if job is not None:
        typed = given(ctx, order)
        do(
            read_job(job),
            lambda kept: replace(kept, out=out.resolve(), order=replace(kept.order, **typed)),
        )
        return
    with TerminalBar(unit="step") as bar:
        result = do_comparison(FederatedJob(order=order, out=out.resolve()), out, bar)
    typer.echo(told(result))


def told(result: dict[str, Any]) -> str:
    """A result as text for a terminal."""
    training, leak = result["training"], result["leak"]
    parts = [curve_table(training), training_words(training), cost_table(training)]
    if leak.get("scores"):
        parts.append(leak_table(leak))
    parts.append("\n".join(leak.get("summary", [])))
    return "\n\n".join(part for part in parts if part)
