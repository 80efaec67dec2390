"""Look of every page, and settings to mount Gradio: one place for the whole product."""

import re
from typing import Any

from annotation.ui import STATIC
from semsim.base.pages_library import gr

_FOUND = re.findall(
    r"--st-([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)",
    (STATIC / "tokens.css").read_text(encoding="utf-8"),
)
_LIGHT = {name: light for name, light, _ in _FOUND}
_DARK = {name: dark for name, _, dark in _FOUND}

_TEAL = gr.themes.Color(
    name="studio",
    c50="#effafa",
    c100="#d6f1f2",
    c200="#aee2e4",
    c300=_DARK["accent"],
    c400="#46b0b5",
    c500="#23949a",
    c600="#127a81",
    c700=_LIGHT["accent"],
    c800="#0b4a50",
    c900="#0c3d42",
    c950=_DARK["on-accent"],
)

# Where Gradio's own colours miss the contrast that WCAG asks for, or are not the product's: what it
# calls them → the token, in light and in dark.
_TOKENS = {
    "body_background_fill": "paper",
    "body_text_color": "ink",
    "body_text_color_subdued": "soft",
    "background_fill_primary": "card",
    "background_fill_secondary": "back",
    "block_background_fill": "card",
    "block_border_color": "line",
    "border_color_primary": "line",
    "block_label_text_color": "soft",
    "block_title_text_color": "ink",
    "block_info_text_color": "soft",
    "input_background_fill": "card",
    "input_border_color": "edge",
    "input_placeholder_color": "soft",
    "button_secondary_background_fill_hover": "back",
    "button_secondary_border_color": "edge",
    "button_cancel_background_fill": "danger",
    "button_cancel_background_fill_hover": "danger",
    "button_cancel_text_color": "on-danger",
    "checkbox_border_color": "edge",
    "error_text_color": "bad",
}
# The rest: in light, and in dark where that differs.
_OTHERS = {
    "block_shadow": ("none",),
    "color_accent": ("*primary_700",),
    "link_text_color": ("*primary_700", "*primary_300"),
    "link_text_color_hover": ("*primary_800", "*primary_200"),
    "link_text_color_visited": ("*primary_700", "*primary_300"),
    "link_text_color_active": ("*primary_800", "*primary_200"),
    "button_primary_background_fill": ("*primary_700", "*primary_700"),
    "button_primary_background_fill_hover": ("*primary_800", "*primary_600"),
    "button_primary_text_color": (_LIGHT["on-accent"],),
    "button_secondary_background_fill": (_LIGHT["card"], _DARK["key"]),
    "button_border_width": ("1px", "1px"),
    "checkbox_background_color_selected": ("*primary_700", "*primary_600"),
    "checkbox_border_color_selected": ("*primary_700", "*primary_300"),
    "slider_color": ("*primary_700", "*primary_400"),
}
_DARK_ONLY = {
    "checkbox_label_background_fill": _DARK["key"],
    "checkbox_label_background_fill_hover": _DARK["line"],
    "checkbox_label_background_fill_selected": _DARK["key"],
}
_TEXT = (9, 10, 12, 14, 16, 22, 26)  # Gradio's sizes, which grow with the page's on wide screens
_PAIRS = {**{name: (_LIGHT[one], _DARK[one]) for name, one in _TOKENS.items()}, **_OTHERS}
_COLOURS = {
    **{
        f"{name}{mode}": value
        for name, values in _PAIRS.items()
        for mode, value in zip(("", "_dark"), values, strict=False)
    },
    **{f"{name}_dark": value for name, value in _DARK_ONLY.items()},
}


def theme() -> gr.themes.Base:
    """The look of all pages: system fonts, a quiet background, one colour."""
    return gr.themes.Default(
        primary_hue=_TEAL,
        secondary_hue=_TEAL,
        neutral_hue="slate",
        text_size=gr.themes.Size(*(f"{px / 16:g}rem" for px in _TEXT)),
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    ).set(**_COLOURS)


def mount_settings() -> dict[str, Any]:
    """Keywords for `gr.mount_gradio_app`: the look, and everything off that no page needs."""
    return {
        "theme": theme(),
        # Once more beside the link in every page's head: Gradio's own rules outweigh that one.
        "css_paths": STATIC / "studio.css",
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "show_error": True,
        "max_file_size": "5mb",
        "enable_monitoring": False,
        "mcp_server": False,
        "app_kwargs": {"docs_url": None, "redoc_url": None, "openapi_url": None},
    }
