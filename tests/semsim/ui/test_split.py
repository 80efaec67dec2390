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

FORM = {
    "name": "mine",
    "dataset": "digits",
    "network": "small:width=8",
    "h": 2,
    "t": 1,
    "defences": ["none", "dr-ensemble", "ensembler"],
    "more": "single:sigma=0.5; ",
    "attacks": ["adaptive", "oracle"],
    "bodies": 5,
    "selected": 3,
    "defence_seeds": 2,
    "attack_seeds": 3,
    "images": 7,
    "epochs": 4,
    "ensemble_epochs": 9,
    "shadow_epochs": 6,
    "metrics": ["mse"],
}


def values(**changes):
    return [{**FORM, **changes}[field] for field in split.FIELDS]


def test_the_form_means_a_plan_that_can_be_carried_out():
    plan = check(split.plan_of_form(values()))
    assert plan.networks == ("small:width=8,h=2,t=1",)
    assert plan.defences == (
        "none",
        "dr-ensemble:bodies=5",
        "ensembler:bodies=5,selected=3",
        "single:sigma=0.5",
    )
    assert (plan.defence_seeds, plan.attack_seeds, plan.images) == ((0, 1), (0, 1, 2), 7)
    assert (plan.train.epochs, plan.train.ensemble_epochs, plan.shadow.epochs) == (4, 9, 6)
    assert plan.shadow.decoder_epochs == 6
    assert plan.metrics == ("mse",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"h": None}, "h is empty"),
        ({"name": ""}, "name is empty"),
        ({"defences": [], "more": ""}, "defences: give at least one"),
        ({"selected": 6}, "selected"),
        ({"t": 3}, "4 units"),
        ({"metrics": ["semsims:mine"]}, "semsim:<checkpoint>"),
    ],
)
def test_what_cannot_be_is_said(changes, says):
    with pytest.raises(SemsimError, match=says):
        check(split.plan_of_form(values(**changes)))


def test_a_box_that_nobody_touched_is_no_mistake():
    assert len(split.plan_of_form(values(more=None)).defences) == 3


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
