"""What every page promises, whatever it shows."""

import html
import re
from collections import Counter
from pathlib import Path

import gradio as gr
import pytest
from fastapi.testclient import TestClient
from gradio.helpers import special_args
from starlette.routing import Mount
from studio import compose
from study_factory import fresh_database

from annotation.spec import SETTINGS
from annotation.store import Store
from annotation.ui import results_view
from semsim.lab import markup
from semsim.lab.settings_form import plugin_settings
from semsim.reporting import report
from semsim.reporting.glossary import glossary
from semsim.reporting.not_run import NOT_RUN, SECTIONS
from semsim.ui.pages import PAGES

ROOT = Path(__file__).parents[2]
FIELDS = [one for one in SETTINGS.values() if one.at]

# By page: the reproductions of the papers it is about.
PAPERS = {
    "reconstruct": ("semsim", "deployed", "everything", "threats"),
    "audit": ("copa",),
    "split": ("ensembler",),
    "federated": ("pbpfl",),
}

NOBODY = gr.Request(username=None, query_params={}, cookies={}, headers={"host": "127.0.0.1"})


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The product where there is nothing to show."""
    folder = tmp_path_factory.mktemp("pages")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        yield compose(store, folder)._app


@pytest.fixture(scope="module")
def drawn(app):
    """All pages of the studio, as the product composes them."""
    mounted = [one for one in app.routes if isinstance(one, Mount) and one.path == "/studio"]
    return mounted[0].app.app.get_blocks()


def test_every_page_is_there(drawn):
    addresses = [address for address, *_ in drawn.pages]
    assert addresses == ["", *(address for _, address, _ in PAGES)]


def test_the_side_bar_has_every_page(app):
    bar = TestClient(app, base_url="http://127.0.0.1").get("/studio/frame").text
    lacking = [address for _, address, _ in PAGES if f'href="/studio/{address}' not in bar]
    assert lacking == []


def test_no_page_keeps_a_state_or_opens_an_endpoint(drawn):
    assert not [block for block in drawn.blocks.values() if isinstance(block, gr.State)]
    info = drawn.get_api_info()
    assert (info["named_endpoints"], info["unnamed_endpoints"]) == ({}, {})
    assert {one.api_visibility for one in drawn.fns.values()} == {"private"}


def test_where_errors_are_told_on_the_page_nothing_waits_in_a_queue(drawn):
    queued = {one.page for one in drawn.fns.values() if one.queue}
    assert queued.isdisjoint({"audit", "reconstruct", "train"})


def test_no_two_parts_of_a_page_have_one_id(drawn):
    ids = Counter((one.page, one.elem_id) for one in drawn.blocks.values() if one.elem_id)
    assert [part for part, count in ids.items() if count > 1] == []


def test_every_page_opens_where_there_is_nothing_to_show(drawn):
    opening = [one for one in drawn.fns.values() if "load" in {event for _, event in one.targets}]
    assert {"", *(one.page for one in opening)} == {address for address, *_ in drawn.pages}
    for one in opening:
        given = [block.value for block in one.inputs]
        told = one.fn(*special_args(one.fn, given, request=NOBODY)[0])
        assert len(one.outputs) == 1 or len(told) == len(one.outputs), one.name


@pytest.mark.parametrize("page", PAPERS)
def test_a_page_ends_with_what_of_its_papers_was_not_run_folded(drawn, page):
    *_, foot = [block for block in drawn.blocks.values() if block.page == page and block.visible]
    assert foot.value.lstrip().startswith('<details class="lab-not-run"><summary>')
    told = html.unescape(foot.value)
    parts = [one for name in PAPERS[page] for one in NOT_RUN[name]]
    assert re.findall("<li>(.*?)</li>", told) == [f"{one.what}: {one.why}." for one in parts]
    assert re.findall("<h2.*?>(.*?)</h2>", told) == [SECTIONS[name] for name in PAPERS[page]]


def test_what_was_not_run_of_a_paper_stands_on_one_page():
    assert sorted(name for names in PAPERS.values() for name in names) == sorted(SECTIONS)


def terms_in(text):
    return set(re.findall(r'data-term="([^"{]+)"', text))


@pytest.fixture(scope="module")
def explained(app, drawn):
    """The words with an (i), by page: those that Gradio draws, and the page of a new study."""
    found = {address: set() for address, *_ in drawn.pages}
    for block in drawn.blocks.values():
        if isinstance(block, gr.HTML) and block.value:
            found[block.page] |= terms_in(str(block.value))
    page = TestClient(app).get("/studio/new").text
    assert page.count("data-setting=") >= len(FIELDS)
    return {**found, "new": terms_in(page)}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (
            "train",
            {"SemSim", "triplet", "margin", "held out", "initial weights", "shuffled votes", "AUC"},
        ),
        (
            "new",
            {
                "candidate list",
                "distractor model",
                "decoy",
                "gold item",
                "blind repeat",
                "carry-over",
            },
        ),
        ("reconstruct", {"gradient inversion", "target model", "distractor model"}),
        ("audit", {"c(M)"}),
        ("split", {"split inference"}),
        ("federated", {"masked model"}),
    ],
)
def test_a_page_explains_its_words(explained, page, words):
    assert words <= explained[page]


def test_every_word_that_is_explained_is_in_the_glossary_and_the_glossary_has_no_other(explained):
    templates = [
        path for folder in ("semsim", "annotation") for path in (ROOT / folder).rglob("*.html")
    ]
    used = set().union(
        *explained.values(), *(terms_in(path.read_text("utf-8")) for path in templates)
    )
    named = {one.term for one in plugin_settings("semsim.attacks:ATTACKS", "invgrad") if one.term}
    used |= named | set(markup.WORDS) | set(results_view.TERMS.values()) | set(report.TERMS)
    assert used == set(glossary())
