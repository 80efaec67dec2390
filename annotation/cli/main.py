"""`python -m annotation …`: studies from a terminal. A command is imported when it is run."""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from annotation.cli.console import Commands


class Late(NamedTuple):
    """A command that is not imported yet: it is of, or all of, the `app` of a module here."""

    module: str
    help: str  # as the list of commands shows it


COMMANDS = {
    "studies": Late("study", "List all studies."),
    "create": Late("study", "Create a study from reconstruction sets, or from a manifest."),
    "amend": Late(
        "study",
        "Change settings of a study: a new version of its protocol, stamped on the votes to come.",
    ),
    "protocol": Late("study", "List the versions of a study's protocol."),
    "simulate": Late(
        "study",
        "Let simulated annotators answer a study that was created with --simulated.",
    ),
    "progress": Late("study", "Show how far a study is."),
    "export": Late("study", "Write a study to a file or a new folder."),
    "labels": Late("study", "Write the majority label of every reconstruction, one a row."),
    "backup": Late(
        "backups",
        "Copy the database to a file, checked; people can go on labelling meanwhile.",
    ),
    "restore": Late(
        "backups",
        "Put a backup in the place of the database; stop the server first.",
    ),
    "annotators": Late(
        "annotators",
        "The people of a study: list, pause, resume, exclude, include, erase them.",
    ),
    "accounts": Late(
        "accounts",
        "Accounts of administrators and researchers: list, add, reset, disable, enable.",
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
        module = import_module(f"annotation.cli.{COMMANDS[cmd_name].module}")
        found: Any = get_command(module.app)
        return found if found.name == cmd_name else found.commands[cmd_name]


app = typer.Typer(
    cls=_Commands,
    help="The human study: create studies, follow them, take the votes out.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """The human study: create studies, follow them, take the votes out."""
