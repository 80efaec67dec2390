import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_campaign import SYMBOLS, toy_campaign
from made_pictures import blocky

from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.base.jobs.orders import from_record, to_record
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import (
    Campaign,
    choose_images,
    make_plan,
)
from semsim.datasets.folder import Folder
from semsim.datasets.symbols import Symbols
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings

TEST = Symbols(train_per_class=1, test_per_class=2)("test")
ATTACKS = ("invgrad:steps=5", "invgrad:steps=6", "dlg")
ARCHITECTURES = ("cnn-small:width=4", "cnn-small:width=8")


def plan(campaign):
    return make_plan(campaign, dict.fromkeys(campaign.datasets, TEST))


def keys(campaign):
    return {cell.key for cell in plan(campaign).cells}


@settings(max_examples=8)  # every plan counts the parameters of its networks
@given(
    attacks=st.lists(st.sampled_from(ATTACKS), min_size=1, max_size=3, unique=True),
    architectures=st.lists(st.sampled_from(ARCHITECTURES), min_size=1, max_size=2, unique=True),
    seeds=st.lists(st.integers(0, 5), min_size=1, max_size=2, unique=True),
    images=st.integers(1, 6),
)
def test_a_grid_has_every_combination_once(attacks, architectures, seeds, images):
    campaign = toy_campaign(
        attacks=tuple(attacks),
        architectures=tuple(architectures),
        seeds=tuple(seeds),
        images=images,
    )
    made = plan(campaign)
    targets = len(architectures) * len(seeds) * 2  # strategies
    assert len({target.key for target in made.targets}) == targets
    assert len(made.sets) == targets * len(attacks)
    assert len({s.folder for s in made.sets}) == len({s.model for s in made.sets}) == len(made.sets)
    assert len(made.cells) == len(keys(campaign)) == len(made.sets) * images
    # A target shared by several attacks is one target.
    assert {s.target.key for s in made.sets} == {target.key for target in made.targets}


@given(st.permutations(ATTACKS), st.permutations(ARCHITECTURES))
def test_keys_do_not_depend_on_order_or_company(attacks, architectures):
    everything = keys(toy_campaign(attacks=tuple(attacks), architectures=tuple(architectures)))
    alone = keys(toy_campaign(attacks=(attacks[0],), architectures=(architectures[0],)))
    assert alone < everything
    assert everything == keys(toy_campaign(attacks=ATTACKS, architectures=ARCHITECTURES))


CHANGES = {
    "training": {"train": TrainSettings(epochs=2)},
    "strategy": {"strategies": ("crop-flip:padding=3", "gradient-noise")},
    "architecture": {"architectures": ("cnn-small:width=5,activation=tanh",)},
    "attack": {"attacks": ("invgrad:steps=31",)},
    "seed": {"seeds": (1,)},
    "data": {"datasets": ("symbols:train_per_class=2,test_per_class=1",)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_determines_a_result_changes_its_key(change):
    assert not keys(toy_campaign()) & keys(toy_campaign(**change))


def test_other_pixels_under_the_same_id_are_other_cells():
    campaign = toy_campaign()
    darker = replace(TEST, images=TEST.images * 0.9)
    other = {cell.key for cell in make_plan(campaign, {SYMBOLS: darker}).cells}
    assert not other & keys(campaign)


def test_what_does_not_determine_it_leaves_the_key():
    spelt_out = "cnn-small:activation=tanh,width=4"
    assert keys(toy_campaign(architectures=(spelt_out,))) == keys(toy_campaign())
    assert keys(toy_campaign(name="other", together=1)) == keys(toy_campaign())
    assert keys(toy_campaign(attacks=("invgrad:lr=0.1,steps=30",))) == keys(toy_campaign())


def test_a_strategy_of_several_parts_is_one_however_it_is_spelt():
    spellings = (
        "crop-flip & gradient-noise:std=0.01",
        "crop-flip:padding=4 & gradient-noise:std=1e-2",
        "crop-flip & gradient-noise:std=0.02",
    )
    first, same, other = (keys(toy_campaign(strategies=(one,))) for one in spellings)
    assert first == same
    assert not first & other


def test_models_are_compared_on_the_same_random_numbers():
    made = plan(toy_campaign(attacks=ATTACKS, seeds=(0, 1)))
    draws = {(s.target.seed, cell.image_id): cell.draw for s in made.sets for cell in s.cells}
    assert all(
        cell.draw == draws[s.target.seed, cell.image_id] for s in made.sets for cell in s.cells
    )
    assert len(set(draws.values())) == 6  # another for each image and seed


def test_batches_hold_each_cell_once():
    quick = toy_campaign(attacks=("invgrad:steps=5",), images=5, together=2)
    (first, second) = plan(quick).sets
    assert [len(batch) for batch in first.batches()] == [2, 2, 1]
    assert tuple(cell for batch in second.batches() for cell in batch) == second.cells
    (slow, _) = plan(toy_campaign(attacks=("rgap",), images=3)).sets
    assert [len(batch) for batch in slow.batches()] == [1, 1, 1]  # it takes one at a time
    (large, _) = plan(toy_campaign(architectures=("resnet20-4",))).sets
    # Its gradients, one an image, would not fit beside each other.
    assert large.together == 32_000_000 // large.seen["of"] < 16


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"torchvision"}))
def test_parameters_are_counted_without_making_them(name):
    made = toy_campaign(architectures=(name,), strategies=("none",))
    (planned,) = plan(made).sets
    body, width = TARGETS[name]().build(3, (32, 32))
    counted = sum(one.numel() for one in body.parameters()) + (width + 1) * len(TEST.classes)
    assert planned.seen == {"parameters": counted, "of": counted}


@given(st.integers(1, 93))
def test_more_images_keep_those_of_fewer(count):
    few = choose_images(TEST, toy_campaign(images=count))
    more = choose_images(TEST, toy_campaign(images=count + 1))
    assert more.ids[:count] == few.ids
    assert len(set(few.labels.tolist())) == min(count, 47)  # classes in turn


def test_images_can_be_named_and_must_exist():
    wanted = (TEST.ids[5], TEST.ids[2])
    named = choose_images(TEST, toy_campaign(image_ids=wanted))
    assert named.ids == wanted
    assert torch.equal(named.images[0], TEST.images[5])
    with pytest.raises(DataError, match="no test image 'nobody'"):
        choose_images(TEST, toy_campaign(image_ids=("nobody",)))
    with pytest.raises(DataError, match="has 94 test images; the campaign asks for 95"):
        choose_images(TEST, toy_campaign(images=95))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../up"}, "cannot name a campaign"),
        ({"attacks": ()}, "no attacks"),
        ({"seeds": (1, 1)}, "seeds name one twice"),
        ({"image_ids": (TEST.ids[0], TEST.ids[0])}, "image_ids name one twice"),
        (
            {"strategies": ("noise", "gradient-noise:std=0.001,apply_at=both")},
            "strategies name one twice: noise",
        ),
        ({"strategies": ("none", " none")}, "strategies name one twice: none"),
        ({"attacks": ("invgrad", "invgrad ")}, "attacks name one twice: invgrad"),
        ({"images": 0}, "at least one image"),
        ({"together": 0}, "together=0"),
        ({"attacks": ("invgrad:speed=3",)}, "no setting 'speed'"),
        ({"strategies": ("dp-sgd",)}, "without it: cnn4, lenet or cnn3"),
    ],
)
def test_a_campaign_that_cannot_be_says_why(change, words):
    with pytest.raises(SettingsError, match=words):
        plan(toy_campaign(**change))


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="cnn-small"):
        plan(toy_campaign(architectures=("cnn-tiny",)))


def test_a_campaign_survives_json():
    campaign = toy_campaign(seeds=(3, 4), image_ids=("a",), train=TrainSettings(epochs=7, lr=0.3))
    assert from_record(Campaign, json.loads(json.dumps(to_record(campaign)))) == campaign


def test_each_training_has_targets_of_its_own_and_says_so():
    made = plan(toy_campaign(strategies=("none",), trainings=("", "until=0.3", "lr=0.5")))
    assert [target.plan.label for target in made.targets] == [
        "cnn-small/none",
        "cnn-small/none/until=0.3",
        "cnn-small/none/lr=0.5",
    ]
    assert [target.plan.train.until for target in made.targets] == [1.0, 0.3, 1.0]
    assert len({target.key for target in made.targets}) == 3
    with pytest.raises(SettingsError, match="has no setting 'until_'"):
        plan(toy_campaign(trainings=("until_=0.3",)))


def test_several_folders_are_called_by_their_names_and_by_their_paths_only_where_these_are_one():
    def called(*datasets):
        made = plan(toy_campaign(strategies=("none",), datasets=datasets))
        return [target.plan.label.removesuffix("/cnn-small/none") for target in made.targets]

    mine, other = "folder:root=/home/anna/mine,size=8", "folder:root=/home/anna/other"
    assert called(mine, other, SYMBOLS) == ["mine", "other", "symbols"]
    again = "folder:root=/elsewhere/mine,size=8"
    assert called(mine, again) == [mine, again]
    assert called(mine, mine.replace("8", "9")) == ["mine:size=8", "mine:size=9"]


def test_what_is_shared_is_an_axis_and_leaves_other_keys_alone():
    ways = ("gradient", "batch-gradient:batch=2", "update:steps=2,batch=2", "update:batch=4")
    made = plan(toy_campaign(shares=ways, images=4))
    assert len(made.sets) == 2 * len(ways)  # strategies
    assert len({s.folder for s in made.sets}) == len({s.model for s in made.sets}) == len(made.sets)
    assert len({cell.key for cell in made.cells}) == len(made.cells)
    alone = plan(toy_campaign(images=4))
    assert [s.model for s in alone.sets] == [
        s.model for s in made.sets if s.shared.name == "gradient"
    ]
    assert {cell.key for cell in alone.cells} < {cell.key for cell in made.cells}
    assert made.sets[2].model.endswith("/update:steps=2,batch=2/invgrad")
    # Images and seeds decide what is drawn, whatever is shared.
    assert len({tuple(cell.draw for cell in s.cells) for s in made.sets}) == 1


def test_what_comes_back_of_a_picture_depends_on_the_company_of_its_client():
    first, second = (
        plan(toy_campaign(shares=("update:batch=2",), image_ids=ids)).sets[0].cells
        for ids in (TEST.ids[:4], (*TEST.ids[:2], TEST.ids[2], TEST.ids[4]))
    )
    assert [a.key == b.key for a, b in zip(first, second, strict=True)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("together", [1, 3, 4, 16])
def test_clients_are_attacked_whole(together):
    (made, _) = plan(toy_campaign(shares=("update:batch=2",), images=6, together=together)).sets
    assert [len(client) for client in made.clients()] == [2, 2, 2]
    assert all(len(batch) % 2 == 0 for batch in made.batches())
    assert sum(made.batches(), ()) == made.cells


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"shares": ()}, "no shares"),
        ({"shares": ("update:batch=2",)}, "3 images make no whole number of clients"),
        ({"threat": "A"}, "invgrad needs basic knowledge of pictures and the labels"),
        ({"threat": "Z"}, "threat must be a letter"),
        ({"shares": ("gradient:parameters=lora",)}, "no parameter that 'lora' stands for"),
        (
            {"shares": ("gradient:parameters=last",), "attacks": ("rgap",)},
            "rgap needs the gradient of every layer",
        ),
        ({"shares": ("update",), "attacks": ("rgap",)}, "rgap works on the gradient of one"),
        ({"shares": ("update",), "attacks": ("invgrad", "copa")}, "copa works on the gradient"),
        (
            {"shares": ("batch-gradient:batch=3",), "strategies": ("dp-sgd:apply_at=attack",)},
            "batch norm mixes",
        ),
    ],
)
def test_what_cannot_be_shared_or_attacked_so_is_said_before_anything_runs(changes, told):
    with pytest.raises(SettingsError, match=told):
        plan(toy_campaign(**changes))


def folder_of_pictures(root):
    for number, name in enumerate(("train/a/x", "train/b/x", "test/a/x", "test/b/x")):
        blocky(root / f"{name}.png", number, (32, 32))
    return f"folder:root={root}"


def test_other_files_in_a_folder_are_other_targets(tmp_path):
    campaign = toy_campaign(datasets=(folder_of_pictures(tmp_path),), images=2)
    before, again = plan_of(campaign), plan_of(campaign)
    assert again.targets == before.targets
    blocky(tmp_path / "train/c/new.png", 9, (32, 32))  # only in training
    after = plan_of(campaign)
    assert after.images[campaign.datasets[0]].ids == before.images[campaign.datasets[0]].ids
    assert not {one.key for one in after.targets} & {one.key for one in before.targets}
    assert not {one.key for one in after.cells} & {one.key for one in before.cells}


def test_one_folder_is_one_however_its_path_is_written(tmp_path, monkeypatch):
    whole = folder_of_pictures(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    ways = (whole, f"{whole}/", "folder:root=own", "folder:root=./own/")
    keys = [plan_of(toy_campaign(datasets=(way,), images=2)).targets[0].key for way in ways]
    assert len({*keys}) == 1
    folder_of_pictures(tmp_path / "other")
    assert (
        plan_of(toy_campaign(datasets=("folder:root=other",), images=2)).targets[0].key != keys[0]
    )


def test_looking_at_the_files_of_a_folder_takes_one_look_a_plan(tmp_path, monkeypatch):
    campaign = toy_campaign(datasets=(folder_of_pictures(tmp_path),), images=2, seeds=(0, 1, 2))
    looks = []
    content = Folder.content
    monkeypatch.setattr(Folder, "content", lambda self: (looks.append(1), content(self))[1])
    assert len(plan_of(campaign).targets) == 6
    assert len(looks) == 1
