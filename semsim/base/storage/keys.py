"""The key of settings: equal settings, equal key, on every machine and in every process."""

import hashlib
import json
from dataclasses import asdict
from typing import Any


def key_of(settings: Any, digits: int = 64) -> str:
    """The first hexadecimal `digits` of the SHA-256 of `settings` as JSON with sorted names.

    settings: anything JSON can say; a dataclass counts as its fields, a tuple as a list.
    """
    text = json.dumps(settings, default=asdict, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
