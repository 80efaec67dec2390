import io
import os
import pickle
import subprocess
from collections import OrderedDict
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from semsim.errors import DataError
from semsim.importers import pickles
from semsim.importers.pickles import PickledArray, load_plain

PLAIN = {"a": [1, -1, 2.5], "b": ("x", True, None), "c": {"d": b"\x00\xff"}}


@pytest.fixture
def dump(tmp_path):
    def to_file(content, protocol=pickle.DEFAULT_PROTOCOL):
        path = tmp_path / "answers.pkl"
        raw = content if isinstance(content, bytes) else pickle.dumps(content, protocol)
        path.write_bytes(raw)
        return path

    return to_file


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_back(dump, protocol):
    assert load_plain(dump(PLAIN, protocol)) == PLAIN


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "array",
    [
        np.array([3, -1, 99]),
        np.array([[1, 2], [3, 4]], dtype=">i2", order="F"),
        np.array([0.5, np.inf], dtype=np.float32),
        np.array(["cat", "none"]),
        np.array([True, False]),
        np.zeros((0, 2)),
    ],
    ids=lambda array: array.dtype.str,
)
def test_arrays_and_their_numbers_come_back(dump, protocol, array):
    first = array.ravel()[0] if array.size else 0
    found = load_plain(dump({"x": array, "y": first}, protocol))
    assert isinstance(found["x"], PickledArray)
    np.testing.assert_array_equal(found["x"].values, array)
    assert found["y"] == first
    assert type(found["y"]).__module__ == "builtins"


class _Calls:
    """Pickles as a call of `function` with `arguments`."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (os.system, f"{os.name}.system refused"),
        (eval, r"(builtins|__builtin__).eval refused"),
        (subprocess.Popen, r"(subprocess|commands).Popen refused"),
    ],
    ids=["system", "eval", "Popen"],
)
def test_a_call_in_a_pickle_is_refused_by_name_and_does_not_happen(
    dump, tmp_path, function, name, protocol
):
    trace = tmp_path / "trace"
    argument = f"open({str(trace)!r}, 'w')" if function is eval else f"touch '{trace}'"
    if function is subprocess.Popen:
        argument = ["touch", str(trace)]
    path = dump({"12_49": [1], "x": _Calls(function, argument)}, protocol)
    with pytest.raises(DataError, match=name):
        load_plain(path)
    assert not trace.exists()
    opened = pickle.loads(path.read_bytes())["x"]  # the pickle would have done it
    if isinstance(opened, subprocess.Popen):
        opened.wait()
    if isinstance(opened, io.IOBase):
        opened.close()
    assert trace.exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (OrderedDict(a=1), "collections.OrderedDict"),
        (date(2026, 1, 1), "datetime.date"),
        (Path("x"), "pathlib"),
        (np.random.default_rng(0), "numpy.random"),
        ([np.load], "numpy.load"),
        ([getattr], "getattr"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_other_class_is_refused_by_name(dump, content, name):
    with pytest.raises(DataError, match=f"{name}.* refused"):
        load_plain(dump(content))


def test_arrays_of_objects_are_refused(dump):
    with pytest.raises(DataError, match="'O8' are refused"):
        load_plain(dump(np.array([{}, []], dtype=object)))


def test_a_pickle_cannot_change_the_functions_it_names(dump):
    # GLOBAL, then BUILD with (None, {attribute: value}): sets attributes of what was named.
    attributes = pickle.dumps((None, {"__defaults__": (1, 2)}), 2)[2:-1]
    with pytest.raises(DataError, match="is not read"):
        load_plain(dump(b"\x80\x02c_codecs\nencode\n" + attributes + b"b."))
    assert pickles._latin1.__defaults__ is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no pickle",
        pickle.dumps(PLAIN)[:-4],
        b"\x80\x04\x95",
        pickle.dumps(np.arange(3)).replace(b"K\x03\x85", b"K\x09\x85"),  # shape (9,), data of 3
    ],
)
def test_broken_pickles_are_refused(dump, raw):
    with pytest.raises(DataError, match="is not read"):
        load_plain(dump(raw))


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="is not read"):
        load_plain(tmp_path / "nothing.pkl")
