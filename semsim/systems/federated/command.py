"""`semsim-studio federated …`: FedAvg against PBPFL, and a training between machines."""

import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from semsim.base.cli.options import settings_of, taking
from semsim.base.cli.terminal import (
    Json,
    TerminalBar,
    check_folder,
    say,
    show,
    show_told,
    told_errors,
)
from semsim.base.errors import SettingsError
from semsim.base.storage.atomic import write_json
from semsim.systems.federated.data import own_table_text
from semsim.systems.federated.settings import (
    ARMS,
    FederatedJob,
    FederatedOrder,
    FederatedSettings,
)
from semsim.systems.federated.summary import (
    answer_words,
    cost_table,
    curve_table,
    leak_table,
    parts_of,
    training_words,
)

_NONE = "none"


def chosen_arms(text: str) -> tuple[str, ...]:
    """The arms that `text` names."""
    if text.strip() == "all":
        return tuple(ARMS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return () if names == [_NONE] else tuple(names)


_ORDER = settings_of(FederatedOrder, called={"data": "dataset"}, arms=chosen_arms)


_Table = Annotated[
    Path | None, Option(help="A CSV table of your own instead, with numbers and categories.")
]
_Target = Annotated[str | None, Option(help="The column of --table that is predicted.")]


def _named(data: str, table: Path | None, target: str | None) -> str:
    """The data text that these options mean together."""
    return data if table is None and target is None else own_table_text(table, target)


class _Group(TyperGroup):
    """Its first command needs not be named: `federated --out …` compares."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "--help", "-h"}:
            args = ["compare", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    help="Federated learning with a masked model, compared in one process or between machines.",
)


@app.command()
@taking(order=_ORDER)
def compare(
    out: Annotated[Path, Option(help="Folder for the results; an interrupted run goes on.")],
    order: FederatedOrder,
    table: _Table = None,
    target: _Target = None,
    as_json: Json = False,
) -> None:
    """Train FedAvg and PBPFL from one start, attack what each party sees, and say what leaks.

    This is what `federated` does where no command is named.
    """
    from semsim.systems.federated.comparison import do_comparison  # with torch

    check_folder(out)
    order = replace(order, data=_named(order.data, table, target))
    with TerminalBar(unit="step") as bar:
        result = do_comparison(FederatedJob(order=order, out=out.resolve()), out, bar)
    show_told(parts_of(result) if as_json else {}, told(result), as_json)


def told(result: dict[str, Any]) -> str:
    """Return a result as text for a terminal: what leaks first, then training and cost."""
    training, leak = result["training"], result["leak"]
    parts = ["\n".join(leak.get("summary", []))]
    if leak.get("scores"):
        parts = [*answer_words(leak["scores"], leak["recognition"]), leak_table(leak), *parts]
    parts += [curve_table(training), training_words(training), cost_table(training)]
    return "\n\n".join(part for part in parts if part)


_Address = Annotated[str, typer.Argument(metavar="HOST:PORT", help="The server's address.")]
_Data = Annotated[
    str,
    Option(
        "--dataset", help="As in federated compare: digits, symbols, folder:root=…, or a table."
    ),
]


def _examples(data: _Data = "digits", table: _Table = None, target: _Target = None) -> str:
    """Return the data text that the options mean."""
    return _named(data, table, target)


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Connection of two machines.

    Attributes:
        secured: The server's certificates, or its authority for a client; None encrypts nothing.
        patience: Seconds of silence after which to give up.
    """

    secured: Path | None
    patience: float


_Insecure = Annotated[bool, Option("--insecure", help="Encrypt nothing; for a trial alone.")]
_Patience = Annotated[float, Option(min=1, help="Seconds of silence after which to give up.")]


def _by_certificates(
    certificates: Annotated[
        Path | None, Option(help="Folder with the server's, as federated certificates makes it.")
    ] = None,
    insecure: _Insecure = False,
    patience: _Patience = 3600,
) -> Reached:
    _check_secured(certificates, insecure, "--certificates")
    return Reached(secured=certificates, patience=patience)


def _by_authority(
    authority: Annotated[
        Path | None, Option(help="The server's authority.crt, which makes its connection safe.")
    ] = None,
    insecure: _Insecure = False,
    patience: _Patience = 3600,
) -> Reached:
    _check_secured(authority, insecure, "--authority")
    return Reached(secured=authority, patience=patience)


_SETTINGS = settings_of(
    FederatedSettings,
    {
        "network": Option(help="As in federated compare."),
        "scheme": Option(help="fedavg or pbpfl."),
        "loss": Option(help="mse or cross-entropy, which pbpfl cannot take."),
        "clients": Option(min=1, help="Clients that are waited for."),
        "rounds": Option(min=1, help="Rounds of the training."),
        "batch_size": Option(min=1, help="Batch size of a client."),
        "lr": Option(help="The server's step size."),
        "seed": Option(help="Orders the clients' mini-batches; everybody knows it."),
    },
)


@taking(settings=_SETTINGS)
def _trained(
    settings: FederatedSettings,
    zero_sum: Annotated[
        bool, Option("--zero-sum", help="Clients hide their updates under masks that cancel.")
    ] = False,
    secret_seed: Annotated[
        int | None, Option(help="Draws weights and masks; a secret one where none is given.")
    ] = None,
) -> tuple[FederatedSettings, int]:
    """Return the settings of a training between machines, and its secret."""
    if zero_sum:
        masks = replace(settings.masks, zero_sum=True, noise_scope="round")
        settings = replace(settings, scheme="pbpfl", masks=masks)
    every = max(1, settings.rounds // 20)
    secret = secrets.randbits(63) if secret_seed is None else secret_seed
    return replace(settings, keep=(), evaluate_every=every), secret


@app.command()
@taking(training=_trained, named=_examples, reached=_by_certificates)
def serve(
    address: _Address,
    out: Annotated[Path, Option(help="Folder for the model, its curve and Flower's logs.")],
    training: tuple[FederatedSettings, int],
    named: str,
    reached: Reached,
    as_json: Json = False,
) -> None:
    """Train with clients on other machines; they type federated join."""
    from semsim.systems.federated.comparison import load
    from semsim.systems.federated.flower import meeting, superlink  # with torch
    from semsim.systems.federated.networks import fresh_network

    check_folder(out)
    settings, secret = training
    examples = load(named).data
    fresh_network(settings, examples)  # says what does not fit before anybody is waited for
    with TerminalBar(unit="round") as bar:
        trained = superlink.serve(
            lambda wire: meeting.Meeting(
                settings=settings,
                data=examples,
                wire=wire,
                secret=secret,
                patience=reached.patience,
                report=bar,
                say=say,
            ),
            address,
            reached.secured,
            out / "flower",
        )
    (out / "model.safetensors").write_bytes(meeting.weights(trained.model))
    curve = [asdict(point) for point in trained.curve]
    write_json(out / "training.json", {"settings": asdict(settings), "curve": curve})
    ended = {"curves": {settings.scheme: curve}}
    rows = [{"scheme": settings.scheme, **one} for one in curve]
    show({"training": rows}, curve_table(ended), as_json)


@app.command()
@taking(named=_examples, reached=_by_authority)
def join(
    address: _Address,
    number: Annotated[int, Option(min=0, help="Which client this is, from 0.")],
    out: Annotated[Path, Option(help="Folder for the released model and Flower's logs.")],
    named: str,
    reached: Reached,
    dealt: Annotated[
        bool,
        Option("--dealt", help="Take this client's part of data that all have; for a trial."),
    ] = False,
) -> None:
    """Take part in a training as one client; examples stay on this machine."""
    from semsim.systems.federated.comparison import load
    from semsim.systems.federated.flower import meeting, superlink

    check_folder(out)
    guest = meeting.Guest(number, lambda facts: load(named, facts["coding"]).data, dealt=dealt)
    logs, patience = out / "flower", reached.patience
    released = superlink.join(guest, address, reached.secured, logs, patience=patience)
    (out / "model.safetensors").write_bytes(released)
    typer.echo(f"The training is over; the model to use is {out / 'model.safetensors'}.")


@app.command()
def certificates(
    folder: Annotated[Path, typer.Argument(help="A new folder for them.")],
    host: Annotated[
        list[str] | None, Option(help="Name or address by which clients reach it. Repeatable.")
    ] = None,
) -> None:
    """Make certificates for a trial: clients need authority.crt, and only the server the rest."""
    from semsim.systems.federated.flower.certificates import AUTHORITY, write_certificates

    with told_errors():
        write_certificates(folder, host or [])
    typer.echo(f"Give {folder / AUTHORITY} to the clients, and keep the rest to the server.")


def _check_secured(path: Path | None, insecure: bool, option: str) -> None:
    if (path is None) != insecure:
        raise SettingsError(f"Say either {option} or --insecure, which encrypts nothing.")
