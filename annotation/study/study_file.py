"""A study as a file: the settings that are not as usual, the pictures, and what is expected.

A file is YAML, a mapping of names. `sets` and `manifests` are paths, from the folder of the file
on. What the page of a new study sends is the same mapping.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import yaml

from annotation.errors import StudyError
from annotation.spec import SETTINGS, StudySpec, as_text, value_of
from annotation.tasks.wording import USUAL
from annotation.texts import is_fit

_HEAD = "# A study. Make it with: semsim-studio study create --file FILE\n"
_SECRET = "password"  # never written to a file


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """Contents of a study file: `settings` by name, and what a study is made of besides.

    Attributes:
        people: How many are expected.
        wage: What an hour of theirs costs.
        gold: The answers of gold items, as CSV.
    """

    settings: Mapping[str, Any]
    sets: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    people: int | None = None
    wage: float | None = None
    gold: str = field(default="", repr=False)

    def spec(self, **instead: Any) -> StudySpec:
        """The settings, some replaced; raises `StudyError` for what no study can have."""
        return StudySpec(**{"name": "", **self.settings, **instead})

    @property
    def answers(self) -> StringIO | None:
        """The answers of gold items as `study.create.examine` takes them."""
        return StringIO(self.gold.strip()) if self.gold.strip() else None


class _Loader(yaml.SafeLoader):
    """Values are the text that stands there: a password 007 is no 7, and no name is none.

    Without aliases, by which a kilobyte would become gigabytes.
    """

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in known if tag.endswith(":null")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a study's file has no aliases, such as *name.")
        return super().compose_node(parent, index)


def read_text(text: str) -> StudyFile:
    """The study that `text`, YAML, describes; raises `StudyError` with every problem."""
    try:
        content = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise StudyError(f"This is no YAML: {error}") from None
    if not isinstance(content, dict):
        raise StudyError("A study's file is a list of names with values, such as `name: Symbols`.")
    return of_mapping(content)


def of_mapping(content: Mapping[Any, Any]) -> StudyFile:
    """The study that names and values describe; raises `StudyError` with every problem."""
    settings, own, problems = {}, {}, []
    for name in (*(one for one in content if one not in _OWN), *_OWN):
        try:
            if name not in _OWN:
                settings[name] = _setting(name, content[name])
            elif content.get(name) is not None:
                own[name] = _own(name, content[name])
        except StudyError as error:
            problems.append(str(error))
    if problems:
        raise StudyError("\n".join(problems))
    return StudyFile(settings=settings, **own)


def _setting(name: Any, value: Any) -> Any:
    if isinstance(value, str) and not is_fit(value):
        raise StudyError(f"{name} has control characters in it; leave them out.")
    if isinstance(value, dict | list):
        if name not in SETTINGS:
            value_of(str(name), "")  # which says that there is no such setting
        if SETTINGS[name].of is not Mapping:
            raise StudyError(f"{name} is one value; got {value!r}.")
        return value
    # A title may be a number, and a number come as text.
    if name == "name":
        return "" if value is None else str(value)
    return value_of(str(name), as_text(value))


def _own(name: str, value: Any) -> Any:
    read, wanted = _OWN[name]
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError):
        raise StudyError(f"{name} must be {wanted}; got {value!r}.") from None


def _paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError
    return tuple(value)


def _table(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _amount(value: Any, kind: type[float] = float) -> float:
    number = kind(value)
    if isinstance(value, bool) or not 0 <= number < 1e9:
        raise ValueError
    return number


# What a file holds beside the settings: how it is read, and what it should be.
_OWN: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "sets": (_paths, "a list of folders"),
    "manifests": (_paths, "a list of files"),
    "people": (partial(_amount, kind=int), "a whole number"),
    "wage": (_amount, "a number"),
    "gold": (_table, "the text of a table"),
}


class _Dumper(yaml.SafeDumper):
    """Writes long texts as they are read."""


def _as_read(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _as_read)


def written(file: StudyFile) -> str:
    """`file` as `read_text` reads it, without what is as usual and without the password."""
    settings = {
        name: value.value if isinstance(value, Enum) else value
        for name, value in file.settings.items()
        if name != _SECRET and value != SETTINGS[name].usual
    }
    own = {name: value for name in _OWN if (value := getattr(file, name)) not in (None, (), "")}
    rest = {name: list(one) if isinstance(one, tuple) else one for name, one in own.items()}
    return _HEAD + _as_yaml({**settings, **rest})


def texts_listed() -> str:
    """All usual texts as a study's file would have its own, to be translated."""
    return _as_yaml({"texts": dict(USUAL)})


def _as_yaml(content: Mapping[str, Any]) -> str:
    how: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 100}
    return str(yaml.dump(content, Dumper=_Dumper, **how))


def paths_of(names: Sequence[str], folder: Path) -> list[Path]:
    """The paths that a file in `folder` names; from here on where there is nothing."""
    return [folder / name if (folder / name).exists() else Path(name) for name in names]
