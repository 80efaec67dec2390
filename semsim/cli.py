"""`python -m semsim …`: what the pages do, from a terminal.

Each command is imported when it is asked for: together they take seconds to import.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command

from semsim.terminal import Commands

# Command → module of the package and the function or application in it.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "audit": ("audit_cli", "audit"),
    "campaign": ("campaign_cli", "app"),
    "compare": ("compare_cli", "compare"),
    "datasets": ("datasets_cli", "app"),
    "demo": ("demo_cli", "app"),
    "federated": ("federated_cli", "federated"),
    "import": ("import_cli", "app"),
    "learn": ("learn_study_cli", "app"),
    "report": ("compare_cli", "report"),
    "reproduce": ("reproduce_cli", "app"),
    "score": ("score_cli", "score"),
    "split": ("split_cli", "app"),
    "weights": ("score_cli", "weights"),
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
        found = getattr(import_module(f"semsim.{module}"), name)
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
