import json
import math
from dataclasses import replace

import numpy as np
import pytest

from semsim.campaign.store import PieceStore, StoredCell
from semsim.errors import DataError
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
    store.write_cell("0" * 20, CELL)
    found = store.read_cell("0" * 20)
    for name in ("picture", "attacked"):
        assert np.array_equal(getattr(found.result, name), getattr(CELL.result, name))
    bare = {"picture": None, "attacked": None}
    assert replace(found.result, **bare) == replace(CELL.result, **bare)
    assert np.array_equal(found.original, PICTURE)
    assert (found.class_id, found.class_name, found.seconds, found.ok) == (3, "cat", 1.5, True)
    assert not found.worse_than_grey
    assert replace(found, result=replace(found.result, residual=0.8)).worse_than_grey
    assert not found.blown_up


def test_a_blow_up_is_kept_and_a_cell_of_before_it_was_has_none(store):
    result = replace(CELL.result, blown_up=True, solver="rgap")
    store.write_cell("a", replace(CELL, result=result))
    assert store.read_cell("a").blown_up
    assert store.read_cell("a").result.solver == "rgap"
    with np.load(store.cell("a")) as stored:
        kept = dict(stored)
    facts = json.loads(str(kept["facts"]))
    del facts["blown_up"], facts["solver"]
    np.savez(store.cell("a"), **{**kept, "facts": json.dumps(facts)})
    assert not store.read_cell("a").blown_up
    assert store.read_cell("a").result.solver == ""


def test_a_failed_cell_is_there_too(store):
    nothing = math.nan
    failed = replace(CELL.result, picture=None, error="no", objective=nothing, found_shift=None)
    store.write_cell("1" * 20, replace(CELL, result=failed, crashed=True))
    found = store.read_cell("1" * 20)
    assert (found.ok, found.crashed, found.result.error) == (False, True, "no")
    assert math.isnan(found.result.objective)
    assert found.result.found_shift is None


def test_what_is_missing(store):
    assert store.missing(["a", "b"]) == ["a", "b"]
    store.write_cell("a", CELL)
    assert store.missing(["a", "b"]) == ["b"]
    store.forget_cell("a")
    assert not store.has_cell("a")


def test_a_broken_cell_says_what_to_do(store):
    store.write_cell("a", CELL)
    store.cell("a").write_bytes(store.cell("a").read_bytes()[:100])
    with pytest.raises(DataError, match="delete it"):
        store.read_cell("a")
    with pytest.raises(DataError, match="cannot be read"):
        store.read_cell("nobody")


def test_a_target_replaces_its_failure_and_its_checkpoint(store):
    store.write_failure("t", "why\nnot")
    assert store.failure("t") == "why\nnot"
    store.checkpoint("t").touch()
    store.write_target("t", b"weights", {"seconds": 2.0})
    assert store.weights("t").read_bytes() == b"weights"
    assert store.target_cost("t") == {"seconds": 2.0}
    assert store.failure("t") == ""
    assert sorted(path.name for path in store.weights("t").parent.iterdir()) == [
        "t.json",
        "t.safetensors",
    ]
