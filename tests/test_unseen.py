"""SemSim on people it has not met: what is left out, what is judged, and a run on a miniature."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_people import OBJECTS, made_recurrent

from benchmarks import unseen
from benchmarks.claims import kept
from benchmarks.keeping import Finds
from semsim.base.errors import DataError

pytestmark = pytest.mark.usefixtures("unpinned")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "people"


@pytest.fixture(scope="module")
def judged(tmp_path_factory, unpinned):
    return unseen.read_judged(made_recurrent(tmp_path_factory.mktemp("recurrent")))


def cell(judged, family, **recipe):
    asked = replace(unseen.RECIPES["majority"], **recipe)
    return unseen._cell(judged.shares, judged.halves(), asked, family)


def test_halves_share_no_object_and_families_are_those_of_the_folders(judged):
    first, second = judged.halves()
    assert sorted([*first, *second]) == sorted(OBJECTS)
    assert abs(len(first) - len(second)) <= 1
    sizes = {"blobs": 4, "deletion": 4, "partial_viewing": 4, "clutter": 2, "scrambling": 2}
    assert Counter(judged.family) == sizes
    with pytest.raises(DataError, match="none of the families"):
        unseen.family_of("fog_light")


def test_an_object_without_a_degradation_is_left_out_and_no_copy_is_named(tmp_path):
    folder = made_recurrent(tmp_path / "recurrent")
    (folder / "clutter_light" / "cat1.png").unlink()
    assert "cat1" not in unseen.read_judged(folder).originals
    with pytest.raises(DataError, match="people get recurrent"):
        unseen.read_judged(tmp_path / "nothing")


def test_a_training_sees_no_row_of_the_family_that_it_leaves_out(judged, tmp_path):
    rows = unseen.labels_of(judged, cell(judged, "clutter"), tmp_path)
    assert set(rows["image_id"]) == set(judged.halves()[0])
    assert not rows["reconstruction"].str.contains("clutter").any()
    assert len(rows) == 14 * len(judged.halves()[0])
    assert (
        rows.groupby("recognisable")["n_recognised"].agg(["min", "max"]).to_dict()["max"][False]
        < rows[rows["recognisable"]]["n_recognised"].min()
    )


def test_damages_are_made_once_of_the_objects_it_learns_from(judged, tmp_path):
    asked = cell(judged, "", people=False, damages=True)
    first = unseen.labels_of(judged, asked, tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = unseen.labels_of(judged, asked, tmp_path)
    assert first.equals(again)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == stamps
    assert set(first["image_id"]) == {f"{one} damaged" for one in judged.halves()[0]}
    assert first["n_recognised"].between(0, 1).all()
    assert first["n_recognised"].std() > 0.1


def test_edges_kept_counts_what_is_gone_and_not_what_is_added():
    rng = torch.Generator().manual_seed(0)
    picture = torch.full((1, 3, 32, 32), 0.5)
    picture[..., 4:12, 4:12] = 0.8
    picture[..., 20:28, 4:12] = 0.2
    added = picture.clone()
    added[..., :, 20:] = torch.rand(1, 1, 32, 12, generator=rng)
    half = picture.clone()
    half[..., 16:, :] = 0.5
    found = [float(unseen.edges_kept(picture, one)[0]) for one in (picture, added, half)]
    assert found[:2] == pytest.approx([1, 1], abs=1e-3)
    assert found[2] == pytest.approx(0.5, abs=0.01)
    assert float(unseen.edges_kept(picture, 1 - picture)[0]) == 0


def test_only_pairs_with_one_that_was_left_out_are_judged(judged):
    people, size = unseen.people_p(judged), len(judged.names)
    first, second = np.triu_indices(size * len(unseen.FAMILIES), 1)
    seen = Counter()
    for i, j in zip(first[~np.isnan(people)], second[~np.isnan(people)], strict=True):
        assert i // size == j // size
        left_out = unseen.FAMILIES[i // size]
        pair = judged.family[i % size], judged.family[j % size]
        assert left_out in pair
        seen[i % size, j % size] += 1
    families = {pair: judged.family[pair[0]] == judged.family[pair[1]] for pair in seen}
    assert len(seen) == size * (size - 1) // 2
    assert all(count == (1 if families[pair] else 2) for pair, count in seen.items())


def test_accuracy_and_rho_know_the_right_order_from_the_wrong_one(judged):
    noise = np.random.default_rng(0).normal(0, 0.001, (len(judged.names), 9))
    right = unseen.stacked([judged.shares[:, None] + noise] * len(unseen.FAMILIES))
    people = unseen.people_p(judged)
    values = unseen.accuracy(people, right)
    assert values.shape == (10,)
    assert values[0] > 0.95
    assert unseen.accuracy(people, -right)[0] < 0.05
    assert unseen.rho(judged, right) == 1
    assert unseen.rho(judged, -right) == -1
    assert unseen.ahead(people, right, -right, 0)
    assert not unseen.ahead(people, -right, right, 0)
    assert not unseen.ahead(people, right, right, 0)


def test_a_miniature_is_chosen_opened_and_not_trained_twice(tmp_path, monkeypatch, capsys):
    small = replace(unseen.RECIPES["majority"].settings, epochs=1, input_size=8)
    recipes = {
        "majority": unseen.Recipe(settings=small),
        unseen.DAMAGED: unseen.Recipe(settings=small, people=False, damages=True),
    }
    monkeypatch.setattr(unseen, "RECIPES", recipes)
    monkeypatch.setattr(unseen, "_COPIES", 3)
    monkeypatch.setattr(unseen, "Finds", lambda name: Finds(name, tmp_path))
    copies = made_recurrent(tmp_path / "recurrent")
    words = ["unseen.py", "--from", str(copies), "--out", str(tmp_path / "out"), "--seeds", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--part", "0/2"])
    unseen.main()
    assert "other parts are not done" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, "--results", "mini"])
    unseen.main()
    assert "chosen on the first half: majority" in capsys.readouterr().out
    found = kept("mini", tmp_path)
    assert len(found["table"].value) == 2 + len(unseen.TITLES)
    assert len(found["families"].value) == 2 + len(unseen.FAMILIES)
    assert found["both"].n == "1 seeds"
    assert 0 <= found["accuracy.semsim"].value <= 1
    monkeypatch.setattr(unseen, "carry_out", None)
    unseen.main()
    assert kept("mini", tmp_path)["table"].value == found["table"].value


@pytest.mark.skipif(not SHARED.is_dir(), reason="no public copies beside the project")
def test_the_public_copy_is_whole_and_edges_are_ahead_of_pixels_on_it():
    judged = unseen.read_judged(SHARED)
    assert (len(judged.originals), len(judged.names)) == (65, 16)
    people, rows = unseen.people_p(judged), unseen.untrained(judged, judged.halves()[1])
    assert unseen.ahead(people, rows[unseen.EDGES], rows["psnr"], 0)
    found = kept("unseen")
    for name in set(rows) & {key.removeprefix("accuracy.") for key in found}:
        value = unseen.accuracy(people, rows[name])[0]
        assert value == pytest.approx(found[f"accuracy.{name}"].value, abs=1e-6), name
