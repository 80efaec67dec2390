import math
from dataclasses import replace

import numpy as np
import pytest

from semsim.base.errors import DataError
from semsim.campaign.store import PieceStore, StoredCell
from semsim.sets.image import AttackResult

PICTURE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
CELL = StoredCell(
    image_id="a",
    class_id=3,
    class_name="cat",
    original=PICTURE,
    result=AttackResult(
        picture=PICTURE + 1,
        attacked=PICTURE + 2,
        error="",
        objective=0.25,
        shift_x=-2,
        shift_y=1,
        flipped=True,
        residual=0.5,
        grey_residual=0.75,
        found_shift=(-2, 1),
    ),
    crashed=False,
    seconds=1.5,
)


@pytest.fixture
def store(tmp_path):
    return PieceStore(tmp_path)


def test_a_cell_comes_back_as_it_was(store):
    store.cells.write("0" * 20, CELL)
    found = store.cells.read("0" * 20)
    for name in ("picture", "attacked"):
        assert np.array_equal(getattr(found.result, name), getattr(CELL.result, name))
    bare = {"picture": None, "attacked": None}
    assert replace(found.result, **bare) == replace(CELL.result, **bare)
    assert np.array_equal(found.original, PICTURE)
    assert (found.class_id, found.class_name, found.seconds) == (3, "cat", 1.5)
    assert found.result.ok
    assert not found.result.worse_than_grey
    assert replace(found.result, residual=0.8).worse_than_grey
    assert not found.result.blown_up


def test_a_failed_cell_is_there_too(store):
    nothing = math.nan
    failed = replace(CELL.result, picture=None, error="no", objective=nothing, found_shift=None)
    store.cells.write("1" * 20, replace(CELL, result=failed, crashed=True))
    found = store.cells.read("1" * 20)
    assert (found.result.ok, found.crashed, found.result.error) == (False, True, "no")
    assert math.isnan(found.result.objective)
    assert found.result.found_shift is None


def test_a_broken_cell_says_what_to_do(store):
    store.cells.write("a", CELL)
    store.cells.path("a").write_bytes(store.cells.path("a").read_bytes()[:100])
    with pytest.raises(DataError, match="delete it"):
        store.cells.read("a")
    with pytest.raises(DataError, match="does not exist"):
        store.cells.read("nobody")


def test_a_target_replaces_its_failure_and_its_checkpoint(store):
    store.failures.write("t", "why\nnot")
    assert store.failure("t") == "why\nnot"
    store.checkpoint("t").touch()
    store.write_target("t", b"weights", {"seconds": 2.0})
    assert store.weights.read("t") == b"weights"
    assert store.costs.read("t") == {"seconds": 2.0}
    assert store.failure("t") == ""
    assert sorted(path.name for path in store.weights.folder.iterdir()) == [
        "t.json",
        "t.safetensors",
    ]
