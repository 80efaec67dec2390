"""Gradio, without the stub of each component that it writes anew whenever it is imported."""

import inspect
from typing import Any

_find = inspect.getfile


def _no_class(object: Any) -> str:
    """Find no file of a class: Gradio writes no stub then, which is two fifths of its import."""
    if isinstance(object, type):
        raise OSError
    return _find(object)


inspect.getfile = _no_class
try:
    import gradio as gr
finally:
    inspect.getfile = _find

__all__ = ["BARE", "QUIETLY", "UNSEEN", "gr"]
# How pages hear of events: at once, and no address for others.
QUIETLY: dict[str, Any] = {"queue": False, "api_visibility": "private"}
UNSEEN: dict[str, Any] = {"show_progress": "hidden", **QUIETLY}  # and nothing shows that they do
BARE: dict[str, Any] = {"apply_default_css": False, "padding": False}  # of HTML that has its styles
