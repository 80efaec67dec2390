import json
import re
from dataclasses import replace

import pytest
import torch
from made_pages import context_at, form_of
from made_splits import SMALL, written

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.storage.records import write_record
from semsim.learning.default_checkpoint import FORMAT, PROMOTED_FILE
from semsim.metrics.provenance import FORMAT as NETWORK
from semsim.systems.split.plan import KIND, SplitPlace, check, plan_of, queue_split
from semsim.ui import jobpanel, lab_page, split
from semsim.ui.settings_form import Given
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


def test_the_form_opens_with_the_first_card(tmp_path):
    html = split.form_html(tmp_path)
    for name, value in (("train.epochs", 8), ("shadow.epochs", 12), ("images", 24)):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', html)
    chosen = re.findall(r'data-list="([a-z-]+)" value="([^"]+)" checked', html)
    assert sorted(chosen) == [
        ("attacks", "adaptive-aligned"),
        ("datasets", "digits"),
        ("split-defences", "none"),
        ("split-defences", "single"),
        ("split-networks", "small:width=16"),
    ]
    assert 'value="none" checked data-fixed disabled' in html


@pytest.mark.parametrize(("title", "line", "plan"), split.FORM.offered)
def test_a_card_fills_the_form_with_its_experiment(title, line, plan):
    assert split.plan_of(Given.of(form_of(split.FORM.state(plan)))) == plan


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"images": ""}, "Pictures judged is empty"),
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


def test_a_page_without_experiments_says_what_to_do_and_has_the_button(tmp_path):
    page = split.page(context_at(tmp_path))
    assert jobpanel.newest(tmp_path, KIND) is None
    strip, sets, verdict, result, grid = lab_page.draw(page, None, 1)
    for empty in (strip, verdict):
        assert "No experiment has been run" in empty
        assert 'data-plan="split"' in empty
    assert (sets, result, grid) == ("", "", "")


def test_the_newest_experiment_is_shown_and_its_sets_as_they_come(tmp_path):
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="cpu")
    queue_split(replace(SMALL, name="old"), place)
    job = queue_split(replace(SMALL, name="new"), place)
    assert jobpanel.newest(tmp_path / "jobs", KIND) == job.id
    plan = plan_of(jobs.open_job(tmp_path / "jobs", job.id))
    assert plan.name == "new"
    page = split.page(context_at(tmp_path))
    strip, sets, *rest = lab_page.draw(page, job, 1)
    assert strip == ""
    assert rest[1:] == ["", ""]
    assert sets.count("<td>waiting</td>") == 1
    assert sets.count("<td>under way</td>") == 1
    folder = split.planned(plan, tmp_path)[0][2]
    written(folder.parent, folder.name)
    strip, sets, verdict, _, grid = lab_page.draw(page, job, 1)
    assert strip.count("<img") == 2 * 2
    assert sets.count("<td>done</td>") == 1
    assert verdict == rest[0]
    assert "stands here when this is done" in verdict
    assert grid.count("<img") == 2 * 2
    (job.folder / "stopped.txt").touch()
    _, _, verdict, *_ = lab_page.draw(page, job, 1)
    assert "not come to its end" in verdict


def test_what_a_plan_makes_is_told_and_what_the_last_like_it_took(tmp_path, monkeypatch):
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
    asked = replace(split.plan_of(Given.of(text)), name="old", metrics=("mse",))
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="cpu")
    ran(queue_split(asked, place))
    monkeypatch.setattr(jobs, "seconds_taken", lambda job: 725.0)
    words = lab_page.plan_words(page, text)
    assert "The last run with these settings took 12 min 5 s on this machine." in words
    wrong = lab_page.plan_words(page, json.dumps({"fields": FORM["fields"], "lists": {}}))
    assert 'role="alert"' in wrong


def test_a_card_says_what_its_last_run_took_here(tmp_path, monkeypatch):
    assert split.FORM.cards_html(tmp_path).count("data-card=") == 3
    assert "lab-facts" not in split.FORM.cards_html(tmp_path)
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="cpu")
    ran(queue_split(replace(split.FIRST_LOOK, name="old"), place))
    monkeypatch.setattr(jobs, "seconds_taken", lambda job: 47.0)
    cards = split.FORM.cards_html(tmp_path)
    assert cards.count('<span class="lab-facts">took 47 s here</span>') == 1


def ran(job):
    """End a job at once, as if it had done its work."""
    jobs.run_as_job(job.folder, lambda report: {"reused": 0})
