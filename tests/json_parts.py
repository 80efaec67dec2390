"""Holds what commands print as JSON against `semsim/base/cli/parts.toml`."""

import inspect
import json
import re
from typing import Any

from typer._click.globals import get_current_context

from annotation.cli.main import SERVER, STUDY
from semsim.base.cli.commands import parts_of
from semsim.cli.main import COMMANDS

KINDS: dict[str, Any] = {"text": str, "number": (int, float), "list": list, "object": dict}


def words_now() -> str:
    """Return the words of the command that runs; what parses its options by itself is `doctor`."""
    context = get_current_context(silent=True)
    if context is None:
        return "doctor"
    made = inspect.unwrap(context.command.callback)
    for name, late in {**STUDY, **SERVER, **COMMANDS}.items():
        if late.module == made.__module__ and late.name in ("app", made.__name__):
            return f"{name} {context.info_name}" if late.name == "app" else name
    return f"reproduce {context.info_name}"


def differing(parts: Any, words: str) -> list[str]:
    """Return where the JSON of a command has other parts, fields or types than are declared."""
    found, declared = [], parts_of(words)
    for name, part in json.loads(json.dumps(parts, default=str)).items():
        text = declared.get(name)
        if text is None:
            found.append(f"{words}: no part {name}")
            continue
        fields = [one.split(" ") for one in text.removeprefix("object: ").split(", ")]
        alone = text.startswith("object: ")
        if alone != (part is None or isinstance(part, dict)):
            found.append(f"{words}: {name} is {'no' if alone else 'an'} object")
            continue
        for row in [part or {}] if alone and part else part or []:
            for field in {*row, *(one for one, _ in fields if "<" not in one)}:
                kind = _kind(field, fields)
                if not _is(row.get(field), kind):
                    found.append(f"{words}: {name}.{field} is {row.get(field)!r}, not {kind}")
    return list(dict.fromkeys(found))


def _kind(field: str, fields: list[list[str]]) -> str:
    """Return the declared type of a field; <…> in a declared name stands for anything."""
    known = dict(fields)
    if field in known:
        return known[field]
    forms = ((re.sub("<.*?>", ".+", one), kind) for one, kind in fields if "<" in one)
    return next((kind for form, kind in forms if re.fullmatch(form, field)), "undeclared")


def _is(value: Any, kind: str) -> bool:
    if value is None:
        return kind.endswith("?")
    if kind.startswith("boolean") or isinstance(value, bool):
        return isinstance(value, bool) and kind.startswith("boolean")
    return isinstance(value, KINDS.get(kind.removesuffix("?"), ()))
