"""The look is legible: the colours that carry text have the contrast WCAG AA asks for."""

import inspect
import re
from pathlib import Path

import gradio as gr
import pytest

from annotation.ui.theme import mount_settings, theme

ROOT = Path(__file__).parents[3]
PAIRS = [
    ("body_text_color", "body_background_fill"),
    ("body_text_color", "block_background_fill"),
    ("body_text_color_subdued", "body_background_fill"),
    ("body_text_color_subdued", "background_fill_secondary"),
    ("block_info_text_color", "block_background_fill"),
    ("block_label_text_color", "block_background_fill"),
    ("link_text_color", "body_background_fill"),
    ("link_text_color", "background_fill_secondary"),
    ("button_primary_text_color", "button_primary_background_fill"),
    ("button_primary_text_color", "button_primary_background_fill_hover"),
    ("button_cancel_text_color", "button_cancel_background_fill"),
    ("input_placeholder_color", "input_background_fill"),
    ("error_text_color", "block_background_fill"),
]


def luminance(colour: str) -> float:
    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colour_of(name: str, dark: bool) -> str:
    look = theme()
    value = getattr(look, f"{name}_dark" if dark else name, None) or getattr(look, name)
    while value.startswith("*"):
        value = getattr(look, value[1:])
    return {"white": "#ffffff", "black": "#000000"}.get(value, value)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_stands_out_from_its_ground(text, ground, dark):
    one, two = sorted(luminance(colour_of(name, dark)) for name in (text, ground))
    assert (two + 0.05) / (one + 0.05) >= 4.5


def test_fonts_are_those_of_the_system():
    css = theme()._get_theme_css()
    assert "system-ui" in css
    assert "@import" not in css
    assert "http" not in css.replace("http://www.w3.org/2000/svg", "")


def test_the_settings_are_ones_gradio_has_and_switch_off_what_is_not_needed():
    settings = mount_settings()
    assert set(settings) <= set(inspect.signature(gr.mount_gradio_app).parameters)
    for name in ("run_history", "ssr_mode", "enable_monitoring", "mcp_server"):
        assert settings[name] is False
    assert settings["footer_links"] == []


def test_colours_stand_in_one_file():
    """All else names them; Gradio's scale of one colour is its theme's, less what has a name."""
    tokens = (ROOT / "annotation/ui/static/tokens.css").read_text("utf-8")
    named = set(re.findall(r"#[0-9a-f]{6}", tokens))
    assert {"#f6f6f3", "#0b5c63"} <= named
    own = {"#000000", "#ffffff"}  # behind a picture, by the protocol
    elsewhere = {}
    for room in ("annotation/ui", "annotation/web", "semsim/ui", "semsim/lab", "semsim/systems"):
        for path in (ROOT / room).rglob("*"):
            if path.suffix in (".css", ".html", ".py", ".js") and path.name != "tokens.css":
                text = re.sub(r"&#\w+;", "", path.read_text("utf-8"))
                found = set(re.findall(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b(?!-)", text))
                elsewhere[path.name] = found & named if path.name == "theme.py" else found
    assert elsewhere.pop("labeller.css") == own
    assert {name: found for name, found in elsewhere.items() if found} == {}


def test_type_is_a_scale_in_one_file():
    """Nine sizes from small to large, in rem; no style file has another."""
    static = ROOT / "annotation/ui/static"
    tokens = (static / "tokens.css").read_text("utf-8")
    sizes = [float(one) for one in re.findall(r"--st-text-\d: ([\d.]+)rem;", tokens)]
    assert len(sizes) == 9
    assert sizes == sorted(set(sizes))
    others = [path for path in static.glob("*.css") if path.name != "tokens.css"]
    text = "\n".join(path.read_text("utf-8") for path in others)
    given = re.findall(r"font(?:-size)?: ([^;}]+)", text)
    assert len(given) > 50
    assert [one for one in given if one != "inherit" and "var(--st-text-" not in one] == []
    assert not re.search(r"--st-(text|space)-\d:", text)


def test_letters_of_gradio_grow_with_those_of_the_page():
    css = theme()._get_theme_css()
    assert {*re.findall(r"--text-(?:md|lg): ([^;]+);", css)} == {"0.875rem", "1rem"}
