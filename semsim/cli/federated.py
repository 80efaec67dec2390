"""`python -m semsim federated`: FedAvg against PBPFL, and what each party gets to see."""

from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.cli.job import do
from semsim.federated import NETWORKS
from semsim.federated.comparison import FederatedOrder
from semsim.federated.leak import ARMS
from semsim.federated.orders import FederatedJob, do_comparison
from semsim.federated.summary import cost_table, curve_table, leak_table, training_words
from semsim.jobs.folders import read_job
from semsim.terminal import TerminalBar, told_errors

_NONE = "none"


def federated(
    out: Annotated[Path, typer.Option(help="Folder for the results; an interrupted run goes on.")],
    data: Annotated[
        str, typer.Option(help="digits, symbols, folder:… or a table: diabetes, breast-cancer.")
    ] = FederatedOrder.data,
    network: Annotated[str, typer.Option(help=", ".join(NETWORKS))] = FederatedOrder.network,
    clients: Annotated[int, typer.Option(help="Clients of the training.")] = FederatedOrder.clients,
    split: Annotated[str, typer.Option(help="iid or dirichlet.")] = FederatedOrder.split,
    dirichlet_alpha: Annotated[
        float, typer.Option(help="Smaller is more uneven.")
    ] = FederatedOrder.dirichlet_alpha,
    rounds: Annotated[int, typer.Option(help="Rounds of the training.")] = FederatedOrder.rounds,
    batch_size: Annotated[int, typer.Option(help="Of each client.")] = FederatedOrder.batch_size,
    lr: Annotated[float, typer.Option(help="The server's step size.")] = FederatedOrder.lr,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = FederatedOrder.seed,
    noise_scope: Annotated[
        str, typer.Option(help="client: a mask for each. round: one for all.")
    ] = FederatedOrder.noise_scope,
    cross_entropy: Annotated[
        bool, typer.Option(help="Train FedAvg with cross-entropy too.")
    ] = FederatedOrder.cross_entropy,
    arms: Annotated[
        str, typer.Option(help=f"Who attacks, with commas, 'all' or 'none': {', '.join(ARMS)}.")
    ] = "all",
    images: Annotated[
        int, typer.Option(help="Images attacked in each arm.")
    ] = FederatedOrder.images,
    attack: Annotated[str, typer.Option(help="As in invgrad:steps=300.")] = FederatedOrder.attack,
    attack_round: Annotated[
        int, typer.Option(help="Round whose messages are attacked; 1 is untrained.")
    ] = FederatedOrder.attack_round,
    job: Annotated[Path | None, typer.Option(help="Job of an older version.", hidden=True)] = None,
) -> None:
    """Train FedAvg and PBPFL from one start, attack what each party sees, and say what leaks."""
    order = FederatedOrder(
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
    with told_errors():
        if job is not None:
            do(read_job(job))
            return
        with TerminalBar(unit="step") as bar:
            result = do_comparison(FederatedJob(order=order, out=out.resolve()), out, bar)
    typer.echo(told(result))


def chosen_arms(text: str) -> tuple[str, ...]:
    """The arms that `text` names."""
    if text.strip() == "all":
        return tuple(ARMS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return () if names == [_NONE] else tuple(names)


def told(result: dict[str, Any]) -> str:
    """A result as text for a terminal."""
    training, leak = result["training"], result["leak"]
    parts = [curve_table(training), training_words(training), cost_table(training)]
    if leak.get("scores"):
        parts.append(leak_table(leak))
    parts.append("\n".join(leak.get("summary", [])))
    return "\n\n".join(part for part in parts if part)
