"""Promises of every page that declares a form, a plan, a job, a table and pictures."""

import re
from dataclasses import replace
from pkgutil import resolve_name

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_pages import context_at, form_of

from semsim.attacks import ATTACKS, SHARED
from semsim.base.jobs import folders as jobs
from semsim.base.registry import read_plugin
from semsim.datasets import DATASETS
from semsim.defences import NAMED_STRATEGIES
from semsim.lab.page import FOLDER, LabPage
from semsim.lab.settings_form import Given, plugin_settings
from semsim.systems.federated import NETWORKS, TABLES
from semsim.systems.federated.settings import ARMS
from semsim.systems.split import SPLIT_DEFENCES, SPLIT_NETWORKS
from semsim.systems.split.plan import ARMS as SPLIT_ARMS
from semsim.targets import TARGETS
from semsim.ui import jobpanel, lab, lab_page, pages
from semsim.ui.lab_page import Declared

DECLARED = {address: one for _, address, one in pages.PAGES if isinstance(one, Declared)}
FORMS = {
    address: form
    for address, one in DECLARED.items()
    if (form := getattr(resolve_name(one.module), "FORM", None))
}
CARDS = [(address, *card) for address, form in FORMS.items() for card in form.offered]
LISTS = [(address, name) for address, form in FORMS.items() for name in form.lists]
PLUGINS = [(address, name) for address, name in LISTS if FORMS[address].lists[name].plugins]
# All that there is of what a list offers.
REGISTRIES = {
    ("reconstruct", "datasets"): DATASETS,
    ("reconstruct", "architectures"): TARGETS,
    ("reconstruct", "strategies"): NAMED_STRATEGIES,
    ("reconstruct", "attacks"): ATTACKS,
    ("reconstruct", "shares"): SHARED,
    ("split", "datasets"): DATASETS,
    ("split", "split-networks"): SPLIT_NETWORKS,
    ("split", "split-defences"): SPLIT_DEFENCES,
    ("split", "attacks"): SPLIT_ARMS,
    ("federated", "datasets"): {*DATASETS, *TABLES} - {"digit-values"},
    ("federated", "attacks"): ATTACKS,
    ("federated", "networks"): NETWORKS,
    ("federated", "arms"): ARMS,
}


@pytest.fixture
def context(tmp_path):
    return context_at(tmp_path)


@pytest.fixture
def client(context):
    app = FastAPI()
    declared = [one.page(context) for one in DECLARED.values()]
    app.include_router(lab.router(context, [one for one in declared if isinstance(one, LabPage)]))
    return TestClient(app)


def listed(address, name):
    return FORMS[address].lists[name]


@pytest.mark.parametrize(("address", "title", "line", "order"), CARDS)
def test_a_card_fills_the_form_with_its_order(address, title, line, order, context):
    page = DECLARED[address].page(context)
    read = page.order_of(Given.of(form_of(page.form.state(order))))
    assert (replace(read, name=order.name) if page.form.named else read) == order


@pytest.mark.parametrize("address", FORMS)
def test_the_form_opens_with_its_first_card(address, context):
    page = DECLARED[address].page(context)
    chosen = re.findall(r'data-list="([a-z-]+)" value="([^"]+)" checked', page.html)
    items = page.form.chosen(page.form.first)
    assert set(chosen) == {(name, one) for name, found in items.items() for one in found}
    for name, value in page.form.fields(page.form.first).items():
        tags = rf'<input[^>]* name="{name}"[^>]*>|<select[^>]* name="{name}".*?</select>'
        [field] = re.findall(tags, page.html, re.DOTALL)
        if value in ("true", "false"):
            assert ("checked" in field) == (value == "true")
        else:
            assert re.search(rf'value="{re.escape(value)}"(?: selected>|[^<]*>$)', field), name


@pytest.mark.parametrize("address", FORMS)
def test_without_a_job_the_page_says_so_and_has_the_button(address, context):
    page = DECLARED[address].page(context)
    strip, sets, verdict, result, *more = lab_page.draw(page, None)
    for empty in (strip, verdict):
        assert page.nothing in empty
        assert f'data-plan="{page.form.name}"' in empty
    assert (sets, result, more) == ("", "", [""] * len(page.parts))


@pytest.mark.parametrize("address", FORMS)
def test_a_card_and_the_plan_say_what_the_last_run_took_here(address, context, client, monkeypatch):
    """The card when the page is loaded again."""
    page = DECLARED[address].page(context)
    first, cards = form_of(page.form.state(page.form.first)), page.form.cards_html(context.data)
    assert cards.count("data-card=") == 3
    assert "lab-facts" not in cards
    assert "last run" not in lab_page.plan_words(page, first)
    job = page.queued(Given.of(first))
    assert jobpanel.newest(context.data / "jobs", page.form.kind) == job.id
    jobs.run_as_job(job.folder, lambda report: {"reused": 0})
    monkeypatch.setattr(jobs, "seconds_taken", lambda job: 725.0)
    told = "The last run with these settings took 12 min 5 s on this machine."
    assert told in lab_page.plan_words(page, first)
    then = page.form.cards_html(context.data)
    assert then.count('<span class="lab-facts">took 12 min 5 s here</span>') == 1
    [place] = re.findall(r'data-from="([^"]+)"', cards)
    assert client.get(place).text == then
    assert client.get(place + "x").status_code == 404


@pytest.mark.parametrize("address", FORMS)
def test_an_answer_that_is_none_is_told(address, context):
    page = DECLARED[address].page(context)
    for words in (lab_page.plan_words(page, ""), lab_page.measured_words(page, "")[0]):
        assert 'role="alert"' in words
        assert "reload the page" in words


def test_the_settings_of_a_plug_in_are_served_and_nothing_else_is(client):
    asked = {"list": "attacks", "item": "invgrad", "preset": "paper"}
    found = client.get(f"{FOLDER}/settings", params=asked)
    assert 'data-setting="steps"' in found.text
    assert 'value="4800"' in found.text
    for wrong in ({"list": "<b>"}, {"list": "strategies"}, {"item": "<b>"}, {"item": "cafe"}):
        assert client.get(f"{FOLDER}/settings", params=asked | wrong).status_code == 404
    assert "javascript" in client.get(f"{FOLDER}/lab.js").headers["content-type"]


@pytest.mark.parametrize(("address", "name"), LISTS)
def test_everything_there_is_has_words_and_a_line(address, name):
    choices = listed(address, name).choices
    assert {one.item.partition(":")[0] for one in choices} == set(REGISTRIES[address, name])
    assert len({one.item for one in choices}) == len(choices)
    lines = [one.line.partition(" Attacker ")[0] for one in choices]
    assert all(line.endswith(".") and len(line) < 60 for line in lines)
    assert all(one.title for one in choices)
    assert any(one.usual for one in choices)


@pytest.mark.parametrize(("address", "name"), PLUGINS)
def test_every_item_of_a_list_has_settings_that_say_what_they_are(address, name):
    """Each is read; two fields ask for text, and none is explained by a name of ours."""
    one = listed(address, name)
    for choice in one.choices:
        if choice.item in TABLES:
            continue
        plugin = read_plugin(resolve_name(one.plugins), choice.item)
        settings = plugin_settings(one.plugins, choice.item, "fast")
        assert set(plugin.settings) <= {field.name for field in settings}
        texts = {field.label for field in settings if field.kind == "text"}
        assert texts <= {"Folder", "Parameters"}
        for field in settings:
            name_of_ours = r"[Aa]s in (\w+\.)?[A-Z][a-z]+[A-Z]|lent_curvature"
            assert not re.search(name_of_ours, field.text), field
        assert lab.title_of([one], choice.item) == choice.title
