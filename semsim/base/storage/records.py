"""Records that outlive a process: each is written with its format's number, and read by it.

A record is a JSON object with its format as its first entry; a file of tensors has it among its
facts. What is kept under a key has the format in the key, so that another is not found.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from semsim.base.errors import SemsimError
from semsim.base.storage.atomic import write_json

# The formats of what more than one part of the product knows.
RECONSTRUCTION_SET, CASES = "semsim-reconstruction-set/1", "semsim-cases/1"
PEOPLE_ANSWER = "semsim-people-answer/1"
_SHOWN = 40  # signs of what came instead
_LONGEST = 500  # signs of what a parser says


def as_record(form: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` as the record that is kept of it.

    Args:
        form: Its format, as "semsim-job/1".
    """
    return {"format": form, **content}


def write_record(path: Path, form: str, content: Mapping[str, Any], *, sort: bool = False) -> None:
    """Write `content` as a record of the format `form`, as `write_json` does."""
    write_json(path, as_record(form, content), sort=sort)


def read_record(path: Path, form: str, raises: type[SemsimError]) -> dict[str, Any]:
    """Return what `write_record` was given; `raises` as of `read_object` and `check_format`."""
    record = read_object(path, raises)
    check_format(record.pop("format", None), form, path, raises)
    return record


def read_object(path: Path, raises: type[SemsimError]) -> dict[str, Any]:
    """The object in a JSON file; `raises` where it is missing, broken or something else."""
    if not path.exists():
        raise raises(f"{path} does not exist.")
    with guarded(path, raises):
        content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise raises(f"{path} holds a {type(content).__name__}; expected an object.")
    return content


@contextmanager
def guarded(
    path: Path | str, raises: type[SemsimError], told: str = "cannot be read: {}."
) -> Iterator[None]:
    """Raise `raises` for whatever reading the file at `path` within the block trips on.

    A file may come from any user, and parsers have no error of their own: one raises what it meets.
    What is no file, such as a pipe, which has no end, is not read.

    Args:
        told: What is wrong with the file and what to do about it, with the reason at {}. What no
            file can bring about, such as a name that is not defined, is raised as it is.
    """
    require_file(path, raises, told)
    try:
        yield
    except (raises, NameError, ImportError):
        raise
    except FileNotFoundError as error:
        raise raises(f"{error.filename or path} does not exist.") from error
    except Exception as error:
        why = str(getattr(error, "strerror", "") or error)[:_LONGEST] or type(error).__name__
        raise raises(f"{path} {told.replace('{}', why)}") from error


def require_file(path: Path | str, raises: type[SemsimError], told: str) -> None:
    """Raise `raises`, as `guarded` does, for what is no file, such as a pipe."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise raises(f"{path} {told.replace('{}', 'it is no file')}")


def require_folder(path: Path, raises: type[SemsimError], of: str = "") -> None:
    """Raise `raises` for what is no folder; `of` follows the word, such as " of originals"."""
    if not path.is_dir():
        raise raises(f"{path} {f'is not a folder{of}' if path.exists() else 'does not exist'}.")


def check_format(found: object, form: str, where: object, raises: type[SemsimError]) -> None:
    """Raise `raises` unless `found`, the format of what lies at `where`, is `form`."""
    if found != form:
        told = repr(found)
        told = "no format" if found is None else f"format {told[:_SHOWN]}{told[_SHOWN:] and '…'}"
        raise raises(f"{where} has {told}; expected {form!r}. Make it again with this version.")
