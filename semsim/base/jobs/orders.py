"""Order of a job: a dataclass that is kept as JSON."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from semsim.base.errors import SettingsError

T = TypeVar("T")
P = TypeVar("P", bound="Place")
_PLAIN: Mapping[Any, str] = MappingProxyType(
    {str: "a text", int: "a whole number", float: "a number", bool: "true or false", Path: "a text"}
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Folder where a job finds and leaves things, and its device: auto, cpu, cuda or mps.

    Attributes:
        data: The data folder.
    """

    data: Path
    device: str = "auto"

    def resolved(self: P) -> P:
        """The same for a process that starts in another folder."""
        return absolute(self)


def absolute(value: T) -> T:
    """The same value with whole paths, also in the dataclasses and tuples it is made of."""
    made: Any = value
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: absolute(getattr(value, field.name)) for field in fields(value)}
        made = replace(value, **own)
    elif isinstance(value, tuple):
        made = tuple(map(absolute, value))
    elif isinstance(value, Path):
        made = value.resolve()
    return cast(T, made)


def to_record(value: Any) -> Any:
    """`value` ready for JSON: dataclasses and mappings as objects, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_record(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_record(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_record(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def from_record(kind: type[T], record: Mapping[str, Any], *, by_hand: bool = False) -> T:
    """The `kind` of which `to_record` made `record`.

    Its fields are plain values, tuples of them, paths and dataclasses, or None where they may be.

    Args:
        by_hand: Whether people wrote it, who leave out what has its default.

    Raises:
        SettingsError: For a field there is not, for one that is missing, and for a value of another
            kind.
    """
    if not isinstance(record, Mapping):
        raise SettingsError(f"Expected the settings of {kind.__name__}; got {record!r}.")
    hints = _hints(kind)  # type: ignore[arg-type]  # a class
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    if unknown := sorted(set(record) - known):
        raise SettingsError(
            f"{kind.__name__} has no setting {unknown[0]!r}. It has: {', '.join(sorted(known))}."
        )
    if not by_hand and (left_out := sorted(known - set(record))):
        raise SettingsError(f"This is no {kind.__name__}: it lacks {', '.join(left_out)}.")
    try:
        return kind(**{n: _value(hints[n], one, n, by_hand) for n, one in record.items()})
    except TypeError as error:
        raise SettingsError(f"This is no {kind.__name__}: {error}.") from error


_hints = functools.cache(get_type_hints)


def changed(base: T, changes: Mapping[str, Any]) -> T:
    """Return `base` with `changes`, plain values by field; of a part, what they do not name stays.

    Raises `SettingsError` as `from_record` does.
    """
    return from_record(type(base), _merged(to_record(base), changes))


def _merged(record: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    parts = {name: one for name, one in changes.items() if isinstance(one, Mapping)}
    return {**record, **changes, **{n: _merged(record[n], one) for n, one in parts.items()}}


def _value(hint: Any, value: Any, name: str, by_hand: bool) -> Any:
    """`value` as `hint` has it; `TypeError` that says what `name` must be where it is not that."""
    kinds = get_args(hint)
    if NoneType in kinds:
        return None if value is None else _value(kinds[0], value, name, by_hand)
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_value(kinds[0], one, f"each of {name}", by_hand) for one in value)
        raise TypeError(f"{name} must be a list; got {value!r}")
    if isinstance(hint, type) and is_dataclass(hint):
        return from_record(hint, value, by_hand=by_hand)
    if hint in _PLAIN and not _is_plain(hint, value):
        raise TypeError(f"{name} must be {_PLAIN[hint]}; got {value!r}")
    return Path(value) if hint is Path else _tuples(value)


def _is_plain(hint: type, value: Any) -> bool:
    if isinstance(value, bool):  # which Python counts as a number
        return hint is bool
    kinds: dict[type, type | tuple[type, ...]] = {float: (int, float), Path: str}
    return isinstance(value, kinds.get(hint, hint))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
