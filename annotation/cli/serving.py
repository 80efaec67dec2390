"""`semsim-studio serve`: its options, and the server from its first word to its end."""

import argparse
import errno
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import annotation
from annotation.cli.console import DATABASE, IMAGES, SHARED, address, pictures
from semsim.base.cli.commands import ended_at_once, told_stop
from semsim.base.cli.console import failed, say, told_errors
from semsim.base.storage.places import CHECKPOINTS, DATA, DEMO, PROGRAM, settle

if TYPE_CHECKING:
    from annotation.store import Store

CreateApp = Callable[["Store", argparse.Namespace, Callable[[], str]], Any]


class ServerParser(argparse.ArgumentParser):
    """The options of `semsim-studio serve` and `doctor` that this half has."""

    def __init__(self, command: str, about: str) -> None:
        super().__init__(
            prog=f"{PROGRAM} {command}", description=f"{about} Example: {PROGRAM} {command} --local"
        )
        version = f"SemSim Studio {annotation.__version__}"
        self.add_argument("--version", action="version", version=version)
        if command == "doctor":
            self.add_argument("--json", action="store_true", help="print JSON, no table")
        self.add_argument("--host", default="127.0.0.1", help="address to listen on")
        self.add_argument("--port", type=_port, default=7860, help="port to listen on")
        self.add_argument("--local", action="store_true", help="no accounts, this machine only")
        self.add_argument("--data-dir", type=Path, default=DATA, help="where all data lies")
        self.add_argument(
            "--database",
            default=os.environ.get(DATABASE),
            help=f"SQLAlchemy URL; default: SQLite in the data folder [{DATABASE}]",
        )
        self.add_argument(
            "--image-store",
            dest="images",
            metavar="ADDRESS",
            default=os.environ.get(IMAGES, ""),
            help=f"{SHARED}; default: in the data folder [{IMAGES}]",
        )

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise failed(message)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535; got {text!r}")
    return int(text)


def why_not(host: str, port: int) -> str:
    """Return the reason why no server can listen there; "" where one can."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # as the server does, lest what was closed a moment ago counts
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        told = getattr(error, "strerror", None) or error
        return f"Port {port} is taken" if taken else f"{host}:{port} cannot be used: {told}"
    return ""


def check_port(host: str, port: int) -> None:
    """End, saying so, where no server can listen: another does, or there is no such address."""
    if trouble := why_not(host, port):
        raise failed(f"{trouble}. Choose another --port or --host.")


def asked(command: str, about: str, words: Sequence[str]) -> argparse.Namespace:
    """Return the options that follow `semsim-studio serve` or `doctor`.

    Args:
        command: "serve" or "doctor".
        about: the description in its help.
        words: of the command line, behind the command.
    """
    from annotation.web import logs, proxies

    parser = ServerParser(command, about)
    proxies.add_options(parser)
    logs.add_options(parser)
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="weights")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    return parser.parse_args(words)


def open_studio(options: argparse.Namespace, create_app: CreateApp) -> None:
    """Open everything, print the address, and serve until stopped.

    Args:
        create_app: Makes the application of a store, these options, and the first text of the page
            Studies.
    """
    from annotation.web import logs, proxies, root_path

    with told_errors():
        logs.begin(options)
    check_port(options.host, options.port)
    say("SemSim Studio: starting.", quiet=options.quiet)
    os.environ[root_path.ROOT_PATH] = options.root_path
    from annotation.store import Store, backup
    from annotation.study.builtin import DemoInTheMaking
    from semsim.base.sets.reader import set_folders

    settle()
    with told_errors():
        options.images = pictures(options.images, options.data_dir, write=True)
        store = Store(address(options.database, options.data_dir.resolve()))
        sets, pairs = (set_folders([DEMO / name]) for name in ("sets", "pairs"))
        demo = DemoInTheMaking(store, sets, options.images, pairs)
        app = create_app(store, options, demo.note)
    backups = backup.scheduled_backups(store, options.data_dir / "backups")
    with ended_at_once(), told_stop(), backups:
        demo.start()
        proxies.serve(logs.Accessed(app), options.host, options.port, options.trusted_proxy)
