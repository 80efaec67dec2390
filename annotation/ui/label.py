"""The labelling page: one custom element, which does everything else by itself."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from annotation.ui import STATIC_URL, StudyContext

HEAD = f'<link rel="stylesheet" href="{STATIC_URL}/labeller.css">'
# Gradio drops type="module" from scripts in `head`; importing from a script is allowed anywhere.
SCRIPT = f"import('{STATIC_URL}/labeller.js');"


def render(context: StudyContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Put the widget on the page; it asks `web.api` who is signed in, so nothing loads."""
    del context  # the page is the same for everybody: nothing of a study may be part of it
    gr.HTML(
        "<semsim-labeller></semsim-labeller>",
        head=HEAD,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id="labeller",
    )
    return []
