"""What every page promises, whatever it shows."""

from collections import Counter

import gradio as gr
import pytest
from gradio.helpers import special_args
from starlette.routing import Mount
from studio import compose
from study_factory import fresh_database

from annotation.store import Store
from semsim.ui.pages import PAGES

NOBODY = gr.Request(username=None, query_params={}, cookies={}, headers={"host": "127.0.0.1"})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """All pages of the studio, as the product composes them, where there is nothing to show."""
    folder = tmp_path_factory.mktemp("pages")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        (studio,) = (
            one.app.get_blocks()
            for one in compose(store, folder)._app.routes
            if isinstance(one, Mount) and one.path == "/studio"
        )
        yield studio


def test_every_page_is_there(drawn):
    addresses = [address for address, *_ in drawn.pages]
    assert addresses == ["", *(address for _, address, _ in PAGES)]


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
