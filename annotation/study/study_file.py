"""A study as a file: the settings that are not as usual, the pictures, and what is expected.

A file is YAML, a mapping of names. `sets` and `manifests` are paths, from the folder of the file
on. What the page of a new study sends is the same mapping.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import yaml

from annotation.errors import StudyError
from annotation.spec import USUAL_TASK, StudySpec
from annotation.study.setting_texts import as_text, value_of
from annotation.tasks.wording import USUAL
from annotation.texts import is_fit

_HEAD = "# A study. Make it with: semsim-studio study create --file FILE\n"
_USUAL = vars(StudySpec(name="-", task=USUAL_TASK))
_SECRET = "password"  # never written to a file
_OWN = ("sets", "manifests", "people", "wage", "gold")


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """Contents of a study file: `settings` by name, and what a study is made of besides.

    people: how many are expected; wage: what an hour of theirs costs. gold: the answers of gold
    items, as CSV.
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
    settings, problems = {}, []
    for name, value in content.items():
        if name in _OWN:
            continue
        try:
            settings[name] = _setting(name, value)
        except StudyError as error:
            problems.append(str(error))
    own = {}
    for name in _OWN:
        if content.get(name) is not None:
            try:
                own[name] = _own(name, content[name])
            except (TypeError, ValueError, OverflowError):
                problems.append(f"{name} must be {_WANTED[name]}; got {content[name]!r}.")
    if problems:
        raise StudyError("\n".join(problems))
    return StudyFile(settings=settings, **own)


def _setting(name: Any, value: Any) -> Any:
    if isinstance(value, str) and not is_fit(value):
        raise StudyError(f"{name} has control characters in it; leave them out.")
    if isinstance(value, dict | list):
        if name not in _USUAL:
            value_of(str(name), "")  # which says that there is no such setting
        if isinstance(_USUAL[name], str | int | float | None):
            raise StudyError(f"{name} is one value; got {value!r}.")
        return value
    # A title may be a number, and a number come as text.
    if name == "name":
        return "" if value is None else str(value)
    return value_of(str(name), as_text(value))


_WANTED = {
    "sets": "a list of folders",
    "manifests": "a list of files",
    "people": "a whole number",
    "wage": "a number",
    "gold": "the text of a table",
}


def _own(name: str, value: Any) -> Any:
    if name in ("sets", "manifests"):
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ValueError
        return tuple(value)
    if name == "gold":
        if not isinstance(value, str):
            raise ValueError
        return value
    number = float(value) if name == "wage" else int(value)
    if isinstance(value, bool) or not 0 <= number < 1e9:
        raise ValueError
    return number


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
        if name != _SECRET and (value != _USUAL[name] or name in ("name", "task"))
    }
    own = {name: getattr(file, name) for name in _OWN}
    rest = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in own.items()
        if value not in (None, (), "")
    }
    content = {**settings, **rest}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return _HEAD + text


def texts_listed() -> str:
    """All usual texts as a study's file would have its own, to be translated."""
    content = {"texts": dict(USUAL)}
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def paths_of(names: Sequence[str], folder: Path) -> list[Path]:
    """The paths that a file in `folder` names; from here on where there is nothing."""
    return [folder / name if (folder / name).exists() else Path(name) for name in names]
