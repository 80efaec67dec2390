"""List and call commands, set how much they print, and end them on Ctrl-C."""

import atexit
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from semsim.base.storage.places import PROGRAM, home, toml_of
from semsim.base.words import listed

STOPPED = 130  # after Ctrl-C, as shells have it
CODES = (
    "Exit codes: 0 everything was done, 1 only a part, 2 an error, 3 nothing was reconstructed, "
    f"{STOPPED} stopped by Ctrl-C."
)
ENVIRONMENT = (
    "Environment: SEMSIM_HOME is the folder of data and checkpoints; SEMSIM_DATABASE, "
    "SEMSIM_IMAGES and SEMSIM_ROOT_PATH replace --database, --image-store and --root-path. "
    "docs/how-to/places.md has the others."
)
LOGS = [logging.getLogger(half) for half in ("annotation", "semsim")]
_EXTRA = "semsim.extra"  # in a context: brings what the command imports
# What another parser reads, also the options that every command has.
PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class Late(NamedTuple):
    """A command that is not imported yet: a function or an application in a module."""

    module: str
    name: str
    help: str  # as the list of commands shows it
    passed_on: bool = False  # whether the function parses what follows, its `ctx.args`


def command_line(
    version: str, about: str, commands: Mapping[str, Late], completes: bool = False
) -> typer.Typer:
    """Return the application that has `commands`, each imported when it is asked for.

    Together they take seconds to import.

    Args:
        completes: Whether it is installed under its name, by which a shell completes it.
    """
    app = typer.Typer(
        cls=type("Listed", (Commands,), {"late": commands}),
        help=about,
        epilog=f"{CODES}\n\n{ENVIRONMENT}",
        no_args_is_help=True,
        add_completion=completes,
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    def told(wanted: bool) -> None:
        if wanted:
            typer.echo(f"SemSim Studio {version}")
            raise typer.Exit

    @app.callback()
    def main(
        version: Annotated[
            bool,
            typer.Option("--version", callback=told, is_eager=True, help="Print it and exit."),
        ] = False,
    ) -> None:
        del version

    main.__doc__ = about
    return app


class Commands(TyperGroup):
    """Knows its commands by name and help alone; each takes -v and -q.

    Usage errors are told like all others, in a line that begins with "Error:".
    """

    late: Mapping[str, Late] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {name: TyperCommand(name, help=one.help) for name, one in self.late.items()}
        self.params = [*self.params, *_loudness()]

    def main(self, *args: Any, **kwargs: Any) -> Any:
        self._help_mode, self.rich_markup_mode = self.rich_markup_mode, None
        try:
            with _told_log():
                return super().main(*args, **kwargs)
        except SystemExit as end:
            if not (args or kwargs.get("args")) and end.code == STOPPED:  # a process of its own
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # so pressed again it ends at once
            raise

    def invoke(self, ctx: Any) -> Any:
        with told_stop(), _told_absence(ctx.meta), _told_limits():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        mode = getattr(self, "_help_mode", self.rich_markup_mode)
        known = TyperGroup(
            commands=dict(self.commands),
            params=self.params,
            help=self.help,
            epilog=self.epilog,
            rich_markup_mode=mode,
        )
        _plain(known)
        known.format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] == "help":  # `help score` is short for `score --help`
            if not args[1:]:
                typer.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.late:
            return None
        late = self.late[cmd_name]
        if ctx is not None:
            ctx.meta[_EXTRA] = "all" if late.module.startswith("semsim.") else "studio"
        found = getattr(import_module(late.module), late.name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name, context_settings=PASSED_ON if late.passed_on else {})(found)
            found = alone
        found._add_completion = False  # it would complete a program that is called as this file
        command = get_command(found)
        command.name = cmd_name
        if not late.passed_on:
            _complete(command, cmd_name)
        return command


def _louder(steps: int) -> None:
    for log in LOGS:
        log.setLevel(max(log.getEffectiveLevel() - 10 * steps, logging.DEBUG))


def _quieter(wanted: bool) -> None:
    for log in LOGS if wanted else ():
        log.setLevel(logging.ERROR)


def _loudness() -> list[Any]:
    """-v and -q, which a command and the list of commands take."""

    def options(
        verbose: Annotated[
            int,
            typer.Option(
                "--verbose",
                "-v",
                count=True,
                callback=_louder,
                expose_value=False,
                show_default=False,
                help="Print more on standard error, with the origin of errors; -vv most.",
            ),
        ] = 0,
        quiet: Annotated[
            bool,
            typer.Option(
                "--quiet",
                "-q",
                callback=_quieter,
                expose_value=False,
                help="Print only errors on standard error; of a list, only names.",
            ),
        ] = False,
    ) -> None:
        del verbose, quiet

    alone = typer.Typer(add_completion=False)
    alone.command()(options)
    return list(get_command(alone).params)


def _plain(command: Any) -> None:
    """Show an argument in capitals, an option with the sort of its value, a flag with neither."""
    for one in command.get_params(typer.Context(command, help_option_names=["--help", "-h"])):
        kind, name = one.type_descriptor, (one.metavar or one.name).upper()
        if one.param_type_name == "argument":
            one.metavar = f"{name}..." if one.nargs != 1 and "..." not in name else name
            usage = one.metavar if one.required else f"[{one.metavar}]"
            one._usage_display_name, one.display_type_rich = lambda u=usage: u, lambda ctx: ""
        elif one.metavar is None:
            of = _value_type(kind)
            sort = "PATH" if of is Path else "NUMBER" if of in (int, float) else "TEXT"
            sort = "|".join(map(str, kind.choices)) if kind.choices else sort
            one.metavar = "" if one.is_flag or one.count else sort
        limits = _limits(one) if one.metavar else ""
        one._get_number_range_help_str = lambda limits=limits: limits


def _complete(command: Any, words: str) -> None:
    """Give a command, or each in a group, -v, -q, its examples and defaults of any machine."""
    if isinstance(command, Commands):  # completes its own
        return
    for name, one in getattr(command, "commands", {}).items():
        _complete(one, f"{words} {name}")
    command.params = [*command.params, *_loudness()]
    _plain(command)
    for one in command.params:
        if one.name == "as_json":
            one.help = f"{one.help}: an object with {listed([*parts_of(words)])}."
        if isinstance(one.default, Path) and one.default.is_relative_to(home()):
            one.show_default = (
                f"{one.default.relative_to(home())} in SEMSIM_HOME or the program's folder"
            )
    known, steps = toml_of(__package__, "examples.toml"), words.split()
    calls = known.get(words) or [one.replace("{}", steps[-1]) for one in known.get(steps[0], ())]
    first, _, rest = (command.help or "").partition("\n\n")
    shown = "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {call}" for call in calls)])
    command.help = "\n\n".join([first, *([shown] if calls else []), *([rest] if rest else [])])


def parts_of(words: str) -> dict[str, str]:
    """Return the parts of the JSON that a command prints, by name its fields with their types."""
    known = toml_of(__package__, "parts.toml")
    found = known[words] if words in known else known[words.partition(" ")[0]]
    if isinstance(found, dict):
        return found
    others = [found] if isinstance(found, str) else found
    return {name: of for one in others for name, of in parts_of(one).items()}


@contextmanager
def _told_log() -> Iterator[None]:
    """Send the log to standard error within the block, from the level on that -v and -q name."""
    shown, before = logging.StreamHandler(), [log.level for log in LOGS]
    shown.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    for log in LOGS:
        log.addHandler(shown)
        log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for log, level in zip(LOGS, before, strict=True):
            log.removeHandler(shown)
            log.setLevel(level)


@contextmanager
def _told_absence(meta: Mapping[str, Any]) -> Iterator[None]:
    """A library that is not installed is an error that names the extra which brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("annotation", "semsim"):
            raise  # no library: a mistake of ours
        how = f'{error.name} is not installed: pip install "semsim-studio[{meta[_EXTRA]}]".'
        LOGS[0].info("Where the error below comes from", exc_info=error)
        typer.echo(f"Error: {how if error.name else error}", err=True)
        raise SystemExit(2) from error


@contextmanager
def _told_limits() -> Iterator[None]:
    """Name what an option may be, and what was given, in our words and not in a library's."""
    try:
        yield
    except typer.BadParameter as error:
        found: list[Any] = getattr(error.__cause__, "errors", list)()
        one: Any = error.param
        if found and one is not None:
            error.message = f"it must be {_allowed(one)}; got {str(found[0]['input'])!r}."
        raise


def _allowed(one: Any) -> str:
    kind = one.type_descriptor
    if kind.choices:
        return f"one of {', '.join(map(str, kind.choices))}"
    of = _value_type(kind)
    sort = {int: "a whole number", float: "a number", Path: "a path"}.get(of, "a text")
    return " of ".join(filter(None, [sort, _limits(one)]))


def _value_type(kind: Any) -> Any:
    return (get_args(kind.annotation) or (kind.annotation,))[0]


def _limits(one: Any) -> str:
    least, most = one.min, one.max
    if (least, most) == (None, None):
        return ""
    return f"at least {least:g}" if most is None else f"{least:g} to {most:g}"


@contextmanager
def told_stop() -> Iterator[None]:
    """Ctrl-C, also at a question, ends in a sentence and `STOPPED`; the exception may add one."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort) as end:
        if isinstance(end, typer.Abort) and not isinstance(end.__context__, KeyboardInterrupt):
            raise  # the answer was no
        typer.echo(f"\nStopped by Ctrl-C. {end}".rstrip(), err=True)
        raise SystemExit(STOPPED) from None


@contextmanager
def ended_at_once() -> Iterator[None]:
    """End the process where the block exits with a code, whatever its threads compute.

    An interpreter that closes under a thread in compiled code aborts now and then.
    """
    try:
        yield
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        atexit._run_exitfuncs()  # as the interpreter does: logs and streams are written
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(end.code)
