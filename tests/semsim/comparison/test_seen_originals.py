"""What a comparison says of the originals that a SemSim learned from: never more than is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_weights import make_semsim

import semsim
from semsim.base.errors import DataError
from semsim.base.registry import read_plugin
from semsim.base.stats.analysis import AnalysisSettings
from semsim.campaign.campaign_job import load
from semsim.comparison import seen_originals
from semsim.comparison.seen_originals import ALL
from semsim.datasets import DATASETS
from semsim.images import write_png
from semsim.learning.initial import check_unseen
from semsim.metrics.learned import Learned
from semsim.metrics.network import save_semsim
from semsim.metrics.provenance import read_training
from semsim.reporting.report import report_html

N, LEARNED = 5, 3
FEW = AnalysisSettings(bootstraps=10, permutations=10)


@pytest.fixture
def labels(tmp_path):
    """Labels of the same names by the seed of the symbols that they are of."""

    def made(seed):
        images = load(read_plugin(DATASETS, f"symbols:seed={seed},test_per_class=1"), "test")
        paths = [tmp_path / str(seed) / f"{name}.png" for name in images.ids[:N]]
        for path, image in zip(paths, images.images, strict=False):
            write_png(image, path)
        ids = pd.DataFrame({"image_id": images.ids[:N], "original": map(str, paths)})
        models = pd.DataFrame({"model": list("abcd"), "dataset": "symbols", "attack": "invgrad"})
        return models.merge(ids, how="cross").assign(reconstruction=lambda t: t["original"])

    return made


@pytest.fixture
def checkpoints(labels, tmp_path):
    """A folder with a SemSim that learned from three of five, and one that knows names alone."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    first = labels(0)
    seen = first[first["image_id"].isin(first["image_id"].unique()[:LEARNED])]
    made = make_semsim(folder / "new.safetensors", simulated=False)
    record = Learned(pictures={}).and_from(seen).record()
    training = read_training(folder / "new.safetensors")
    for name, pixels in (("new", record), ("named", {key: [""] for key in record})):
        facts = replace(training, n_originals=LEARNED, pixels=pixels)
        save_semsim(made, folder / f"{name}.safetensors", facts)
    return folder


def notes(labels, checkpoints, name, *, with_labels=True, unseen_by=ALL, **told):
    found = judged(labels, checkpoints, name, with_labels=with_labels, unseen_by=unseen_by, **told)
    ours = [note for note in found.analysis.notes if f"SemSim ({name})" in note]
    said = " ".join(note for note in ours if "initial weights" not in note)
    mark = found.agreement.set_index("metric")["mark"][f"semsim:{name}"]
    return said.replace(f"SemSim ({name}) [{mark}]", f"SemSim ({name})")


def judged(labels, checkpoints, *names, with_labels=True, unseen_by=ALL, **told):
    draw = np.random.default_rng(0)
    images = labels.drop(columns=["original", "reconstruction"]).assign(**told)
    votes = images.merge(pd.DataFrame({"annotator": list("AB")}), how="cross")
    votes = votes.assign(recognised=draw.random(len(votes)) < 0.5)
    scores = pd.concat(
        images.assign(metric=metric, value=draw.random(len(images)))
        for metric in [*(f"semsim:{name}" for name in names), "psnr"]
    )
    if "dataset" in told:
        votes, scores = (table.drop(columns="dataset") for table in (votes, scores))
    return semsim.compare(
        votes,
        scores,
        labels if with_labels else None,
        settings=FEW,
        unseen_by=unseen_by,
        checkpoints=checkpoints,
        data=checkpoints / "none",
    )


def test_the_same_pictures_are_known_by_their_pixels(labels, checkpoints):
    said = notes(labels(0), checkpoints, "new")
    assert said == "SemSim (new): in-sample: it learned from 3 of these 5 originals."
    said = notes(labels(0), checkpoints, "new", unseen_by="new")
    assert said.startswith(
        "Only the 2 of 5 originals count that SemSim (new) did not learn from, so"
    )
    with pytest.raises(DataError, match="votes on 3 of 5 originals in the test, which"):
        check_unseen(str(checkpoints / "new.safetensors"), labels(0))


def test_a_checkpoint_is_read_once_whatever_is_asked_of_it(labels, checkpoints, monkeypatch):
    read = []
    monkeypatch.setattr(
        seen_originals, "read_training", lambda path: read.append(path.stem) or read_training(path)
    )
    judged(labels(0), checkpoints, "new", unseen_by="new")
    judged(labels(0), checkpoints, "named", unseen_by="new")  # which has no scores there
    assert read == ["new", "named", "new"]


def test_pictures_of_a_data_set_by_another_name_are_known_too(labels, checkpoints):
    said = notes(labels(0).assign(dataset="mine"), checkpoints, "new")
    assert said == "SemSim (new): in-sample: it learned from 3 of these 5 originals."


def test_other_pictures_of_the_same_names_are_none_it_learned_from(labels, checkpoints):
    words = "3 of these originals have the name of one it learned from, with other pixels."
    assert notes(labels(2), checkpoints, "new") == f"SemSim (new): {words}"
    said = notes(labels(2), checkpoints, "new", unseen_by="new")
    assert said.startswith(
        "Only the 5 of 5 originals count that SemSim (new) did not learn from, so"
    )
    assert words in said
    check_unseen(str(checkpoints / "new.safetensors"), labels(2))


@pytest.mark.parametrize(("name", "with_labels"), [("named", True), ("new", False)])
def test_where_names_are_all_there_is_it_is_told(labels, checkpoints, name, with_labels):
    told = {"name": name, "with_labels": with_labels}
    said = notes(labels(0), checkpoints, **told)
    assert said.endswith("it learned from 3 of these 5 originals, going by their names.")
    said = notes(labels(0), checkpoints, **told, unseen_by=name)
    assert f"SemSim ({name}) did not learn from, going by their names, so" in said
    with pytest.raises(DataError, match=r"in the test \(going by their names\), which"):
        check_unseen(str(checkpoints / "named.safetensors"), labels(2))


def test_a_table_without_the_data_set_and_the_pictures_tells_nothing(labels, checkpoints):
    told = {"name": "named", "with_labels": False, "dataset": "left out"}
    said = notes(labels(0), checkpoints, **told)
    assert said == "SemSim (named): not known which of these originals it learned from."
    with pytest.raises(DataError, match=r"not known which .*\. Add the column dataset, or choose"):
        notes(labels(0), checkpoints, **told, unseen_by="named")


def test_those_of_which_nothing_is_known_do_not_count(labels, checkpoints):
    some = labels(0)
    some.loc[some["image_id"] == some["image_id"].iloc[0], "original"] = "gone.png"
    some["dataset"] = "unknown"
    said = notes(some, checkpoints, "new", unseen_by="new")
    assert said.startswith("Only the 2 of 5 originals count")
    assert "Whether it learned from 1 other is not known; they do not count." in said


def test_scores_of_a_semsim_whose_checkpoint_is_not_here_tell_nothing(labels, checkpoints):
    said = notes(labels(0), checkpoints, "elsewhere")
    unknown = "not known which of these originals it learned from, as no checkpoint here has it."
    assert said == f"SemSim (elsewhere): {unknown}"


def images_of(found):
    return set(found.analysis.evidence.images["image_id"])


def test_held_out_originals_count_where_nobody_says_which(labels, checkpoints):
    table = labels(0)
    found = judged(table, checkpoints, "new", unseen_by="")
    assert images_of(found) == set(table["image_id"].unique()[LEARNED:])
    assert set(found.agreement["mark"]) == {""}
    assert any(
        note.startswith("Only the 2 of 5 originals count that no SemSim here learned from.")
        for note in found.analysis.notes
    )


def test_what_a_semsim_learned_from_is_said_in_its_name_and_puts_it_below_the_others(
    labels, checkpoints
):
    found = judged(labels(0), checkpoints, "new")
    last = found.agreement.iloc[-1]
    assert (last["metric"], last["mark"]) == ("semsim:new", "trained on 3 of these 5")
    assert last["title"] == "SemSim (new) [trained on 3 of these 5]"
    for told in (str(found), report_html(found.analysis)):
        assert last["title"] in told
    assert list(found.analysis.candidates["metric"]) == ["psnr"]


def test_where_nothing_is_held_out_all_count_and_what_saw_them_is_marked(labels, checkpoints):
    table = labels(0)
    seen = table[table["image_id"].isin(table["image_id"].unique()[:LEARNED])]
    found = judged(seen, checkpoints, "new", unseen_by="")
    assert images_of(found) == set(seen["image_id"])
    marks = found.agreement.set_index("metric")["mark"]
    assert marks["semsim:new"] == "trained on these"
    # One that has seen all of them does not keep the other from its held-out originals.
    facts = read_training(checkpoints / "new.safetensors")
    record = Learned(pictures={}).and_from(table).record()
    model = make_semsim(checkpoints / "every.safetensors", simulated=False)
    save_semsim(model, checkpoints / "every.safetensors", replace(facts, pixels=record))
    found = judged(table, checkpoints, "new", "every", unseen_by="")
    assert images_of(found) == set(table["image_id"].unique()[LEARNED:])
    marks = found.agreement.set_index("metric")["mark"]
    assert (marks["semsim:new"], marks["semsim:every"]) == ("", "trained on these")


def test_one_of_which_nothing_is_known_may_be_trained_on_them(labels, checkpoints):
    marks = judged(labels(0), checkpoints, "elsewhere", unseen_by="").agreement
    assert marks.set_index("metric")["mark"]["semsim:elsewhere"] == "may be trained on these"


def test_a_classifier_is_of_the_kind_of_simulated_voters(labels, checkpoints):
    images = labels(0).drop(columns=["original", "reconstruction"])
    draw = np.random.default_rng(0)
    votes = images.merge(pd.DataFrame({"annotator": list("AB")}), how="cross")
    votes = votes.assign(recognised=draw.random(len(votes)) < 0.5)
    shares = votes.groupby(["model", "image_id"])["recognised"].transform("mean")
    told = votes.assign(value=shares).drop_duplicates(["model", "image_id"])
    scores = pd.concat(
        told[[*images, "value"]].assign(metric=name, value=told["value"] * sign)
        for name, sign in (("recogniser", 1), ("psnr", -1))
    )
    for simulated in (False, True):
        found = semsim.compare(
            votes.assign(simulated=simulated), scores, settings=FEW, checkpoints=checkpoints
        )
        first, last = found.agreement["metric"]
        marks = found.agreement.set_index("metric")["mark"]
        assert (first, last) == (("psnr", "recogniser") if simulated else ("recogniser", "psnr"))
        assert marks["recogniser"] == ("same kind as the simulated voters" if simulated else "")
