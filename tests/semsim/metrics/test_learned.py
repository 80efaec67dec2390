"""What a SemSim learned from is known by pixels, else by names, else not: never by a guess."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from semsim.metrics.learned import Learned, learned_by
from semsim.metrics.provenance import Provenance

N = 3
NOTHING = Learned(pictures={})


def originals(folder, dataset="symbols", seed=0, side=8, ending="png", start=0):
    """A table of `N` originals, each with two reconstructions, and their files."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(start, start + N):
        path = folder / f"{number}.{ending}"
        pixels = np.repeat(draw.integers(0, 256, (8, 8, 3), dtype=np.uint8), side // 8, axis=0)
        Image.fromarray(np.repeat(pixels, side // 8, axis=1)).save(path)
        rows += [{"dataset": dataset, "image_id": str(number), "original": str(path)}] * 2
    return pd.DataFrame(rows)


def kept(learned):
    """What is read again of a checkpoint that learned so."""
    fields = {"n_originals": N, "n_triplets": 1, "simulated": True, "created": "", "versions": {}}
    text = json.dumps({**fields, "settings": {}, "pixels": learned.record()})
    return learned_by(Provenance(**json.loads(text)))


def named(learned):
    """The same where nothing is known but names."""
    return Learned(pictures={key: frozenset({""}) for key in learned.pictures})


def counts(seen):
    assert len(seen.seen) + len(seen.unseen) + len(seen.unknown) == len(seen.told)
    return len(seen.seen), len(seen.unseen), len(seen.unknown)


@pytest.fixture
def table(tmp_path):
    return originals(tmp_path / "learned")


@pytest.fixture
def learned(table):
    return kept(NOTHING.and_from(table))


@pytest.mark.parametrize("dataset", ["symbols", "mine", "unknown"])
def test_the_same_pixels_are_known_again_in_other_files_under_other_names(
    learned, tmp_path, dataset
):
    again = originals(tmp_path / "again", dataset, ending="bmp", start=7)
    found = learned.among(again)
    assert counts(found) == (N, 0, 0)
    assert found.seen == {f"{dataset}/7", f"{dataset}/8", f"{dataset}/9"}
    assert found.by_name == found.namesakes == frozenset()


def test_other_pixels_of_the_same_names_are_others_and_it_is_told(learned, tmp_path):
    found = learned.among(originals(tmp_path / "other", seed=2))
    assert counts(found) == (0, N, 0)
    assert found.by_name == frozenset()
    assert found.namesakes == found.unseen


def test_a_picture_of_another_size_may_be_the_same_so_its_name_decides(learned, tmp_path):
    found = learned.among(originals(tmp_path / "large", side=16))
    assert counts(found) == (N, 0, 0)
    assert found.by_name == found.seen
    assert counts(learned.among(originals(tmp_path / "more", side=16, start=5))) == (0, N, 0)


@pytest.mark.parametrize("where", ["checkpoint", "table", "files"])
def test_where_one_side_knows_no_pixels_names_decide(learned, table, tmp_path, where):
    other = originals(tmp_path / "other", seed=2, start=1)
    if where == "checkpoint":
        learned = named(learned)
    elif where == "table":
        other = other.drop(columns="original")
    else:
        other = other.assign(original=[None, "", "gone.png", *other["original"][3:]])
        (tmp_path / "other" / "2.png").write_bytes(b"no picture")
        (tmp_path / "other" / "3.png").unlink()
    found = learned.among(other)
    assert (found.seen, found.unseen) == ({"symbols/1", "symbols/2"}, {"symbols/3"})
    assert found.by_name == {"symbols/1", "symbols/2", "symbols/3"}


def test_a_name_without_a_data_set_tells_nothing_unless_it_is_the_very_same(learned, table):
    bare = table.drop(columns="original")
    assert counts(learned.among(bare.assign(dataset="unknown"))) == (0, 0, N)
    assert counts(learned.among(table.assign(dataset="unknown"))) == (N, 0, 0)
    nameless = kept(NOTHING.and_from(bare.assign(dataset="unknown")))
    assert counts(nameless.among(bare)) == (0, 0, N)
    assert counts(nameless.among(table)) == (0, 0, N)
    assert counts(nameless.among(bare.assign(dataset="unknown"))) == (N, 0, 0)


def test_what_goes_on_from_another_has_learned_from_both(learned, table, tmp_path):
    other = originals(tmp_path / "other", seed=2)  # by the same names
    both = kept(learned.and_from(other))
    for one in (table, other):
        assert counts(both.among(one)) == (N, 0, 0)
        assert both.among(one).by_name == frozenset()
    third = originals(tmp_path / "third", seed=3)
    assert counts(both.among(third)) == (0, N, 0)
    # Where only names are known of the first, those still count.
    partly = kept(named(learned).and_from(other))
    assert partly.among(table).by_name == partly.among(table).seen
    assert counts(partly.among(third)) == (N, 0, 0)
