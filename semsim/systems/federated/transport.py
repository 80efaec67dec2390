"""Messages between server and clients, really serialised, so that bytes are counted."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from semsim.base.errors import DataError

Kind = Literal["model", "update", "key", "keys"]
_DOWN = ("model", "keys")  # from the server
_HEADER = 8  # bytes of the length with which safetensors begins


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message.

    kind: "model" goes from the server to `client`, "update" from it to the server. Before a
    training with zero-sum masks a "key" goes to the server and all clients' "keys" from it. round
    counts from 1. payload: a safetensors file.
    """

    kind: Kind
    round: int
    client: int
    payload: bytes

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the payload by name, each in the shape in which it was sent."""
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
        if message.kind in _DOWN:
            self.down += len(message.payload)
        else:
            self.up += len(message.payload)
        if message.round in self.keep:
            self.kept.append(message)
        if self.tap is not None:
            self.tap(message)
        return message.payload


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors, of any shape and by name, as the bytes of a safetensors file."""
    payload: bytes = save({name: value.detach().contiguous() for name, value in tensors.items()})
    return payload


def unpack(payload: bytes) -> dict[str, Tensor]:
    """The inverse of `pack`, shapes as they were.

    Raises `DataError` where the bytes are not a safetensors file.
    """
    try:
        return load(payload)
    except SafetensorError as error:
        raise DataError(f"A message is not a readable safetensors payload ({error}).") from error


def pack_keys(keys: Sequence[bytes]) -> bytes:
    """Public keys, all of one length, in order."""
    rows = [torch.frombuffer(bytearray(key), dtype=torch.uint8) for key in keys]
    return pack({"keys": torch.stack(rows)})


def unpack_keys(payload: bytes) -> list[bytes]:
    """The inverse of `pack_keys`; `DataError` where there are none."""
    tensors = unpack(payload)
    if set(tensors) != {"keys"} or tensors["keys"].dim() != 2:
        raise DataError("A message with public keys was expected, and this is another.")
    return [bytes(row.tolist()) for row in tensors["keys"]]


def numbers_in(payload: bytes) -> int:
    """Return the number of tensor elements in a payload, read from its header."""
    length = int.from_bytes(payload[:_HEADER], "little")
    header = json.loads(payload[_HEADER : _HEADER + length])
    entries = (entry for name, entry in header.items() if name != "__metadata__")
    return sum(math.prod(entry["shape"]) for entry in entries)
