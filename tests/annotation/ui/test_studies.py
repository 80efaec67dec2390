"""The Studies page, without a browser."""

import gradio as gr
import pytest
from study_factory import write_set

from annotation.ui import StudyContext, studies


@pytest.fixture
def context(store, images, tmp_path):
    folder = write_set(tmp_path / "sets" / "one", model="one")
    return StudyContext(store=store, images=images, find_sets=lambda: [("One", folder)])


def test_the_page_keeps_no_state_and_opens_no_endpoint(context):
    with gr.Blocks(analytics_enabled=False) as demo:
        for load, outputs in studies.render(context):
            demo.load(load, None, outputs, queue=False, api_visibility="private")
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.State)]
    assert demo.get_api_info()["named_endpoints"] == {}
    assert demo.get_api_info()["unnamed_endpoints"] == {}
