"""An order is kept as JSON and read back as it was."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from semsim.errors import SettingsError
from semsim.jobs.orders import from_record, options, to_record


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    drops: tuple[float, ...] = (0.5,)


@dataclass(frozen=True)
class Outer:
    name: str
    folder: Path
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None


@pytest.mark.parametrize("maybe", [None, Inner(rate=2.0, drops=())])
def test_an_order_is_read_as_it_was_written(maybe):
    made = Outer("a", Path("/b"), Inner(drops=(0.1, 0.2)), maybe)
    assert from_record(Outer, json.loads(json.dumps(to_record(made)))) == made


def test_what_is_left_out_has_its_default():
    assert from_record(Outer, {"name": "a", "folder": "b"}) == Outer("a", Path("b"))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"name": "a", "folder": "b", "colour": 1}, "Outer has no setting 'colour'"),
        ({"name": "a", "folder": "b", "inner": {"speed": 1}}, "Inner has no setting 'speed'"),
        ({"name": "a", "folder": "b", "inner": 3}, "settings of Inner; got 3"),
        ({"name": "a"}, "This is no Outer: .*'folder'"),
    ],
)
def test_a_record_of_something_else_is_refused(record, message):
    with pytest.raises(SettingsError, match=message):
        from_record(Outer, record)


def test_options_are_read_from_arguments():
    argv = ["learn", "--name", "a", "--study", "", "--normalize", "--no-nesterov", "--seed", "3"]
    assert options(argv) == {
        "name": "a",
        "study": "",
        "normalize": "true",
        "nesterov": "false",
        "seed": "3",
    }
