"""Records that outlive a process: each is written with its format's number, and read by it.

A record is a JSON object with its format as its first entry; a file of tensors has it among its
facts. What is kept under a key has the format in the key, so that another is not found.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.base import UserError
from semsim.base.whole import write_json

# The formats of what more than one part of the product knows.
RECONSTRUCTION_SET, CASES = "semsim-reconstruction-set/1", "semsim-cases/1"
_SHOWN = 40  # signs of what came instead


def as_record(form: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` as the record that is kept of it. form: its format, as "semsim-job/1"."""
    return {"format": form, **content}


def write_record(path: Path, form: str, content: Mapping[str, Any], *, sort: bool = False) -> None:
    """Write `content` as a record of the format `form`, as `write_json` does."""
    write_json(path, as_record(form, content), sort=sort)


def read_record(path: Path, form: str, raises: type[UserError]) -> dict[str, Any]:
    """Return what `write_record` was given; `raises` as of `read_object` and `check_format`."""
    record = read_object(path, raises)
    check_format(record.pop("format", None), form, path, raises)
    return record


def read_object(path: Path, raises: type[UserError]) -> dict[str, Any]:
    """The object in a JSON file; `raises` where it is missing, broken or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise raises(f"There is no {path.name} in {path.parent}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise raises(f"{path} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise raises(f"{path} holds a {type(content).__name__}; expected an object.")
    return content


def check_format(found: object, form: str, where: object, raises: type[UserError]) -> None:
    """Raise `raises` unless `found`, the format of what lies at `where`, is `form`."""
    if found != form:
        told = repr(found)
        told = "no format" if found is None else f"format {told[:_SHOWN]}{told[_SHOWN:] and '…'}"
        raise raises(f"{where} has {told}; expected {form!r}. Make it again with this version.")
