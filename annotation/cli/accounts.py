"""semsim-studio accounts: who may run studies, from the machine itself."""

import getpass
import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from annotation.accounts import register as accounts
from annotation.accounts.access import PASSWORD, new_password
from annotation.cli.console import DATA, Database, DataDir, Json, list_text, opened, show
from annotation.domain import Role

app = typer.Typer(
    name="accounts",
    help="Accounts of administrators and researchers: list, add, reset, disable, enable.",
    no_args_is_help=True,
    add_completion=False,
)
Name = Annotated[str, typer.Argument(help="Name of the account.")]


def _password() -> str:
    # From the environment for scripts; never as an argument, which every process can see.
    return os.environ[PASSWORD] if PASSWORD in os.environ else new_password(getpass.getpass)


@app.command(name="list")
def list_accounts(
    data_dir: DataDir = DATA, database: Database = None, as_json: Json = False
) -> None:
    """List all accounts."""
    with opened(database, data_dir) as store:
        found = accounts.list_accounts(store)
    facts = ("name", "role", "created", "disabled")
    days = [
        [f"{day:%Y-%m-%d}" if day else "" for day in (one.created, one.disabled)] for one in found
    ]
    told = [[one.name, one.role, *dates] for one, dates in zip(found, days, strict=True)]
    rows = [{fact: getattr(one, fact) for fact in facts} for one in found]
    show({"accounts": rows}, list_text(facts, told), as_json)


@app.command(help=f"Make an account; asks for a password, or takes {PASSWORD}.")
def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="Role of the account.")] = Role.RESEARCHER,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    with opened(database, data_dir, make=True) as store:
        made = accounts.add_account(store, name, _password(), role, datetime.now(UTC))
        typer.echo(f"{made.name} is {made.role}")


@app.command(help=f"Give somebody a new password (asked for, or {PASSWORD}) and sign them out.")
def reset(name: Name, data_dir: DataDir = DATA, database: Database = None) -> None:
    with opened(database, data_dir) as store:
        done = accounts.set_password(store, accounts.find_account(store, name), _password())
        typer.echo(f"{done.name} has a new password")


@app.command()
def disable(name: Name, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Disable an account from now on."""
    with opened(database, data_dir) as store:
        account = accounts.find_account(store, name)
        done = accounts.disable(store, account.id, datetime.now(UTC), by=None)
        typer.echo(f"{done.name} is disabled")


@app.command()
def enable(name: Name, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Enable a disabled account."""
    with opened(database, data_dir) as store:
        done = accounts.enable(store, accounts.find_account(store, name).id, by=None)
        typer.echo(f"{done.name} may sign in again")
