"""A SemSim is judged by the verdict it learned, which the human study has made by any rule.

The two halves meet in files: labels and votes that a study exports, where people name the originals
and some name them otherwise than the data set does.
"""

import pandas as pd
import pytest
from study_factory import CLASSES, START, answer_to, fresh_database, write_set

from annotation import formats
from annotation.domain import StimulusKind
from annotation.formats import What
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from semsim.learning import TrainSettings
from semsim.learning.ablations_run import JudgedOrder, Workplace, read_materials, train_and_judge
from semsim.learning.evaluation import auc_of, semsim_row
from semsim.learning.settings import Order
from semsim.learning.splits import HoldOut, count

HALF = HoldOut(fraction=0.5)
SMALL = TrainSettings(backbone="lenet", lr=0.01, epochs=1, batch_size=8, device="cpu")
SEEN, UNSEEN = "resnet/none", "convnet/none"  # models by whether people recognise what they leak


@pytest.fixture
def exported(tmp_path):
    """The files of labels and of votes of a study whose every second original has another name."""
    sets = [
        write_set(tmp_path / "sets" / model.partition("/")[0], model=model, labels=CLASSES)
        for model in (SEEN, UNSEEN)
    ]
    spec = StudySpec(
        name="names",
        task=Task.RECOGNITION,
        votes_per_item=3,
        label_originals=True,
        headline="as-original-named",
        repeat_rate=0.0,
    )
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        study = create_study(store, spec, sets, tmp_path / "images")
        shown = read_study(store, study.id, tmp_path / "images").stimuli.set_index("item")
        for name in "ABC":
            person = join(store, study.token, name).annotator
            while items := next_items(store, person, "tab", 400, START):
                for item in items:
                    vote(store, person, answer_to(item.item, said(shown.loc[item.item])), START)
        data = read_study(store, study.id, tmp_path / "images")
    for what in (What.LABELS, What.VOTES):
        formats.export(data, tmp_path / f"{what.value}.parquet", what=what)
    return tmp_path / "labels.parquet", tmp_path / "votes.parquet"


def said(stimulus):
    at = CLASSES.index(stimulus["class_name"])
    name = CLASSES[at - 1] if at % 2 else CLASSES[at]  # every second one is called another's name
    seen = stimulus["kind"] == StimulusKind.ORIGINAL or stimulus["model"] == SEEN
    return name if seen else "none"


def judged(material, folder):
    place = Workplace(
        checkpoints=folder / "checkpoints", scores=folder / "scores", device="cpu", metrics=("mse",)
    )
    order = Order(name="mine", checkpoints=place.checkpoints, settings=SMALL)
    return train_and_judge(JudgedOrder(order=order, hold_out=HALF), material, place, folder / "job")


def test_the_card_counts_what_the_plan_counts(exported, tmp_path):
    labels, votes = exported
    material = read_materials([labels], [votes])
    planned = count(material.labels, HALF)
    assert (planned.recognisable, planned.unrecognisable) == (4, 4)
    by_class = pd.read_parquet(votes).query("kind == 'reconstruction'")["recognised"]
    assert by_class.sum() == 3 * len(CLASSES) / 2  # of half of what people recognise
    found = judged(material, tmp_path)["held_out"]
    for row in found["metrics"]:
        pooled = row["auc"]["pooled"]
        assert (pooled["n_positive"], pooled["n_negative"]) == (4, 4)
    assert auc_of(found, "human") == 1.0
    assert semsim_row(found)["undefined"] is None or "model" in semsim_row(found)["undefined"]


def test_so_it_does_of_two_studies_with_a_rule_each(exported, tmp_path):
    labels, votes = exported
    other = pd.read_parquet(labels).assign(dataset="others", study="b", headline="majority")
    theirs = pd.read_parquet(votes).drop(columns="original_answer")
    theirs = theirs.assign(dataset="others", study="b", headline="majority")
    sums = theirs[theirs["kind"] == "reconstruction"].groupby(["model", "image_id"])["recognised"]
    yes = sums.sum().reindex(pd.MultiIndex.from_frame(other[["model", "image_id"]])).to_numpy()
    other = other.assign(n_recognised=yes, recognisable=pd.array(yes > 1, dtype="boolean"))
    other.to_parquet(tmp_path / "b-labels.parquet")
    theirs.to_parquet(tmp_path / "b-votes.parquet")
    files = [labels, tmp_path / "b-labels.parquet"], [votes, tmp_path / "b-votes.parquet"]
    material = read_materials(*files)
    planned = count(material.labels, HALF)
    found = judged(material, tmp_path)["held_out"]
    pooled = semsim_row(found)["auc"]["pooled"]
    wanted = (planned.recognisable, planned.unrecognisable)
    assert (pooled["n_positive"], pooled["n_negative"]) == wanted
    assert 4 < planned.recognisable < 8
    assert auc_of(found, "human") == 1.0
