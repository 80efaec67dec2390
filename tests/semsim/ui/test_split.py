import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from semsim.errors import SemsimError
from semsim.jobs import folders as jobs
from semsim.kept.whole import write_json
from semsim.learning.card_promoted import PROMOTED_FILE
from semsim.split.plan import PRESETS, SplitPlace, check
from semsim.split.split_job import KIND, plan_of, queue_split
from semsim.ui import jobpanel, split
from semsim.ui.settings_form import Given

FORM = {
    "fields": {
        "name": "mine",
        "defence_seeds": "2",
        "attack_seeds": "3",
        "images": "7",
        "train.epochs": "4",
        "train.ensemble_epochs": "9",
        "shadow.epochs": "6",
    },
    "lists": {
        "datasets": {"digits": {}},
        "split-networks": {"small:width=16": {"width": "8", "h": "2"}},
        "split-defences": {
            "dr-ensemble:bodies=4": {"bodies": "5"},
            "ensembler:bodies=4,selected=2": {"bodies": "5", "selected": "3"},
            "single": {"sigma": "0.5"},
        },
        "attacks": {"adaptive": {}, "oracle": {}},
    },
}


def given(lists=None, **fields):
    return Given(fields=FORM["fields"] | fields, lists=FORM["lists"] | (lists or {}))


def test_the_form_means_a_plan_that_can_be_carried_out():
    plan = check(split.plan_of_form(given(), ["mse"]))
    assert plan.networks == ("small:width=8,h=2",)
    assert plan.defences == (
        "none",  # without it nothing can be said of a defence
        "dr-ensemble:bodies=5",
        "ensembler:bodies=5,selected=3",
        "single:sigma=0.5",
    )
    assert plan.attacks == ("adaptive", "oracle")
    assert (plan.defence_seeds, plan.attack_seeds, plan.images) == ((0, 1), (0, 1, 2), 7)
    assert (plan.train.epochs, plan.train.ensemble_epochs, plan.shadow.epochs) == (4, 9, 6)
    assert plan.shadow.decoder_epochs == 6
    assert plan.metrics == ("mse",)


def test_the_form_is_the_small_preset_with_a_few_defences():
    html = split.form_html()
    for name, value in (("train.epochs", 8), ("shadow.epochs", 12), ("images", 48)):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', html)
    chosen = re.findall(r'data-list="([a-z-]+)" value="([^"]+)" checked', html)
    assert ("datasets", "digits") in chosen
    assert ("split-defences", "ensembler:bodies=4,selected=2") in chosen
    assert len(chosen) == 1 + 3 + 2 + 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"images": ""}, "Images judged is empty"),
        ({"name": ""}, "name"),
        ({"lists": {"datasets": {}}}, "Choose the pictures"),
        ({"lists": {"attacks": {}}}, "attacks: give at least one"),
        ({"lists": {"split-networks": {"small": {"t": "3", "h": "2"}}}}, "4 units"),
        ({"lists": {"split-defences": {"ensembler": {"selected": "11"}}}}, "selected"),
        ({"train.lr": "x"}, "Step size must be a number"),
    ],
)
def test_what_cannot_be_is_said(changes, says):
    with pytest.raises(SemsimError, match=says):
        check(split.plan_of_form(given(**changes)))


def test_an_unknown_metric_is_said():
    with pytest.raises(SemsimError, match="semsim:<checkpoint>"):
        check(split.plan_of_form(given(), ["semsims:mine"]))


def test_a_trained_semsim_is_offered_before_the_built_in_metrics(tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "mine.safetensors", {"kind": "semsim"})
    assert split.offered_metrics(tmp_path).value == []
    write_json(tmp_path / PROMOTED_FILE, {"semsim": "mine"})
    offered = split.offered_metrics(tmp_path)
    assert offered.choices[0] == ("semsim:mine", "semsim:mine")
    assert offered.value == ["semsim:mine"]
    names = [value for _, value in offered.choices]
    assert "mse" in names
    assert "ssim" not in names


def test_a_page_without_experiments_says_what_to_do(tmp_path):
    assert jobpanel.newest(tmp_path, KIND) is None
    assert "No experiment has been run" in split.outcome_html(None)


def test_the_newest_experiment_is_shown_and_an_unfinished_one_has_no_result(tmp_path):
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="cpu")
    queue_split(replace(PRESETS["small"], name="old"), place)
    job = queue_split(replace(PRESETS["small"], name="new"), place)
    assert jobpanel.newest(tmp_path / "jobs", KIND) == job.id
    assert plan_of(jobs.open_job(tmp_path / "jobs", job.id)).name == "new"
    assert split.outcome_html(job) == ""
