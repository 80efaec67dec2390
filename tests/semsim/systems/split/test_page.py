import json
import re
from dataclasses import replace

import pytest
import torch
from made_pages import context_at
from made_splits import COST, ROW, SMALL, written

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.storage.records import write_record
from semsim.lab.settings_form import Given
from semsim.learning.default_checkpoint import FORMAT, PROMOTED_FILE
from semsim.metrics.provenance import FORMAT as NETWORK
from semsim.systems.split import page as split
from semsim.systems.split import summary
from semsim.systems.split.plan import SplitPlace, check, like, plan_of, planned, queue_split
from semsim.ui import lab_page
from semsim.weights import write_tensors

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
    plan = check(split.plan_of(given({"metrics": {"mse": {}, "semsim:mine": {}}})))
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
    assert plan.metrics == ("mse", "semsim:mine")
    assert split.plan_of(given(name=""), "free").name == "free"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"images": ""}, "Pictures judged is empty"),
        ({"name": ""}, "name"),
        ({"lists": {"datasets": {}}}, "Choose one of Pictures"),
        ({"lists": {"attacks": {}}}, "attacks: give at least one"),
        ({"lists": {"split-networks": {"small": {"t": "3", "h": "2"}}}}, "4 units"),
        ({"lists": {"split-defences": {"ensembler": {"selected": "11"}}}}, "selected"),
        ({"train.lr": "x"}, "Step size must be a number"),
    ],
)
def test_what_cannot_be_is_said(changes, says):
    with pytest.raises(SemsimError, match=says):
        check(split.plan_of(given(**changes)))


def test_an_unknown_metric_is_said():
    with pytest.raises(SemsimError, match="semsim:<checkpoint>"):
        check(split.plan_of(given({"metrics": {"semsims:mine": {}}})))


def test_a_trained_semsim_is_offered_before_the_built_in_metrics(tmp_path):
    def offered():
        html = split.metrics_html(tmp_path)
        return re.findall(r'value="([^"]+)"( checked)?', html)

    write_tensors(tmp_path / "mine.safetensors", {"x": torch.zeros(1)}, NETWORK, {})
    assert [name for name, checked in offered() if checked] == []
    write_record(tmp_path / PROMOTED_FILE, FORMAT, {"semsim": "mine"})
    assert offered()[0] == ("semsim:mine", " checked")
    names = [name for name, _ in offered()]
    assert "mse" in names
    assert "ssim" not in names


def test_the_newest_experiment_is_shown_and_its_sets_as_they_come(tmp_path):
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="cpu")
    queue_split(replace(SMALL, name="old"), place)
    job = queue_split(replace(SMALL, name="new"), place)
    plan = plan_of(jobs.open_job(tmp_path / "jobs", job.id))
    assert plan.name == "new"
    page = split.page(context_at(tmp_path))
    strip, sets, *rest = lab_page.draw(page, job)
    assert strip == ""
    assert rest[1:] == ["", ""]
    assert sets.count("<td>waiting</td>") == 1
    assert sets.count("<td>under way</td>") == 1
    folder = planned(plan, tmp_path)[0][2]
    written(folder.parent, folder.name)
    strip, sets, verdict, _, grid = lab_page.draw(page, job)
    assert strip.count("<img") == 2 * 2
    assert sets.count("<td>done</td>") == 1
    assert verdict == rest[0]
    assert "appears here when this is done" in verdict
    assert grid.count("<img") == 2 * 2
    (job.folder / "stopped.txt").touch()
    _, _, verdict, *_ = lab_page.draw(page, job)
    assert "did not finish" in verdict


def test_what_a_plan_makes_is_told(tmp_path):
    page = split.page(context_at(tmp_path))
    tiny = {
        "datasets": {"digits": {"size": "12", "count": "60"}},
        "split-networks": {"small": {"width": "2"}},
        "split-defences": {"ensembler": {"bodies": "2", "selected": "1"}},
        "attacks": {"adaptive": {}, "one-body": {}, "oracle": {}},
    }
    text = json.dumps({"fields": FORM["fields"], "lists": tiny})
    words = lab_page.plan_words(page, text)
    assert "<strong>4 systems</strong> to train" in words  # two defences, two seeds
    # Undefended one way; Ensembler through all, through each of two, and through the secret one.
    assert f"<strong>{(1 + 4) * 2 * 3} attacks, each judged on 7 pictures</strong>" in words
    assert re.search(r"Disk: up to [\d.]+ MB", words)
    assert "ime" not in words
    assert page.measured is None
    plan = split.plan_of(Given.of(text))
    assert like(replace(plan, name="old", metrics=("mse",))) == like(plan)
    wrong = lab_page.plan_words(page, json.dumps({"fields": FORM["fields"], "lists": {}}))
    assert 'role="alert"' in wrong


def test_scores_are_told_with_their_spread_and_words_are_escaped():
    html = summary.scores_html([{**ROW, "shadow_low": 0.33, "shadow_high": 0.824}])
    assert "0.500 ± 0.100" in html
    assert "33–82%" in html
    assert "95.0% (-2.0 points)" in html
    assert "needs the originals" in html
    assert "<b>" not in html
    assert "invalid" not in html


def test_an_invalid_system_is_marked_and_explained():
    bare = {**ROW, "valid": False, "attack": "", "choice": "", "ssim_mean": None, "n": 0}
    html = summary.scores_html([{**bare, "psnr_mean": None, "recognised": None}])
    assert "not attacked" in html
    assert "not trained enough" in html


def test_costs_are_told():
    html = summary.costs_html([COST])
    assert "1.00 MFLOP, 1.2 ms" in html
    assert "4,096 bytes" in html


def test_a_chosen_metric_is_a_column_of_its_own():
    html = summary.scores_html([{**ROW, "semsim:mine_mean": 0.75, "semsim:mine_sd": 0.25}])
    assert "semsim:mine</th>" in html
    assert "0.750 ± 0.250" in html
