"""Each reader on a small copy made here, and on the public copy where that is at hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_people import (
    MAKERS,
    OBJECTS,
    made_cifar10h,
    made_cifar10h_arrays,
    made_label_errors,
    made_mooney,
    made_recurrent,
    made_recurrent_repository,
    made_shape,
    made_shape_repository,
    rates,
)

from semsim.base.errors import DataError
from semsim.base.sets.imports import places_of, read_import
from semsim.importers.import_folder import carry_out
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.people import SOURCES
from semsim.people.recurrent import CONDITIONS

pytestmark = pytest.mark.usefixtures("unpinned")

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="session")
def shared():
    """The folder of public copies; a clean clone has none."""
    if not (SHARED / "people").is_dir():
        pytest.skip(f"no public copies at {SHARED / 'people'}")
    return SHARED


def kept(name, folder, data):
    """The import of a source, written and read back."""
    places = places_of(name, data)
    carry_out(SOURCES[name].plan(folder), places)
    return read_import(places.tables)


def shares(study):
    keys = zip(study.labels["model"], study.labels["image_id"], strict=True)
    return dict(zip(keys, study.labels["human:people"], strict=True))


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_found_below_the_folder_that_is_named(name, tmp_path):
    made = MAKERS[name](tmp_path / "shared" / name)
    assert SOURCES[name].found_in(tmp_path / "shared") == made
    assert SOURCES[name].found_in(made) == made
    with pytest.raises(DataError, match="holds no copy"):
        SOURCES[name].plan(made / "nothing")


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_written_names_the_source_its_citation_and_every_picture(name, tmp_path):
    study = kept(name, MAKERS[name](tmp_path / "copy"), tmp_path / "data")
    assert study.record["kind"] == f"people {name}"
    assert any(SOURCES[name].citation in note for note in study.record["notes"])
    assert not study.record["simulated"]
    if "reconstruction" in study.labels:
        files = study.labels["reconstruction"].dropna()
        assert len(files)
        assert all(Path(one).is_file() for one in files)
    told = dict(study.record["counts"])
    assert told["reconstructions"] == len(study.labels)


def test_a_source_states_what_a_user_must_know():
    for name, one in SOURCES.items():
        assert one.name == name
        assert one.licence
        assert one.citation
        assert bool(one.files) == bool(one.commit) == bool(one.address)
    assert [name for name, one in SOURCES.items() if one.non_commercial] == ["cifar-10h"]


@pytest.mark.parametrize("made", [made_recurrent, made_recurrent_repository])
def test_recurrent_has_a_set_a_degradation_and_its_share(made, tmp_path):
    study = kept("recurrent", made(tmp_path / "copy"), tmp_path / "data")
    table = rates().set_index("condition")["accuracy"]
    found = shares(study)
    assert set(found) == {(model, one) for model in CONDITIONS[1:] for one in OBJECTS}
    assert all(found[key] == pytest.approx(table[key[0]]) for key in found)
    assert len(study.votes) == 0
    row = study.labels.iloc[0]
    assert (row["image_id"], row["class_name"]) == ("banana1", "banana")


def test_recurrent_pairs_a_degradation_with_its_own_object(tmp_path):
    study = kept("recurrent", made_recurrent(tmp_path / "copy"), tmp_path / "data")
    sets = pair_sets_of_labels(study.labels)
    scores = score_sets(sets, ["mse"], Resources(), None).scores
    means = scores.groupby("model")["value"].mean()
    noise = [CONDITIONS.index(model) for model in means.index]
    assert np.corrcoef(noise, means)[0, 1] > 0.9
    assert means.min() < 0.01


def test_recurrent_without_its_pictures_or_columns_says_so(tmp_path):
    folder = made_recurrent(tmp_path / "copy")
    (folder / "rates.csv").write_text("condition,accuracy\ncontrol,1\n")
    with pytest.raises(DataError, match="sem"):
        SOURCES["recurrent"].plan(folder)
    rates().iloc[:-1].to_csv(folder / "rates.csv", index=False)
    with pytest.raises(DataError, match=f"no share of people for {CONDITIONS[-1]}"):
        SOURCES["recurrent"].plan(folder)
    rates().to_csv(folder / "rates.csv", index=False)
    for path in folder.glob("originals/*"):
        path.unlink()
    with pytest.raises(DataError, match="no degraded picture"):
        SOURCES["recurrent"].plan(folder)


def test_recurrent_keeps_standard_errors_and_single_people_without_the_control(tmp_path):
    folder = made_recurrent(tmp_path / "copy")
    study = kept("recurrent", folder, tmp_path / "one")
    assert study.labels["human_error:people"].eq(0.004).all()
    assert study.people is not None
    assert set(study.people["model"]) <= set(CONDITIONS[1:])
    assert study.record["counts"]["annotators"] == 12
    (folder / "people.csv").unlink()
    assert kept("recurrent", folder, tmp_path / "other").people is None


def test_both_forms_of_texture_against_shape_hold_the_same_votes(tmp_path):
    one = kept("texture-vs-shape", made_shape(tmp_path / "a"), tmp_path / "one")
    other = kept("texture-vs-shape", made_shape_repository(tmp_path / "b"), tmp_path / "other")
    columns = ["model", "image_id", "class_name", "annotator", "answer", "recognised", "rt_ms"]
    first, second = (
        table.votes[columns].sort_values(columns[:4], ignore_index=True) for table in (one, other)
    )
    pd.testing.assert_frame_equal(first, second)
    assert len(first) == 27
    missed = first[first["answer"] == "none"]
    assert set(missed["annotator"]) == {f"{model}:subject-03" for model in first["model"]}
    assert not missed["recognised"].any()
    assert first["rt_ms"].dropna().eq(900).all()
    assert first["rt_ms"].isna().tolist() == (first["answer"] == "none").tolist()


def test_a_picture_that_people_judged_itself_stands_on_both_sides(tmp_path):
    study = kept("texture-vs-shape", made_shape(tmp_path / "copy"), tmp_path / "data")
    assert any("stands as original and as reconstruction" in n for n in study.record["notes"])
    scores = score_sets(pair_sets_of_labels(study.labels), ["mse"], Resources(), None).scores
    assert (scores["value"] == 0).all()


@pytest.mark.parametrize("made", [made_cifar10h, made_cifar10h_arrays])
def test_cifar_10h_is_the_share_of_the_true_class(made, tmp_path):
    study = kept("cifar-10h", made(tmp_path / "copy"), tmp_path / "data")
    found = {image_id: share for (_, image_id), share in shares(study).items()}
    assert found == {"00000": 1.0, "00001": 0.8, "00002": 0.4, "00003": 0.5}
    if made is made_cifar10h:
        assert study.labels["reconstruction"].notna().sum() == 3
        assert any("1 picture is not in this copy" in note for note in study.record["notes"])


def test_cifar_10h_of_other_lengths_is_refused(tmp_path):
    folder = made_cifar10h_arrays(tmp_path)
    np.save(folder / "cifar10_test_set_original_labels.npy", np.array([1, 2]))
    with pytest.raises(DataError, match="should have 2 rows"):
        SOURCES["cifar-10h"].plan(folder)


def test_label_errors_count_who_sees_the_given_label(tmp_path):
    folder = made_label_errors(tmp_path / "copy")
    study = kept("label-errors", folder, tmp_path / "data")
    assert shares(study) == {("cifar10", "cifar10-00020"): 1.0, ("cifar10", "cifar10-00021"): 0.0}
    (folder / "cifar10_mturk.json").write_text('[{"id": 1, "mturk": {"given": 1}}]')
    with pytest.raises(DataError, match="cannot be read"):
        SOURCES["label-errors"].plan(folder)


def test_things_mooney_has_a_share_a_picture(tmp_path):
    folder = made_mooney(tmp_path / "copy")
    study = kept("things-mooney", folder, tmp_path / "data")
    found = shares(study)
    assert found["two-tone", "thing1"] == pytest.approx(0.95)
    assert found["two-tone", "thing10"] == pytest.approx(0.05)
    table = pd.read_csv(folder / "things_mooney.csv")
    table.loc[1, "recog_pre_disambiguation"] = 1.2
    table.to_csv(folder / "things_mooney.csv", index=False)
    with pytest.raises(DataError, match="row 3"):
        SOURCES["things-mooney"].plan(folder)


def test_the_public_copies_give_the_numbers_that_their_page_states(shared, tmp_path):
    study = kept("texture-vs-shape", shared / "people", tmp_path)
    right = study.votes.groupby("model")["recognised"].mean()
    assert right.round(3).to_dict() == {"edges": 0.871, "silhouettes": 0.753, "stylised": 0.771}
    assert len(study.votes) == 6930
    study = kept("recurrent", shared / "people", tmp_path)
    assert len(study.labels) == 16 * 65
    assert shares(study)["occlusion_many_small_partial_viewing_high", "cat1"] == pytest.approx(
        0.588157
    )
    study = kept("cifar-10h", shared / "people", tmp_path)
    assert len(study.labels) == 1077
    table = pd.read_csv(shared / "people/cifar10h/counts.csv")
    hard = table["index"][table["kind"] == "hard"].map("{:05d}".format)
    low = study.labels[study.labels["image_id"].isin(hard)]["human:people"]
    assert len(low) == 591
    study = kept("label-errors", shared / "people", tmp_path)
    assert set(study.labels["model"]) == {"cifar10", "cifar100"}
    study = kept("semsim-votes", shared, tmp_path)
    assert study.record["counts"]["votes"] == 42_000
