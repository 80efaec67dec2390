"""Messages between server and clients, really serialised, so that bytes are counted."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from semsim.errors import DataError

Kind = Literal["model", "update"]
_HEADER = 8  # bytes of the length with which safetensors begins


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message.

    kind: "model" goes from the server to `client`, "update" from it to the server. round counts
    from 1. payload: a safetensors file.
    """

    kind: Kind
    round: int
    client: int
    payload: bytes

    def tensors(self) -> dict[str, Tensor]:
        """What is in the payload, by name."""
        return load(self.payload)


Tap = Callable[[Message], None]


@dataclass
class Transport:
    """Carries messages, counts their bytes, and shows each to whoever listens.

    tap: told of every message that passes. keep: rounds whose messages are kept in `kept`.
    down, up: bytes from the server and to it.
    """

    tap: Tap | None = None
    keep: frozenset[int] = frozenset()
    kept: list[Message] = field(default_factory=list)
    down: int = 0
    up: int = 0

    def send(self, message: Message) -> bytes:
        """Deliver `message`; returns its payload as the receiver gets it."""
        if message.kind == "model":
            self.down += len(message.payload)
        else:
            self.up += len(message.payload)
        if message.round in self.keep:
            self.kept.append(message)
        if self.tap is not None:
            self.tap(message)
        return message.payload


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors as the bytes of a safetensors file."""
    payload: bytes = save({name: value.detach().contiguous() for name, value in tensors.items()})
    return payload


def unpack(payload: bytes) -> dict[str, Tensor]:
    """The inverse of `pack`; `DataError` where the bytes are not a safetensors file."""
    try:
        return load(payload)
    except SafetensorError as error:
        raise DataError(f"A message is not a readable safetensors payload ({error}).") from error


def numbers_in(payload: bytes) -> int:
    """How many tensor elements a payload holds, read from its header."""
    length = int.from_bytes(payload[:_HEADER], "little")
    header = json.loads(payload[_HEADER : _HEADER + length])
    entries = (entry for name, entry in header.items() if name != "__metadata__")
    return sum(math.prod(entry["shape"]) for entry in entries)
