"""A plan is a pure function of its sets and spec."""

from collections import Counter
from itertools import product

import pytest

from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.domain import StimulusKind
from annotation.spec import StudySpec, Task

CLASSES = ("cat", "cow", "star")


def plan(task=Task.RECOGNITION, classes=CLASSES, asked="012345", **spec):
    originals = [
        Original(image_id=str(i), class_name=CLASSES[i % 3], sha256=f"o{i}") for i in range(6)
    ]
    return plan_study(
        StudySpec(name="s", task=task, **spec),
        dataset="symbols",
        classes=classes,
        originals=originals,
        reconstructions=[
            Reconstruction(
                image_id=o.image_id,
                class_name=o.class_name,
                model=model,
                attack="invgrad",
                sha256=f"{model}{o.image_id}",
                error=float(o.image_id),
            )
            for model in ("a", "b")
            for o in originals
            if o.image_id in asked
        ],
        n_failed=1,
    )


def test_recognition_has_one_list_an_original_shared_by_all_models():
    made = plan(list_size=2)
    assert set(made.candidates) == {o.image_id for o in made.originals}
    assert len(made.items) == 12
    assert made.models == ("a", "b")


def test_pairs_have_decoys_and_no_lists():
    made = plan(Task.PAIR, decoy_rate=0.5)
    assert not made.candidates
    decoys = [item for item in made.items if item.kind is StimulusKind.DECOY]
    assert len(decoys) == 6
    for item in decoys:
        original = made.originals[int(item.image_id)]
        assert item.shown.class_name != original.class_name
        assert item.quality == made.items[[i.shown for i in made.items].index(item.shown)].quality


def test_pairs_of_many_classes_have_no_lists_either():
    assert not plan(Task.PAIR, [*CLASSES, *map(str, range(40))], decoy_rate=0.5).candidates


def test_the_protocol_changes_with_what_people_see_and_only_then():
    assert plan().protocol == plan().protocol
    assert plan(password="x").protocol == plan().protocol
    assert plan(list_size=2, seed=1).protocol != plan(list_size=2, seed=2).protocol
    assert plan(votes_per_item=3).protocol != plan().protocol


def test_strata_are_within_a_model():
    made = plan()
    of_a = [item.quality for item in made.items if item.shown.model == "a"]
    assert of_a == [item.quality for item in made.items if item.shown.model == "b"]
    assert set(of_a) == {0, 1, 2, 3}


def test_models_take_turns_over_the_originals():
    made = plan()
    assert made.n_cells == 2
    for image_id in {item.image_id for item in made.items}:
        of_one = [c for i, c in zip(made.items, made.cells, strict=True) if i.image_id == image_id]
        assert sorted(of_one) == [0, 1]
    assert plan(balanced=False).cells == (0,) * 12


@pytest.mark.parametrize("seed", range(8))
def test_every_block_has_each_model_equally_often_also_where_originals_are_set_aside(seed):
    made = plan(seed=seed, asked="0134")
    each = Counter(zip(made.cells, (item.shown.model for item in made.items), strict=True))
    assert each == dict.fromkeys(product(range(2), "ab"), 2)


def test_originals_are_items_of_no_model_in_a_cell_of_their_own():
    made = plan(label_originals=True)
    originals = [item for item in made.items if item.kind is StimulusKind.ORIGINAL]
    assert [item.image_id for item in originals] == [o.image_id for o in made.originals]
    assert [item.shown.sha256 for item in originals] == [o.sha256 for o in made.originals]
    assert made.cells[-6:] == (2,) * 6
    assert made.models == ("a", "b")
    assert plan(label_originals=True, balanced=False).cells == (0,) * 12 + (1,) * 6
