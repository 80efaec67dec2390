import io
import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from semsim.base.errors import DataError
from semsim.importers import annotator_files as pickles
from semsim.importers.annotator_files import PickledArray, load_plain

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


# A process of its own, as one that has run out of memory or time says nothing more.
LIMITED = """
import resource, sys
from pathlib import Path
from semsim.base.errors import DataError
from semsim.importers.annotator_files import load_plain
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in map(Path, sys.argv[1:]):
    try:
        load_plain(path)
        print("read", flush=True)
    except DataError as error:
        print(str(error).replace("\\n", " "), flush=True)
"""


def refusals(folder, contents):
    """The reason given for each of `contents`, by name, with little memory and time."""
    paths = [folder / f"{name}.pkl" for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_bytes(content)
    command = [sys.executable, "-c", LIMITED, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    assert len(told) == len(paths), f"{paths[len(told)].name} was not read to its end"
    return {
        path.stem: line.removeprefix(f"{path} is not read: ")
        for path, line in zip(paths, told, strict=True)
    }


BIG = 0x0FFFFFFF
BOMBS = {
    "memo": b"\x80\x02Nr\xff\xff\xff\x0f.",
    "largest memo": b"\x80\x02Nr\xff\xff\xff\xff.",
    "memo in text": b"Np268435455\n.",
    "frame": b"\x80\x04\x95" + (2**40).to_bytes(8, "little") + b"N.",
    "text": b"\x80\x02X" + BIG.to_bytes(4, "little") + b"a.",
    "long text": b"\x80\x04\x8d" + (2**40).to_bytes(8, "little") + b"a.",
    "bytes": b"\x80\x03B" + BIG.to_bytes(4, "little") + b"a.",
    "long bytes": b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"a.",
    "bytearray": b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"a.",
    "number": b"\x80\x02\x8b" + BIG.to_bytes(4, "little") + b"\x01.",
    "digits": b"L" + b"9" * 100_000 + b"L\n.",
    "deep": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep tuples": b"\x80\x02N" + b"\x85" * 100_000 + b".",
}


def doubling(depth):
    """Opcodes of a tuple that holds itself twice, so often that writing it out takes for ever."""
    levels = b"".join(b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(depth))
    return b"\x80\x02)q\x000" + levels + b"h%c" % depth


TWICE = doubling(60)[2:]
ENDLESS = {
    "dtype": b"\x80\x02cnumpy\ndtype\n" + TWICE + b"\x85R.",
    "key": b"\x80\x02}" + TWICE + b"Ns.",
    "encoding": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00a" + TWICE + b"\x86R.",
    "scalar": b"\x80\x02cnumpy.core.multiarray\nscalar\n" + TWICE + b"N\x86R.",
    "persistent": b"\x80\x02" + TWICE + b"Q.",
    "name": b"\x80\x04" + TWICE + b"N\x93.",
    "state": b"\x80\x02cnumpy\nndarray\n)R(K\x01" + TWICE + b"NNNtb.",
}


def test_a_small_file_fills_no_memory_takes_no_time_and_is_refused_with_a_reason(tmp_path):
    told = refusals(tmp_path, BOMBS | ENDLESS)
    assert all(10 < len(reason) <= 300 for reason in told.values()), told
    assert told["memo"] == "the pickle asks for place 268435455 of its memo, which holds 0"
    assert told["frame"] == "the pickle asks for 1099511627776 bytes where 2 are left"
    assert told["deep"] == "the pickle asks for more than 100 values within one another"
    assert "meant more than once" in told["key"]


def test_values_meant_more_than_once_are_read(dump):
    answers = [1, -1, 3]
    meant = {f"{number}_4": answers for number in range(5000)}
    found = load_plain(dump(meant))
    assert found == meant
    assert load_plain(dump([np.arange(3)] * 100))[99].values.tolist() == [0, 1, 2]


def test_much_that_is_honest_is_read(dump):
    for protocol, many in ((0, 1000), (2, 1000), (5, 20_000)):
        large = {f"{number}_4": [number, -1.5, None, ("x",)] for number in range(many)}
        assert load_plain(dump(large, protocol)) == large
    nested = []
    for _ in range(90):
        nested = [nested]
    assert load_plain(dump(nested)) == nested


def test_a_value_that_holds_itself_is_refused(dump):
    circle = []
    circle.append(circle)
    with pytest.raises(DataError, match="or itself, holds"):
        load_plain(dump(circle))
