"""What the page shows is what votes and scores say, read once and kept."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from made_study import MODELS, make_labels, make_votes, write_import
from made_weights import make_classifier, make_semsim
from scipy import stats

from semsim.base.errors import DataError, SettingsError
from semsim.comparison.seen_originals import ALL
from semsim.learning.default_checkpoint import BUILT_IN
from semsim.learning.settings import control_path
from semsim.metrics import find_metric
from semsim.metrics.network import ModelSettings, SemSimModel, save_semsim
from semsim.metrics.provenance import Provenance
from semsim.ui import StudyChoice
from semsim.ui.compare_data import (
    ComparisonView,
    find_study,
    held,
    model_choices,
    opened,
    rows_of_model,
    studies_of,
)
from semsim.weights import sha256_of

VIEW = ComparisonView(study="1")


def test_metrics_are_split_by_whether_they_have_weights(small_context):
    found = opened(small_context, VIEW)
    assert {"mse", "psnr", "ssim"} == {spec.name for spec in found.analysis.specs}
    unavailable = {spec.name for spec, _ in found.unavailable}
    assert {"fid", "kid", "lpips-alex"} <= unavailable
    assert not unavailable & {spec.name for spec in found.specs}


def test_the_agreement_is_scipys(small_context):
    found = opened(small_context, VIEW)
    row = found.analysis.agreement.set_index("metric").loc["ssim"]
    people, ssim = found.analysis.models["human"], found.analysis.models["ssim"]
    assert row["rho"] == pytest.approx(stats.spearmanr(people, ssim).statistic, abs=1e-12)
    assert row["tau"] == pytest.approx(stats.kendalltau(people, ssim).statistic, abs=1e-12)


def test_what_was_shown_is_kept_until_it_is_read_anew(made_context):
    context = made_context(n_images=2)
    first = opened(context, VIEW)
    assert held(context, ComparisonView(study="1", rule="")) is first
    assert opened(context, VIEW) is first  # the same votes and scores
    votes = context.votes("1")
    fewer = replace(context, votes=lambda study: votes.iloc[:-1])
    assert opened(fewer, VIEW).n_votes == first.n_votes - 1
    other = held(context, ComparisonView(study="1", rule="mean-response"))
    assert other.analysis.settings.headline == "mean-response"
    with pytest.raises(DataError, match="gone"):
        opened(context, ComparisonView(study="2"))


def test_only_so_many_comparisons_are_kept(made_context, monkeypatch):
    monkeypatch.setattr("semsim.ui.compare_data._KEPT", 2)
    context = made_context(n_images=2)
    views = [
        ComparisonView(study="1", rule=rule)
        for rule in ("majority", "mean-response", "dawid-skene")
    ]
    for view in views:
        opened(context, view)
    assert [view for view in context.kept if isinstance(view, ComparisonView)] == views[1:]


def test_scores_are_read_once_for_all_rules_and_anew_when_there_are_more(made_context, monkeypatch):
    context = made_context(n_images=2)
    opened(context, VIEW)
    with monkeypatch.context() as patch:
        patch.setattr("semsim.ui.compare_data.read_scores", None)
        ranked = opened(context, ComparisonView(study="1", rule="mean-response"))
    assert {"mse", "psnr", "ssim"} == {spec.name for spec in ranked.analysis.specs}
    more = made_context(n_images=2, scored=("ssim-uniform",))
    again = replace(context, labels=more.labels, votes=more.votes)
    assert "ssim-uniform" in {spec.name for spec in opened(again, VIEW).analysis.specs}


def test_a_metric_counts_when_all_models_have_its_scores(made_context):
    context = made_context(n_images=2)
    # One set of PSNR is gone, as while it is computed.
    for file in (context.data / "scores").iterdir():
        if pd.read_parquet(file).attrs["metric"] == "psnr":
            file.unlink()
            break
    found = opened(context, VIEW)
    assert {"mse", "ssim"} == {spec.name for spec in found.analysis.specs}
    assert "psnr" in {name for _, name in found.book.missing}


def test_an_unknown_choice_of_metric_becomes_the_best(small_context, made_context):
    found = opened(small_context, VIEW)
    assert found.spec("psnr").name == "psnr"
    ranked = found.analysis.agreement.sort_values("rho", ascending=False, kind="stable")
    assert found.spec("fid").name == ranked["metric"].iloc[0]
    assert opened(made_context(n_images=2, scored=()), VIEW).spec(None) is None


def test_images_carry_their_votes(made_context):
    found = opened(made_context(n_images=2), VIEW)
    best = rows_of_model(found.images, f"symbols\ninvgrad\n{MODELS[0]}")
    assert best["said"].tolist() == ["5 of 5", "5 of 5"]
    assert best["share"].tolist() == [1.0, 1.0]
    silent = opened(made_context(n_images=2, votes=0), VIEW)
    assert silent.n_votes == 0
    assert not silent.has_ranking
    assert silent.images["share"].isna().all()
    assert set(silent.images["said"]) == {"no votes yet"}


def test_by_the_name_of_the_original_votes_count_by_that_name(made_context):
    context = made_context(n_images=3)
    votes = context.votes("1")
    # The first is called what it is, the second has no name, the third another one.
    names = {"000": "cat", "001": None, "002": "cow"}
    named = votes.assign(original_answer=votes["image_id"].map(names))
    by_name = replace(VIEW, rule="as-original-named")
    found = opened(replace(context, votes=lambda study: named), by_name)
    best = rows_of_model(found.images, f"symbols\ninvgrad\n{MODELS[0]}")
    assert best["said"].tolist() == ["5 of 5", "its original has no name", "0 of 5"]
    told = found.analysis.disagreement.drop_duplicates("row").set_index("row")["human"]
    assert told.to_dict() == found.images["share"].dropna().to_dict()
    third = found.images.index[found.images["image_id"] == "002"]
    assert set(told[third]) == {0.0}


def test_the_attacked_image_is_a_reference_of_its_own(small_context):
    both = opened(small_context, ComparisonView(study="1", reference="both"))
    missing = {name for _, name in both.book.missing} | {s.name for s, _ in both.unavailable}
    assert "mse@attacked" in missing
    assert {"mse", "psnr"} <= {spec.name for spec in both.analysis.specs}
    attacked = opened(small_context, ComparisonView(study="1", reference="attacked"))
    assert attacked.analysis.specs == ()
    assert all(spec.name.endswith("@attacked") for spec in attacked.specs)


def test_lists_name_every_model_once(made_context):
    found = opened(made_context(models=MODELS[:4], n_images=3), VIEW)
    choices = dict(model_choices(found.analysis))
    assert choices["resnet/none"] == "symbols\ninvgrad\nresnet/none"
    assert len(choices) == 4


def test_studies_are_found_by_id_and_by_name(small_context):
    assert [study.name for study in studies_of(small_context)] == ["Made"]
    assert find_study(small_context, "Made").id == "1"
    assert find_study(small_context, "unknown").id == "1"


def test_without_a_choice_the_study_is_one_with_votes(made_context):
    silent, voted = StudyChoice("2", "Silent", False), StudyChoice("1", "Made", False)
    context = replace(made_context(n_images=2), studies=lambda: [silent, voted])
    assert find_study(context, None).id == "2"
    context = replace(context, voted=lambda: ["1"])
    assert find_study(context, None).id == "1"
    assert find_study(context, "2").id == "2"
    context = replace(context, voted=list)
    labels = context.labels("1")
    tables = {"votes": make_votes(labels), "labels": labels}
    write_import(context.data / "imports" / "theirs", tables)
    assert find_study(context, None).id == "import:theirs"


def test_the_report_knows_the_protocol_and_the_versions(small_context):
    votes = small_context.votes("1").assign(lists="Lists of 1.")
    found = opened(replace(small_context, votes=lambda study: votes), VIEW).origin
    assert found.protocol == "majority"
    assert found.collection == "Lists of 1."  # stands in the methods text of the report
    assert found.weights == {}
    assert "torch" in found.versions


_BY_NAME = "in-sample: it learned from 1 of these 2 originals, going by their names."


@pytest.mark.parametrize(
    ("simulated", "original", "remarks"),
    [
        (True, "symbols/000", [f": trained on simulated votes; {_BY_NAME}"]),
        (False, "symbols/other", []),
        (False, "unknown/000", [": not known which of these originals it learned from."]),
    ],
)
def test_a_semsim_says_whom_it_learned_from(made_context, simulated, original, remarks):
    training = Provenance(
        n_originals=1,
        n_triplets=1,
        simulated=simulated,
        created="",
        versions={},
        settings={},
        pixels={original: [""]},
    )
    context = made_context(n_images=2)
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.2] * 3)
    save_semsim(model, context.checkpoints / "mine.safetensors", training)
    again = made_context(n_images=2, scored=("mse", "semsim:mine"))
    found = opened(again, replace(VIEW, unseen_by=ALL))
    title = found.spec("semsim:mine").title
    said = [note for note in found.analysis.notes if note.startswith(f"{title}: ")]
    *others, start = [note.removeprefix(title) for note in said if "resample" not in note]
    assert others == remarks
    assert start.endswith("not trained on votes): its initial weights were not kept.")


@pytest.mark.parametrize(
    ("control", "than", "title"),
    [
        ("start", "its initial weights", "SemSim (mine, initial weights)"),
        ("calibrated", "the calibrated baseline", "Calibrated baseline (mine)"),
    ],
)
def test_a_semsim_stands_beside_its_controls(made_context, control, than, title):
    context = made_context(n_images=2)
    torch.manual_seed(0)
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.2] * 3)
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": False, "created": ""}
    bare = Provenance(**facts, versions={}, settings={}, pixels={"symbols/other": [""]})
    mine = context.checkpoints / "mine.safetensors"
    kept = control_path(mine, control)
    save_semsim(model, kept, replace(bare, control=control))
    save_semsim(model, mine, replace(bare, start=sha256_of(kept) if control == "start" else ""))

    def told(*scored):
        found = opened(made_context(n_images=2, scored=("mse", "semsim:mine", *scored)), VIEW)
        return found, [note for note in found.analysis.notes if than in note]

    # The baseline is not asked for where it has no scores.
    unscored = [note.endswith("it has no scores here yet.") for note in told()[1]]
    assert unscored == {"start": [True], "calibrated": []}[control]
    found, (said,) = told(f"semsim:mine.{control}")
    assert found.spec(f"semsim:mine.{control}").title == title
    assert said.startswith(f"SemSim (mine): It does not beat {than}")
    assert "no better than it" in said  # it is the same network
    # The page opens on the best that may lead, however well a start does.
    table = found.analysis.agreement
    best = np.where(table["metric"] == f"semsim:mine.{control}", 1.0, 0.1)
    analysis = replace(found.analysis, agreement=table.assign(rho=best, tau=best))
    shown = replace(found, analysis=analysis).spec(None).name
    assert (shown == f"semsim:mine.{control}") is (control == "calibrated")


def test_a_semsim_is_judged_by_what_it_has_not_seen(made_context):
    context = made_context(n_images=3)
    make_semsim(
        context.checkpoints / f"{BUILT_IN}.safetensors",
        ["symbols/000", "symbols/002", "digits/001"],
        simulated=False,
    )
    awaiting = opened(made_context(n_images=3, scored=("mse",)), ComparisonView(study="1", rule=""))
    context = made_context(n_images=3, scored=("mse", f"semsim:{BUILT_IN}"))
    found = opened(context, ComparisonView(study="1", rule=""))
    # The numbers of the others do not jump when its scores come.
    rho = [one.analysis.agreement.set_index("metric")["rho"]["mse"] for one in (awaiting, found)]
    assert rho[0] == pytest.approx(rho[1], nan_ok=True)
    assert awaiting.n_held_out == found.n_held_out == 1
    assert set(found.analysis.evidence.images["image_id"]) == {"001"}
    assert (found.unseen, found.n_held_out, found.n_originals) == ({BUILT_IN: 1}, 1, 3)
    assert not [note for note in found.analysis.notes if "in-sample" in note]
    assert any(note.startswith("Only the 1 of 3 originals") for note in found.analysis.notes)
    # All metrics lose the same pictures, and none of their scores.
    for values in found.analysis.evidence.scores.values():
        assert not np.isnan(values).any()
    every = opened(context, ComparisonView(study="1", rule="", unseen_by=ALL))
    assert len(set(every.analysis.evidence.images["image_id"])) == 3
    marked = every.spec(f"semsim:{BUILT_IN}").title
    assert marked == f"SemSim ({BUILT_IN}) [trained on 2 of these 3]"
    said = f"{marked}: in-sample: it learned from 2 of these 3 originals, going by their names."
    assert said in every.analysis.notes


def test_nothing_is_left_out_for_a_semsim_that_has_seen_all_or_nothing(made_context):
    context = made_context(n_images=2)
    make_semsim(
        context.checkpoints / f"{BUILT_IN}.safetensors",
        ["symbols/000", "symbols/001"],
        simulated=False,
    )
    make_semsim(context.checkpoints / "other.safetensors", ["digits/000"], simulated=False)
    scored = ("mse", f"semsim:{BUILT_IN}", "semsim:other")
    found = opened(made_context(n_images=2, scored=scored), ComparisonView(study="1", rule=""))
    assert (found.n_held_out, len(set(found.analysis.evidence.images["image_id"]))) == (0, 2)
    marks = found.analysis.agreement.set_index("metric")["mark"]
    assert marks[f"semsim:{BUILT_IN}"] == "trained on these"
    assert marks["semsim:other"] == ""
    with pytest.raises(SettingsError, match="checkpoint"):
        opened(context, replace(VIEW, unseen_by="../other"))
    with pytest.raises(DataError, match="Choose all originals"):
        opened(context, replace(VIEW, unseen_by="gone"))


def test_imported_labels_are_a_study_without_pictures(made_context, tmp_path):
    context = made_context(n_images=2)
    labels = make_labels(tmp_path / "others", n_images=4, simulated=False)
    scores = labels[["dataset", "attack", "model", "image_id"]].assign(
        metric="psnr", value=np.linspace(30, 10, len(labels))
    )
    tables = {"votes": make_votes(labels), "scores": scores}
    tables["labels"] = labels.drop(columns=["original", "reconstruction"])
    write_import(context.data / "imports" / "theirs", tables)
    study = studies_of(context)[-1]
    assert study == StudyChoice("import:theirs", "Their labels", False, "majority")
    found = opened(context, ComparisonView(study=study.id))
    assert not found.has_images
    assert [spec.name for spec in found.analysis.specs] == ["psnr"]
    assert found.book.missing == ()
    assert found.n_votes == len(labels) * 5


def test_imported_votes_of_programs_are_not_called_those_of_people(made_context, tmp_path):
    context = made_context(n_images=2, simulated=False)
    labels = make_labels(tmp_path / "others", n_images=4, simulated=True)
    tables = {"votes": make_votes(labels), "labels": labels}
    write_import(context.data / "imports" / "theirs", tables, simulated=True)
    found = opened(context, ComparisonView(study="import:theirs"))
    assert found.analysis.evidence.simulated
    assert found.voters == "simulated annotators"
    assert studies_of(context)[-1].label == "Their labels (simulated)"


def test_a_metric_of_ones_own_is_marked_as_custom_on_compare(made_context, tmp_path):
    context = made_context(n_images=2)
    labels = make_labels(tmp_path / "others", n_images=4, simulated=False)
    scores = labels[["dataset", "attack", "model", "image_id"]].assign(
        metric="mine", value=np.linspace(10, 30, len(labels)), leaks="lower"
    )
    tables = {"votes": make_votes(labels), "labels": labels, "scores": scores}
    folder = context.data / "imports" / "theirs"
    write_import(folder, tables)
    found = opened(context, ComparisonView(study="import:theirs"))
    spec = found.spec("mine")
    assert (spec.name, spec.higher_means_more_leakage, spec.per_image) == ("mine", False, True)
    said = "mine is a custom metric: its values came with the data and were not computed here."
    assert said in found.analysis.notes
    scores.drop(columns="leaks").to_parquet(folder / "scores.parquet")
    with pytest.raises(DataError, match="higher or lower mine leaks"):
        opened(context, ComparisonView(study="import:theirs"))


def test_the_judge_of_the_lists_is_no_metric_of_the_same_study(made_context):
    context = made_context(n_images=2)
    for name in ("lists", "metrics"):
        make_classifier(context.checkpoints / f"judges/{name}.safetensors", classes=(name, "b"))
    ranked = sha256_of(context.checkpoints / "judges/lists.safetensors")
    labels = context.labels("1").assign(judges=ranked)
    found = opened(replace(context, labels=lambda study: labels), VIEW)
    offered = {spec.name for spec in found.specs}
    assert {"recogniser:metrics", "fd:metrics"} <= offered
    wanted = {name for _, name in found.book.missing}
    for name in ("recogniser:lists", "fd:lists"):
        assert name not in offered | wanted
        title = find_metric(name).spec.title
        why = f"{title} is left out: lists ranked the words of this study's lists"
        assert any(note.startswith(why) for note in found.analysis.notes)
    known = opened(made_context(n_images=2), VIEW)  # a study of which no judge is known
    assert {"recogniser:lists", "fd:lists"} <= {spec.name for spec in known.specs}
