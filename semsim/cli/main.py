"""`python -m semsim …`: what the pages do, from a terminal.

Each command is imported when it is asked for: together they take seconds to import.
"""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from semsim.terminal import Commands


class Late(NamedTuple):
    """A command that is not imported yet: a function or an application in a module here."""

    module: str
    name: str
    help: str  # as the list of commands shows it


COMMANDS = {
    "audit": Late(
        "audit",
        "audit",
        "Print c(M) of a network layer by layer, what it means, and what small changes would do.",
    ),
    "campaign": Late("campaign", "app", "A grid of targets and attacks, on many machines."),
    "cases": Late(
        "cases",
        "cases",
        "Draw one reconstruction for each way people and a metric can judge, and what both say.",
    ),
    "compare": Late(
        "compare",
        "compare",
        "Print how well each metric agrees with people; with --out write everything about it.",
    ),
    "datasets": Late("datasets", "app", "Data sets: which there are, and how to get them."),
    "demo": Late("demo", "app", "The built-in study."),
    "federated": Late(
        "federated",
        "federated",
        "Train FedAvg and PBPFL from one start, attack what each party sees, and say what leaks.",
    ),
    "import": Late(
        "imports", "app", "Import data published by others: images, votes, labels, scores."
    ),
    "job": Late(
        "job",
        "job",
        "Carry out or resume the job in a folder, which a page or another command made.",
    ),
    "judge": Late(
        "judge", "app", "Classifiers that were never attacked: lists and metrics need them."
    ),
    "learn": Late("learn", "app", "Train SemSim, judge it, study it."),
    "report": Late(
        "compare",
        "report",
        "Write one HTML file about the comparison, ready to go with a paper; it opens offline.",
    ),
    "reproduce": Late("reproduce", "app", "Compute a paper's tables and figures again."),
    "score": Late(
        "score",
        "score",
        "Score reconstructions against their originals; print a table and write the scores.",
    ),
    "split": Late("split", "app", "Split inference: defences and model inversion."),
    "weights": Late(
        "score",
        "weights",
        "List the weight files metrics need, or fetch the named ones with --download.",
    ),
}


class _Commands(Commands):
    """Knows its commands by name and help alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {name: TyperCommand(name, help=one.help) for name, one in COMMANDS.items()}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        mode = getattr(self, "_help_mode", self.rich_markup_mode)
        known = TyperGroup(
            commands=dict(self.commands), params=self.params, help=self.help, rich_markup_mode=mode
        )
        known.format_help(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        late = COMMANDS[cmd_name]
        found = getattr(import_module(f"semsim.cli.{late.module}"), late.name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(found)
            found = alone
        command = get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    help="What the pages do, from a terminal.",
)


@app.callback()
def main() -> None:
    """What the pages do, from a terminal."""
