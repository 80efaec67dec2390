"""The labelling page is the widget and nothing of any study."""

import re

import gradio as gr

from annotation.ui import STATIC, STATIC_URL, label


def test_the_page_holds_the_widget_and_runs_nothing(context, make_study):
    study = make_study()
    with gr.Blocks(analytics_enabled=False) as demo:
        assert label.render(context) == []
    config = str(demo.config)
    assert "<semsim-labeller>" in config
    assert study.name not in config
    assert study.token not in config
    assert demo.fns == {}


def test_all_it_loads_is_there():
    named = re.findall(rf"{STATIC_URL}/([\w.]+)", label.HEAD + label.SCRIPT)
    scripts = [path.read_text() for path in STATIC.glob("*.js")]
    named += [name for script in scripts for name in re.findall(r'from "\./([\w.]+)"', script)]
    assert {"labeller.js", "labeller.css", "outbox.js"} <= set(named)
    assert [name for name in named if not (STATIC / name).exists()] == []


def test_nothing_is_loaded_from_elsewhere():
    texts = {path.name: path.read_text() for path in STATIC.iterdir()}
    far = {
        name
        for name, text in texts.items()
        if re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", ""))
    }
    assert far == set()
