"""`python -m semsim …`: what the pages do, from a terminal.

Each command is imported when it is asked for: together they take seconds to import.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from semsim.terminal import Commands

# Command → module of this folder and the function or application in it.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "audit": ("audit", "audit"),
    "campaign": ("campaign", "app"),
    "compare": ("compare", "compare"),
    "datasets": ("datasets", "app"),
    "demo": ("demo", "app"),
    "federated": ("federated", "federated"),
    "import": ("imports", "app"),
    "job": ("job", "job"),
    "learn": ("learn", "app"),
    "report": ("compare", "report"),
    "reproduce": ("reproduce", "app"),
    "score": ("score", "score"),
    "split": ("split", "app"),
    "weights": ("score", "weights"),
}


class _Commands(Commands):
    """A group that knows its commands by name alone."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        found = getattr(import_module(f"semsim.cli.{module}"), name)
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
