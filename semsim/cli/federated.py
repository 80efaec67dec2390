"""`python -m semsim federated`: FedAvg against PBPFL, and what each party gets to see."""

import functools
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.federated import NETWORKS
from semsim.federated.comparison import Order, carry_out
from semsim.federated.leak import ARMS
from semsim.federated.summary import cost_table, curve_table, leak_table, training_words
from semsim.jobs import folders as jobs
from semsim.terminal import TerminalBar, told_errors

_NONE = "none"


def federated(
    out: Annotated[Path, typer.Option(help="Folder for the results; an interrupted run goes on.")],
    data: Annotated[
        str, typer.Option(help="digits, symbols, folder:… or a table: diabetes, breast-cancer.")
    ] = Order.data,
    network: Annotated[str, typer.Option(help=", ".join(NETWORKS))] = Order.network,
    clients: Annotated[int, typer.Option(help="Clients of the training.")] = Order.clients,
    split: Annotated[str, typer.Option(help="iid or dirichlet.")] = Order.split,
    dirichlet_alpha: Annotated[
        float, typer.Option(help="Smaller is more uneven.")
    ] = Order.dirichlet_alpha,
    rounds: Annotated[int, typer.Option(help="Rounds of the training.")] = Order.rounds,
    batch_size: Annotated[int, typer.Option(help="Of each client.")] = Order.batch_size,
    lr: Annotated[float, typer.Option(help="The server's step size.")] = Order.lr,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = Order.seed,
    noise_scope: Annotated[
        str, typer.Option(help="client: a mask for each. round: one for all.")
    ] = Order.noise_scope,
    cross_entropy: Annotated[
        bool, typer.Option(help="Train FedAvg with cross-entropy too.")
    ] = Order.cross_entropy,
    arms: Annotated[
        str, typer.Option(help=f"Who attacks, with commas, 'all' or 'none': {', '.join(ARMS)}.")
    ] = "all",
    images: Annotated[int, typer.Option(help="Images attacked in each arm.")] = Order.images,
    attack: Annotated[str, typer.Option(help="As in invgrad:steps=300.")] = Order.attack,
    attack_round: Annotated[
        int, typer.Option(help="Round whose messages are attacked; 1 is untrained.")
    ] = Order.attack_round,
    job: Annotated[
        Path | None, typer.Option(help="Run as the job in this folder (pages use it).", hidden=True)
    ] = None,
) -> None:
    """Train FedAvg and PBPFL from one start, attack what each party sees, and say what leaks."""
    order = Order(
        data=data,
        network=network,
        clients=clients,
        split=split,  # type: ignore[arg-type]  # a wrong word is refused by FederatedSettings
        dirichlet_alpha=dirichlet_alpha,
        rounds=rounds,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        noise_scope=noise_scope,  # type: ignore[arg-type]  # and by Pbpfl
        cross_entropy=cross_entropy,
        arms=chosen_arms(arms),
        images=images,
        attack=attack,
        attack_round=attack_round,
    )
    with told_errors(), TerminalBar(unit="step") as bar:
        work = functools.partial(carry_out, order, out.resolve())
        result = work(bar) if job is None else jobs.run_as_job(job, work, also=bar)
    if result is None:
        typer.echo("Stopped as asked; it can be resumed.", err=True)
        return
    write_result(out, result)
    typer.echo(told(result))


def chosen_arms(text: str) -> tuple[str, ...]:
    """The arms that `text` names."""
    if text.strip() == "all":
        return tuple(ARMS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return () if names == [_NONE] else tuple(names)


def write_result(out: Path, result: dict[str, Any]) -> None:
    """Keep the result beside the sets."""
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def told(result: dict[str, Any]) -> str:
    """A result as text for a terminal."""
    training, leak = result["training"], result["leak"]
    parts = [curve_table(training), training_words(training), cost_table(training)]
    if leak.get("scores"):
        parts.append(leak_table(leak))
    parts.append("\n".join(leak.get("summary", [])))
    return "\n\n".join(part for part in parts if part)
