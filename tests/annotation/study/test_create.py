"""Nothing is stored unless everything fits."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from study_factory import CLASSES, START, SURE, picture, save_png, write_run, write_set

from annotation.domain import StudyStatus
from annotation.errors import StudyError
from annotation.spec import StudySpec, Task
from annotation.store import studies
from annotation.store.tables import CandidateListRow, EventRow, SlotRow, StimulusRow
from annotation.study.create import COLUMNS, create_study, examine
from annotation.study.exports import export_labels, facts_of_lists, read_study
from annotation.study.labelling import join, next_items
from annotation.study.protocols import protocol_versions
from semsim.base.picture_files import read_pixels

SPEC = StudySpec(name="symbols", task=Task.RECOGNITION, votes_per_item=3, list_size=4)


def problems(store, sets, images, spec=SPEC):
    with pytest.raises(StudyError) as caught:
        create_study(store, spec, sets, images)
    assert store.read(studies.all_studies) == []
    assert not images.exists()
    return str(caught.value).splitlines()


def as_manifest(path, *sets):
    """A manifest that says what those sets say, beside them."""
    tables = []
    for folder in sets:
        table = pd.read_parquet(folder / "manifest.parquet")
        run = json.loads((folder / "run.json").read_text())
        table["model"], table["dataset"] = run["model"], run["dataset"]["name"]
        table["attack"] = run["attack"]["name"]
        for column in ("original", "reconstruction"):
            table[column] = folder.name + "/" + table[column]
        tables.append(table[list(COLUMNS)])
    pd.concat(tables).to_csv(path, index=False)
    return path


def test_a_study(store, tmp_path, images):
    sets = [write_set(tmp_path / m, model=m, failed=[3]) for m in ("a", "b")]
    study = create_study(store, SPEC, sets, images)
    assert (study.n_items, study.n_decoys, study.n_failed) == (6, 0, 2)
    assert study.models == ("a", "b")
    assert study.status is StudyStatus.RUNNING
    assert study.spec == SPEC
    assert len(list(images.iterdir())) == 3 + 6
    slots = store.read(lambda tx: tx.query(SlotRow).all())
    assert len(slots) == 6 * 3
    assert {(slot.state, slot.annotator_id) for slot in slots} == {("free", None)}


@pytest.mark.parametrize("by", [None, "eva"], ids=["no accounts", "an account"])
def test_who_made_a_study_is_on_record_where_there_are_accounts(store, tmp_path, images, by):
    study = create_study(store.by(by), SPEC, [write_set(tmp_path / "set")], images)
    (event,) = store.read(lambda tx: tx.query(EventRow).filter_by(kind="study_created").all())
    assert event.data.get("by") == by
    assert [one.by for one in protocol_versions(store, study.id)] == [by or ""]


def test_one_list_an_original_shared_by_all_models(store, tmp_path, images):
    sets = [write_set(tmp_path / m, model=m) for m in ("a", "b")]
    create_study(store, SPEC, sets, images)
    lists = store.read(lambda tx: tx.query(CandidateListRow).all())
    assert len(lists) == 4
    assert {len(row.classes) for row in lists} == {4}


def test_a_list_of_its_own_for_each_item(store, tmp_path, images):
    classes = [f"c{k:02d}" for k in range(60)]
    labels = classes[:12]
    sets = [write_set(tmp_path / m, model=m, labels=labels, classes=classes) for m in "ab"]
    spec = replace(SPEC, list_size=20, lists="item", label_originals=True, votes_per_item=1)
    study = create_study(store, spec, sets, images)
    offered = read_study(store, study.id, images).stimuli
    assert len(offered) == 36
    assert all(row["class_name"] in row["candidates"] for row in offered.to_dict("records"))
    assert offered["candidates"].map(tuple).nunique() == 36
    facts = facts_of_lists(store, study.id)
    assert facts.n_lists == 36
    assert not facts.most.too_good

    shared = create_study(store, replace(spec, lists="original"), sets, images)
    stimuli = read_study(store, shared.id, images).stimuli
    assert (
        stimuli.groupby("image_id")["candidates"].agg(lambda of: len(set(map(tuple, of)))) == 1
    ).all()
    with pytest.raises(StudyError, match="wrong words are balanced"):
        replace(spec, distractors="top")

    person = join(store, study.token, "Anna").annotator
    items = {item.item: item.candidates for item in next_items(store, person, "t", 400, START)}
    known = dict(zip(offered["item"], offered["candidates"].map(tuple), strict=True))
    assert items.items() <= known.items()


def test_the_classifier_on_the_original_chooses_the_distractors(store, tmp_path, images):
    ranked = {"original": {"sun": 0.4, "heart": 0.3, "star": 0.2, "umbrella": 0.1}}
    first = write_set(tmp_path / "a", model="a", labels=["Cat"])
    second = write_set(tmp_path / "b", model="b", labels=["Cat"], probabilities=ranked)
    create_study(store, replace(SPEC, distractors="top"), [first, second], images)
    (row,) = store.read(lambda tx: tx.query(CandidateListRow).all())
    assert row.classes == ["Cat", "heart", "star", "sun"]
    assert row.forced
    assert row.true_rank is None


def test_no_further_vote_where_the_names_of_originals_decide(store, tmp_path, images):
    names = {"label_originals": True, "headline": "as-original-named"}
    spec = replace(SPEC, extra_vote=True, **names)
    (problem,) = problems(store, [write_set(tmp_path / "a")], images, spec)
    assert "Leave the further vote out (extra_vote)" in problem


def test_lists_drawn_at_random_are_noted_with_what_they_tell(tmp_path):
    found = examine(SPEC, [write_set(tmp_path / "a")], [])
    assert "drawn at random" in found.notes[0]
    assert "Guessing from the candidate lists alone" in found.notes[1]
    sure = examine(SPEC, [write_set(tmp_path / "b", probabilities=SURE)], [])
    assert "drawn at random" not in " ".join(sure.notes)


def test_the_same_seed_makes_the_same_protocol(store, tmp_path, images):
    folder = write_set(tmp_path / "a")
    one, two = (create_study(store, SPEC, [folder], images) for _ in range(2))
    assert one.protocol == two.protocol
    assert one.token != two.token


def test_decoys_show_another_class_of_the_same_model(store, tmp_path, images):
    sets = [write_set(tmp_path / m, model=m) for m in ("a", "b")]
    study = create_study(store, StudySpec(name="p", task=Task.PAIR, decoy_rate=0.5), sets, images)
    assert (study.n_items, study.n_decoys) == (12, 4)
    rows = store.read(lambda tx: tx.query(StimulusRow).all())
    tokens = [token for row in rows for token in (row.token, row.original_token)]
    assert len(set(tokens)) == 2 * 12
    assert len(export_labels(store, study.id, images)) == 8


def test_images_do_not_depend_on_the_sets_afterwards(store, tmp_path, images):
    folder = write_set(tmp_path / "a")
    study = create_study(store, SPEC, [folder], images)
    (folder / "originals/image-000.png").unlink()
    row = export_labels(store, study.id, images).iloc[0]
    with open(row["original"], "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_attacked_images_are_kept_and_belong_to_the_labels_alone(store, tmp_path, images):
    sets = [
        write_set(tmp_path / "a", model="a", mirrored=[1]),
        write_set(tmp_path / "b", model="b"),
    ]
    study = create_study(store, SPEC, sets, images)
    plain = create_study(store, SPEC, [write_set(tmp_path / m, model=m) for m in "ab"], images)
    assert study.protocol == plain.protocol  # people see the same
    table = export_labels(store, study.id, images).set_index(["model", "image_id"])
    assert table.loc["b", "attacked"].isna().all()
    of_a = table.loc["a"]
    assert (of_a["attacked"] == of_a["original"]).tolist() == [True, False, True, True]
    assert np.array_equal(read_pixels(Path(of_a["attacked"].iloc[1])), picture(1)[:, ::-1])


def test_an_attacked_image_that_does_not_fit_is_named(store, tmp_path, images):
    folder = write_set(tmp_path / "a", mirrored=[0, 1])
    (folder / "attacked/image-000.png").unlink()
    save_png(folder / "attacked/image-001.png", picture(0, size=8))
    missing, large = problems(store, [folder], images)
    assert "No image at " in missing
    assert "attacked/image-000.png" in missing
    assert "attacked/image-001.png is 8×8, its original 6×6" in large


def test_every_problem_is_named_at_once(store, tmp_path, images):
    good, bad = write_set(tmp_path / "a", model="a"), write_set(tmp_path / "b", model="b")
    (bad / "originals/image-000.png").unlink()
    (bad / "reconstructions/image-001.png").write_bytes(b"?")
    save_png(bad / "reconstructions/image-002.png", picture(0, size=8))
    save_png(bad / "originals/image-003.png", np.zeros((6, 6, 3), np.uint8))
    text = problems(store, [good, bad, tmp_path / "nowhere"], images)
    assert len(text) == 5
    for part in ("nowhere", "No image at ", "image-001.png is not a readable",
                 "is 8×8, its original 6×6", "one id must mean one original"):  # fmt: skip
        assert any(part in line for line in text), part


def with_a_row_twice(folder):
    manifest = pd.read_parquet(folder / "manifest.parquet")
    pd.concat([manifest, manifest[:1]]).to_parquet(folder / "manifest.parquet")
    return folder


# What is said → the sets that make no study, of names below a folder.
NO_STUDY = {
    "2 sets are of model 'resnet20-4/none'": lambda at: [write_set(at / one) for one in "ab"],
    "expected one data set": lambda at: [
        write_set(at / one, model=one, dataset=one) for one in ("symbols", "faces")
    ],
    "(class 'cow') is not the image": lambda at: [
        write_set(at / one, model=one, labels=[one]) for one in ("Cat", "cow")
    ],
    "at least one reconstruction set": lambda at: [],
    "no reconstruction whose attack succeeded": lambda at: [
        write_set(at / "a", labels=["Cat"], failed=[0])
    ],
    "class 'wolf'": lambda at: [write_set(at / "a", labels=["Cat", "wolf"])],
    "2 rows for image 'image-000'": lambda at: [with_a_row_twice(write_set(at / "a"))],
    "rename the class": lambda at: [write_set(at / "a", classes=[*CLASSES, "none"])],
}


@pytest.mark.parametrize("said", NO_STUDY)
def test_sets_that_make_no_study_say_why(store, tmp_path, images, said):
    assert said in problems(store, NO_STUDY[said](tmp_path), images)[0]


def test_a_single_class_leaves_nothing_to_choose(store, tmp_path, images):
    folder = write_set(tmp_path / "a", labels=["Cat"])
    write_run(folder, classes=["Cat"])
    assert "nothing to choose" in problems(store, [folder], images)[0]
    spec = StudySpec(name="s", task=Task.PAIR)
    assert create_study(store, spec, [folder], images).n_items == 1


@pytest.mark.parametrize(
    ("classes", "words"), [([], "names no classes"), (CLASSES, "has 1 picture without a class")]
)
def test_pictures_without_a_class_are_for_tasks_that_need_none(
    store, tmp_path, images, classes, words
):
    folder = write_set(tmp_path / "a", labels=[""])
    write_run(folder, classes=[*classes])
    assert words in problems(store, [folder], images)[0]
    for task in (Task.PAIR, Task.RATING):
        study = create_study(store, StudySpec(name=task, task=task), [folder], images)
        assert study.n_items == 1


@pytest.mark.parametrize(
    ("classes", "shown", "alike"),
    [
        (CLASSES, {"anchor": "Cat"}, "'anchor', 'Cat'"),
        (CLASSES, {"anchor": "cat"}, "'anchor', 'Cat'"),
        ((*CLASSES, "chess knight"), {}, "'chess_knight', 'chess knight'"),
    ],
)
def test_classes_that_people_read_as_one_word_are_refused(
    store, tmp_path, images, classes, shown, alike
):
    folder = write_set(tmp_path / "a", classes=classes)
    spec = replace(SPEC, class_names=shown)
    (problem,) = problems(store, [folder], images, spec)
    assert re.search(f"people read as the same word, '[^']+': {alike}", problem)
    assert examine(replace(spec, task=Task.PAIR), [folder]).problems == ()  # no word is shown


@pytest.mark.parametrize("same", ["CAT", "cat\u00a0", "c\u200bat"])
def test_two_forms_of_one_word_are_refused_unless_they_are_shown_otherwise(tmp_path, same):
    folder = write_set(tmp_path / "a", classes=("cat", same, "dog"), labels=("cat", same, "dog"))
    assert any("read as the same word" in one for one in examine(SPEC, [folder]).problems)
    spec = replace(SPEC, class_names={same: "big cat"})
    assert not any("same word" in one for one in examine(spec, [folder]).problems)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *(("None", {}), (" NONE ", {}), ("none of these", {})),
        ("Keines davon", {"texts": {"label.none": "keines davon"}}),
        ("cat", {"class_names": {"cat": "None"}}),
    ],
)
def test_a_class_that_reads_as_the_answer_none_is_refused(tmp_path, name, more):
    folder = write_set(tmp_path / "a", classes=(name, "dog", "bird"), labels=(name, "dog", "bird"))
    found = examine(replace(SPEC, **more), [folder]).problems
    assert any("which is an answer; rename the class" in one for one in found)


def test_simulated_annotators_need_a_jury(store, tmp_path, images):
    spec = StudySpec(name="s", task=Task.RECOGNITION, simulated=True)
    folder = write_set(tmp_path / "a")
    assert (
        "lacks the simulated annotators' answers for 4 reconstructions"
        in problems(store, [folder], images, spec)[0]
    )


def test_simulated_annotators_cannot_compare_pairs(store, tmp_path, images):
    spec = StudySpec(name="p", task=Task.PAIR, simulated=True)
    folder = write_set(tmp_path / "set")
    (problem,) = problems(store, [folder], images, spec)
    assert "--task recognition" in problem
    assert "--simulated" in problem
    assert examine(spec, [folder]).problems == (problem,)  # a dry run says it too


def test_a_manifest_makes_the_study_that_its_sets_make(store, tmp_path, images):
    sets = [write_set(tmp_path / m, model=m, classes=["Cat", "cow", "star", "sun"]) for m in "ab"]
    manifest = as_manifest(tmp_path / "all.csv", *sets)
    from_sets = create_study(store, SPEC, sets, images)
    from_manifest = create_study(store, SPEC, [], images, [manifest])
    assert from_manifest.protocol == from_sets.protocol
    assert from_manifest.models == ("a", "b")


def test_sets_and_manifests_go_together(store, tmp_path, images):
    classes = ["Cat", "cow", "star", "sun"]
    sets = [write_set(tmp_path / m, model=m, classes=classes) for m in "ab"]
    manifest = as_manifest(tmp_path / "b.csv", sets[1])
    assert create_study(store, SPEC, sets[:1], images, [manifest]).models == ("a", "b")


def test_every_problem_of_a_manifest_is_named_with_its_row(store, tmp_path, images):
    folder = write_set(tmp_path / "a", model="a")
    manifest = as_manifest(tmp_path / "a.csv", folder)
    table = pd.read_csv(manifest)
    (folder / "originals/image-000.png").unlink()
    (folder / "reconstructions/image-001.png").write_bytes(b"?")
    save_png(folder / "reconstructions/image-002.png", picture(0, size=8))
    table.loc[3, "class_name"] = None
    pd.concat([table, table[1:2]]).to_csv(manifest, index=False)
    found = examine(SPEC, [], [manifest]).problems
    starts = [re.match(r"a.csv, row \d: ", problem)[0] for problem in found]
    assert [start[-3] for start in starts] == ["4", "5", "1", "2", "3"]
    for part in ("must not be empty", "in row 2 already", "No image at ", "is not a readable",
                 "is 8×8, its original 6×6"):  # fmt: skip
        assert any(part in problem for problem in found), part
    with pytest.raises(StudyError) as caught:
        create_study(store, SPEC, [], images, [manifest])
    assert str(caught.value).splitlines() == list(found)
    assert store.read(studies.all_studies) == []
    assert not images.exists()


def test_an_examination_counts_and_stores_nothing(tmp_path):
    sets = [write_set(tmp_path / m, model=m, failed=[3]) for m in ("a", "b")]
    found = examine(StudySpec(name="p", task=Task.PAIR, decoy_rate=0.5), sets)
    assert found.counts == {
        "target models": 2,
        "originals": 3,
        "classes": 3,
        "reconstructions": 6,
        "failed attacks left out": 2,
        "problems": 0,
        "items": 10,  # two decoys a model: one and a half, rounded
    }
    assert found.plan is not None


def test_an_examination_reports_every_problem_however_many(tmp_path):
    folder = write_set(tmp_path / "a", labels=["Cat"] * 40)
    for image in (folder / "originals").iterdir():
        image.unlink()
    found = examine(SPEC, [folder])
    assert len(found.problems) == 40
    assert set(found.problems) <= set(found.text().splitlines())
    assert found.plan is None
    assert "items" not in found.counts


def test_columns_that_are_not_used_are_noted(tmp_path):
    manifest = as_manifest(tmp_path / "m.csv", write_set(tmp_path / "a"))
    table = pd.read_csv(manifest).assign(atacked="x.png")
    table.to_csv(manifest, index=False)
    found = examine(SPEC, [], [manifest])
    assert found.problems == ()
    assert found.notes[0] == f"{manifest}: not used are the columns atacked."
    assert found.notes[0] in found.text()


def test_a_manifest_that_cannot_be_read_is_one_problem(tmp_path):
    (only,) = examine(SPEC, [], [tmp_path / "gone.csv"]).problems
    assert "gone.csv is missing" in only


def quality_spec(**more):
    asked = {"set_aside": 2, "practice": 2, "catch_rate": 0.1, "gold_rate": 0.1, **more}
    return StudySpec(name="s", task=Task.RECOGNITION, votes_per_item=2, **asked)


def gold_file(path, *rows):
    path.write_text("\n".join(["model,image_id,answer", *rows]))
    return path


def test_items_that_never_count_are_made_with_a_study(store, tmp_path, images):
    sets = [write_set(tmp_path / m, model=m) for m in ("a", "b")]
    gold = gold_file(tmp_path / "gold.csv", "a,image-000,none")
    study = create_study(store, quality_spec(), sets, images, gold=gold)
    # Four originals: two aside, and one reconstruction of the others is gold.
    assert study.n_items == 3
    stimuli = store.read(lambda tx: tx.query(StimulusRow).all())
    kinds = pd.Series([one.kind for one in stimuli]).value_counts().to_dict()
    assert kinds == {"reconstruction": 3, "catch": 4, "practice": 2, "gold": 1}
    assert {one.expected is None for one in stimuli if one.kind != "reconstruction"} == {False}
    assert all((images / f"{one.sha256}.png").exists() for one in stimuli)
    noise = [one for one in stimuli if one.expected == "none" and one.kind == "catch"]
    for one in noise:
        shown = read_pixels(images / f"{one.sha256}.png")
        original = picture(int(one.shown_image_id.removeprefix("image-")))
        assert not np.array_equal(shown, original)
        assert sorted(shown.ravel()) == sorted(original.ravel())
    counts = examine(quality_spec(), sets, gold=gold).counts
    assert (counts["items"], counts["items that never count"]) == (3, 7)


def test_the_protocol_knows_what_never_counts(tmp_path):
    sets = [write_set(tmp_path / "a", model="a")]
    plans = [
        examine(quality_spec(set_aside=1), sets, gold=gold_file(tmp_path / f"{n}.csv", row)).plan
        for n, row in enumerate(("a,image-001,cow", "a,image-001,none", "a,image-001,cow"))
    ]
    hashes = [plan.protocol for plan in plans]
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,image-000,horse", "The answer 'horse' to 'image-000' by 'a' is not offered"),
        ("c,image-000,Cat", "line 2: The sets hold no reconstruction of 'image-000' by 'c'"),
        (None, "There are 0 gold items and a gold rate of 0.1"),
    ],
)
def test_gold_that_does_not_fit(store, tmp_path, images, row, words):
    gold = gold_file(tmp_path / "gold.csv", row) if row else None
    sets = [write_set(tmp_path / "a", model="a")]
    with pytest.raises(StudyError, match=words):
        create_study(store, quality_spec(set_aside=1), sets, images, gold=gold)
    assert store.read(studies.all_studies) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("c" * 201, "has 201 letters; at most 200 can be answered"),
        ("c\0ow", "holds the control character U+0000"),
        ("c\tow", "holds the control character U+0009"),
        ("c\ud800ow", "holds U+D800, which is half a letter"),
        (" ", "is empty"),
    ],
    ids=["long", "NUL", "tab", "surrogate", "blank"],
)
def test_a_class_that_nobody_could_answer_is_refused_by_image_and_in_the_list(
    store, tmp_path, images, name, words
):
    folder = write_set(tmp_path / "a", classes=[*CLASSES, "b" * 201])
    run = json.loads((folder / "run.json").read_text())
    run["dataset"]["classes"][3] = name
    (folder / "run.json").write_text(json.dumps(run))
    if name != "c\ud800ow":  # which no table can hold
        manifest = pd.read_parquet(folder / "manifest.parquet")
        manifest.loc[1, "class_name"] = name
        manifest.to_parquet(folder / "manifest.parquet")
    found = problems(store, [folder], images)
    *of_images, third, last = [line for line in found if "does not list" not in line]
    if of_images:
        assert of_images[0].startswith(f"{folder}/manifest.parquet, image 'image-001': class_name ")
        assert words in of_images[0]
    assert third.startswith(f"{folder}/run.json, class 4: ")
    assert words in third
    assert last.startswith(f"{folder}/run.json, class 9: ")


def test_a_study_keeps_which_judge_ranked_its_words(store, tmp_path, images):
    folder = write_set(tmp_path / "a", probabilities=SURE)
    run = json.loads((folder / "run.json").read_text())
    run["predictor"] = {"name": "J", "sha256": "f" * 64}
    (folder / "run.json").write_text(json.dumps(run))
    assert create_study(store, SPEC, [folder], images).judges == ("f" * 64,)
    pairs = StudySpec(name="p", task=Task.PAIR)
    assert create_study(store, pairs, [folder], images).judges == ()
    (folder / "predictions.parquet").unlink()
    assert create_study(store, SPEC, [folder], images).judges == ()


def test_what_cameras_and_frames_did_to_a_pair_is_noted(tmp_path):
    at = write_set(tmp_path / "a")
    original = sorted((at / "originals").iterdir())[0]
    note = Image.Exif()
    note[0x0112] = 3
    with Image.open(original) as picture:
        picture.save(original, exif=note, save_all=True, append_images=[picture.copy()])
    notes = " ".join(examine(SPEC, [at]).notes)
    assert f"image {original.stem} of " in notes
    assert "turned as its camera says" in notes
    assert "More than one frame" in notes
