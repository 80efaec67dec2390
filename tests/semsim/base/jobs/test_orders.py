"""An order is kept as JSON and read back as it was."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from semsim.base.errors import SettingsError
from semsim.base.jobs.orders import absolute, from_record, to_record


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    drops: tuple[float, ...] = (0.5,)
    steps: int = 3
    quick: bool = False


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


def test_what_people_leave_out_has_its_default_and_what_is_kept_lacks_nothing():
    record = {"name": "a", "folder": "b", "inner": {"steps": 4}}
    made = Outer("a", Path("b"), Inner(steps=4))
    assert from_record(Outer, record, by_hand=True) == made
    with pytest.raises(SettingsError, match=r"This is no Outer: it lacks maybe\."):
        from_record(Outer, record)
    with pytest.raises(SettingsError, match=r"This is no Inner: it lacks drops, quick, rate\."):
        from_record(Outer, {**record, "maybe": None})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"name": "a", "folder": "b", "colour": 1}, "Outer has no setting 'colour'"),
        ({"name": "a", "folder": "b", "inner": {"speed": 1}}, "Inner has no setting 'speed'"),
        ({"name": "a", "folder": "b", "inner": 3}, "settings of Inner; got 3"),
        ({"name": "a"}, "This is no Outer: .*'folder'"),
        ({"name": 5, "folder": "b"}, "This is no Outer: name must be a text; got 5"),
        ({"name": "a", "folder": 5}, "folder must be a text; got 5"),
        ({"name": "a", "folder": "b", "inner": None}, "settings of Inner; got None"),
        *[
            ({"name": "a", "folder": "b", "inner": {name: value}}, message)
            for name, value, message in (
                ("steps", "3", "This is no Inner: steps must be a whole number; got '3'"),
                ("steps", 2.5, "steps must be a whole number; got 2.5"),
                ("steps", True, "steps must be a whole number; got True"),
                ("rate", "x", "rate must be a number; got 'x'"),
                ("quick", 1, "quick must be true or false; got 1"),
                ("drops", "0.5", "drops must be a list; got '0.5'"),
                ("drops", [0.5, None], "each of drops must be a number; got None"),
            )
        ],
    ],
)
def test_a_record_of_something_else_is_refused(record, message):
    with pytest.raises(SettingsError, match=message):
        from_record(Outer, record, by_hand=True)


def test_a_whole_number_is_a_number():
    record = {"rate": 2, "drops": [1]}
    assert from_record(Inner, record, by_hand=True) == Inner(rate=2.0, drops=(1.0,))


def test_a_path_is_made_whole_wherever_it_lies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept, inner = Path("/b"), Outer("in", Path("c"))
    assert absolute((kept, inner)) == (kept, Outer("in", tmp_path.resolve() / "c"))
