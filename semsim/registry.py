"""A plug-in is a frozen dataclass; a registry maps its public name to the class."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

from semsim.errors import SettingsError, UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """An immutable mapping from public names to plug-ins that names the alternatives on a miss."""

    def __init__(self, kind: str, entries: Mapping[str, T]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries))
            raise UnknownNameError(f"No {self.kind} is called {name!r}. Known: {known}.") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def build(registry: Mapping[str, Any], name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """The plug-in `name` with `settings`; `SettingsError` names a setting it does not have."""
    plugin = registry[name]
    settings = dict(settings or {})
    known = [f.name for f in fields(plugin)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise SettingsError(f"{name!r} has no setting {unknown[0]!r}. It has: {', '.join(known)}.")
    return plugin(**settings)
