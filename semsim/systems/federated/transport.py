"""Messages of server and clients, really serialised, so that bytes are counted, and their masks.

Zero-sum masks sum to zero over all clients, from secrets that the server cannot know. Every pair of
clients agrees on a secret by X25519 (RFC 7748), and the server only carries their public keys; the
one adds what the other subtracts (Bonawitz et al. 2017, https://doi.org/10.1145/3133956.3133982).
Masked updates are whole numbers modulo 2⁶⁴, so that a mask hides whatever the update is, and the
masks cancel to the last digit.

The server is taken as in the paper, honest but curious: one that handed out keys of its own
making would learn every update, since nothing here says whose a public key is.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from semsim.base.errors import DataError, MissingExtraError

try:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ModuleNotFoundError as error:
    raise MissingExtraError("A key of federated clients", "attacks") from error

Kind = Literal["model", "update", "key", "keys"]
_DOWN = ("model", "keys")  # from the server
_HEADER = 8  # bytes of the length with which safetensors begins


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message.

    Attributes:
        kind: "model" goes from the server to `client`, "update" from it to the server. Before a
            training with zero-sum masks a "key" goes to the server and all clients' "keys" from it.
            round counts from 1.
        payload: A safetensors file.
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

    Attributes:
        tap: Told of every message that passes.
        keep: Rounds whose messages are kept in `kept`.
        down, up: Bytes from the server and to it.
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


_KEY = 32  # bytes
_NONCE = bytes(16)  # of ChaCha20; no key is used twice
_WORD = 8  # bytes of a masked number


class Agreement:
    """One client's side: its private key, and with the others' public keys a secret a pair.

    Attributes:
        number: Of this client, from 0.
        public: Its public key, 32 bytes, which all parties see.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()
        self._secrets: dict[int, bytes] = {}

    def agree(self, keys: Sequence[bytes]) -> None:
        """Take in all clients' public keys, in order; `DataError` where they cannot be those."""
        if len(keys) < 2 or len(set(keys)) < len(keys):
            raise DataError("Zero-sum masks need 2 clients or more, each with a key of its own.")
        if self.number >= len(keys) or keys[self.number] != self.public:
            raise DataError(f"The public keys do not hold client {self.number}'s own.")
        everybody = b"".join(keys)
        self._secrets = {
            other: self._shared(key, everybody)
            for other, key in enumerate(keys)
            if other != self.number
        }

    def hidden(
        self, update: Mapping[str, Tensor], digits: int, occasion: bytes
    ) -> dict[str, Tensor]:
        """`update` times 2^`digits`, rounded, plus this client's mask; int64 of the same shapes.

        Raises `DataError` before `agree`, and where a number is too large.

        Args:
            occasion: What all clients know of this one sum and of no other. Masks depend on it, so
                that no two answers share one.
        """
        if not self._secrets:
            raise DataError("Clients agree on their secrets before they send what masks hide.")
        names = sorted(update)
        plain = torch.cat([update[name].detach().double().flatten() for name in names])
        words = _whole(plain, digits, len(self._secrets) + 1)
        for other, secret in self._secrets.items():
            mask = _stream(secret, occasion, len(words))
            words = words + mask if self.number < other else words - mask
        parts = torch.from_numpy(words.view(np.int64)).split([update[n].numel() for n in names])
        return {
            name: part.reshape_as(update[name]) for name, part in zip(names, parts, strict=True)
        }

    def _shared(self, key: bytes, everybody: bytes) -> bytes:
        try:
            met = self._private.exchange(X25519PublicKey.from_public_bytes(key))
        except ValueError as error:
            raise DataError(f"A public key is not one of X25519 ({error}).") from error
        return HKDF(SHA256(), _KEY, salt=None, info=b"semsim zero-sum pair" + everybody).derive(met)


def occasion_of(round_number: int, payload: bytes) -> bytes:
    """Return bytes that identify one sum by its round and model, the same for all clients."""
    return round_number.to_bytes(8, "big") + hashlib.sha256(payload).digest()


def summed(
    updates: Sequence[Mapping[str, Tensor]], digits: int, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The sum of all clients' hidden updates, in which the masks cancel, by name.

    Args:
        updates: Int64 words modulo 2⁶⁴, tensors of one name of one shape.
        digits, dtype: As of `as_numbers`.
    """
    total = {name: value.numpy().view(np.uint64).copy() for name, value in updates[0].items()}
    for update in updates[1:]:
        for name, value in update.items():
            total[name] += value.numpy().view(np.uint64)
    words = {name: torch.from_numpy(value.view(np.int64)) for name, value in total.items()}
    return as_numbers(words, digits, dtype)


def as_numbers(words: Mapping[str, Tensor], digits: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """Hidden updates or their sum as the numbers they stand for, of the same shapes.

    Args:
        words: Int64, by name.
        digits: Binary ones after the point.
        dtype: Of what is returned.
    """
    return {name: (value.double() / 2.0**digits).to(dtype) for name, value in words.items()}


def _whole(plain: Tensor, digits: int, clients: int) -> np.ndarray:
    """Numbers as whole ones modulo 2⁶⁴, such that the sum of as many as `clients` still fits."""
    bound = 2.0 ** (62 - digits) / clients
    if not bool((plain.abs() < bound).all()):  # also what is not finite
        raise DataError(
            f"An update holds {plain.abs().max():.3g}, and zero-sum masks with zero_sum_digits="
            f"{digits} hide numbers below {bound:.3g}. Take fewer digits, or a smaller lr if the "
            "training diverges."
        )
    return (plain * 2.0**digits).round().to(torch.int64).numpy().view(np.uint64)


def _stream(secret: bytes, occasion: bytes, count: int) -> np.ndarray:
    """`count` numbers modulo 2⁶⁴ that only the pair can draw, once."""
    key = HKDF(SHA256(), _KEY, salt=None, info=b"semsim zero-sum mask" + occasion).derive(secret)
    drawn = Cipher(algorithms.ChaCha20(key, _NONCE), mode=None).encryptor()
    return np.frombuffer(drawn.update(bytes(_WORD * count)), dtype="<u8")
