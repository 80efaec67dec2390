"""The People page, without a browser; `tests/e2e/test_people_page.py` uses it."""

import gradio as gr
import pytest

from annotation.ui import StudyContext, people


@pytest.fixture
def context(store, images):
    return StudyContext(store=store, images=images, find_sets=list)


def test_the_page_keeps_no_state_and_opens_no_endpoint(context):
    with gr.Blocks(analytics_enabled=False) as demo:
        for load, outputs in people.render(context):
            demo.load(load, None, outputs, queue=False, api_visibility="private")
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.State)]
    assert demo.get_api_info()["named_endpoints"] == {}
    assert demo.get_api_info()["unnamed_endpoints"] == {}
