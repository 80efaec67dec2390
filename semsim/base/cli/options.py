"""Options that several commands have, stated once, and those that the user really gave."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from semsim.base.cli.terminal import told_errors
from semsim.base.registry import help_of

T = TypeVar("T")


def taking(**makers: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A command or maker with the options of `makers` too: each makes the argument of its name.

    Errors of makers and command are reported as for all commands.
    """

    def decorated(command: Callable[..., T]) -> Callable[..., T]:
        asked = {name: _options(maker) for name, maker in makers.items()}

        @functools.wraps(command)
        def told(**given: Any) -> T:
            with told_errors():
                for name, maker in makers.items():
                    own = [one.name for one in asked[name] if one.name in given]
                    given[name] = maker(**{option: given.pop(option) for option in own})
                return command(**given)

        parameters = [
            one for parameter in _options(command) for one in asked.get(parameter.name, [parameter])
        ]
        told.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        told.__annotations__ = {one.name: one.annotation for one in parameters}
        return told

    return decorated


def settings_of(
    kind: Callable[..., T],
    options: Mapping[str, Any] | None = None,
    called: Mapping[str, str] | None = None,
    **read: Callable[[str], Any],
) -> Callable[..., T]:
    """A maker for `taking`: `kind` with an option for each field in `options`.

    Args:
        options: Typer's, by the field's name; without, of every field that is a `registry.setting`
            with a label, in its words. Their defaults are the fields'.
        called: The option of a field that is not called like it.
        read: Parses the text of a field whose option is a text, "all" where nothing is given.
    """
    if options is None:
        named = {one: [f"--{option}"] for one, option in (called or {}).items()}
        options = {
            one.name: typer.Option(*named.get(one.name, ()), help=help_of(kind, one.name))
            for one in fields(kind)  # type: ignore[arg-type]
            if one.metadata.get("label")
        }

    def made(**values: Any) -> T:
        return kind(**{k: read[k](value) if k in read else value for k, value in values.items()})

    defaults = {one.name: one.default for one in fields(kind)}  # type: ignore[arg-type]
    defaults |= dict.fromkeys(read, "all")
    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_option(name, defaults[name], option) for name, option in options.items()]
    )
    return made


def changes_of(kind: type, **called: str) -> Callable[..., dict[str, Any]]:
    """A maker for `taking`: the values of given options of a `kind`, by field.

    Args:
        called: The option of each field that has one; its help is the field's own text. A field of
            several values takes its option as often as there are values.
    """
    hints = get_type_hints(kind)
    names = {option: name for name, option in called.items()}

    def made(**values: Any) -> dict[str, Any]:
        given = {names[one]: tuple(v) if isinstance(v, list) else v for one, v in values.items()}
        return {name: value for name, value in given.items() if value not in (None, ())}

    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_change(option, hints[name], help_of(kind, name)) for name, option in called.items()]
    )
    return made


def _change(option: str, kind: Any, text: str) -> inspect.Parameter:
    if get_origin(kind) is tuple:
        kind, text = list[get_args(kind)[0]], f"{text} Repeatable."  # type: ignore[misc]
    asked = Annotated[kind | None, typer.Option(help=text)]
    return inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=asked)


def _option(name: str, default: Any, option: Any) -> inspect.Parameter:
    needed = default is MISSING
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if needed else default,
        annotation=Annotated[str if needed else type(default), option],
    )


def given(ctx: typer.Context, order: Any, **called: str) -> dict[str, Any]:
    """The fields of `order` whose options were typed.

    Args:
        called: Options not named as their field.
    """
    options = {field.name: called.get(field.name, field.name) for field in fields(order)}
    return {
        name: getattr(order, name)
        for name, option in options.items()
        if (source := ctx.get_parameter_source(option)) and source.name == "COMMANDLINE"
    }


def _options(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in found]
