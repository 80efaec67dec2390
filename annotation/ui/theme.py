"""How every page looks, and how Gradio is mounted: one place for the whole product."""

from typing import Any

import gradio as gr

from annotation.ui import STATIC

_TEAL = gr.themes.Color(
    name="studio",
    c50="#effafa",
    c100="#d6f1f2",
    c200="#aee2e4",
    c300="#7fd0d3",
    c400="#46b0b5",
    c500="#23949a",
    c600="#127a81",
    c700="#0b5c63",
    c800="#0b4a50",
    c900="#0c3d42",
    c950="#06282b",
)

# The colours differ from Gradio's where its own miss the contrast that WCAG asks for.
_COLOURS = {
    "body_background_fill": "#f6f6f3",
    "body_background_fill_dark": "#14181c",
    "body_text_color": "#1b232c",
    "body_text_color_dark": "#e7eaed",
    "body_text_color_subdued": "#57606c",
    "body_text_color_subdued_dark": "#a7b0ba",
    "background_fill_primary": "#ffffff",
    "background_fill_primary_dark": "#1e242a",
    "background_fill_secondary": "#eeefec",
    "background_fill_secondary_dark": "#191e23",
    "block_background_fill": "#ffffff",
    "block_background_fill_dark": "#1e242a",
    "block_border_color": "#d5d9de",
    "block_border_color_dark": "#39424b",
    "border_color_primary": "#d5d9de",
    "border_color_primary_dark": "#39424b",
    "block_label_text_color": "#414b56",
    "block_label_text_color_dark": "#c6cdd5",
    "block_title_text_color": "#1b232c",
    "block_title_text_color_dark": "#e7eaed",
    "block_info_text_color": "#57606c",
    "block_info_text_color_dark": "#a7b0ba",
    "block_shadow": "none",
    "input_background_fill": "#ffffff",
    "input_background_fill_dark": "#161b20",
    "input_border_color": "#868e98",
    "input_border_color_dark": "#7a848f",
    "input_placeholder_color": "#57606c",
    "input_placeholder_color_dark": "#a7b0ba",
    "color_accent": "*primary_700",
    "link_text_color": "*primary_700",
    "link_text_color_dark": "*primary_300",
    "link_text_color_hover": "*primary_800",
    "link_text_color_hover_dark": "*primary_200",
    "link_text_color_visited": "*primary_700",
    "link_text_color_visited_dark": "*primary_300",
    "link_text_color_active": "*primary_800",
    "link_text_color_active_dark": "*primary_200",
    "button_primary_background_fill": "*primary_700",
    "button_primary_background_fill_hover": "*primary_800",
    "button_primary_background_fill_dark": "*primary_700",
    "button_primary_background_fill_hover_dark": "*primary_600",
    "button_primary_text_color": "#ffffff",
    "button_secondary_background_fill": "#ffffff",
    "button_secondary_background_fill_hover": "#eeefec",
    "button_secondary_background_fill_dark": "#2b333b",
    "button_secondary_background_fill_hover_dark": "#39424b",
    "button_secondary_border_color": "#868e98",
    "button_secondary_border_color_dark": "#7a848f",
    "button_border_width": "1px",
    "button_border_width_dark": "1px",
    "button_cancel_background_fill": "#b91c1c",
    "button_cancel_background_fill_hover": "#991b1b",
    "button_cancel_background_fill_dark": "#b91c1c",
    "button_cancel_background_fill_hover_dark": "#991b1b",
    "button_cancel_text_color": "#ffffff",
    "button_cancel_text_color_dark": "#ffffff",
    "checkbox_border_color": "#868e98",
    "checkbox_border_color_dark": "#7a848f",
    "checkbox_background_color_selected": "*primary_700",
    "checkbox_background_color_selected_dark": "*primary_600",
    "checkbox_border_color_selected": "*primary_700",
    "checkbox_border_color_selected_dark": "*primary_300",
    "checkbox_label_background_fill_dark": "#2b333b",
    "checkbox_label_background_fill_hover_dark": "#39424b",
    "checkbox_label_background_fill_selected_dark": "#2b333b",
    "slider_color": "*primary_700",
    "slider_color_dark": "*primary_400",
    "error_text_color": "#a11a1a",
    "error_text_color_dark": "#ffb0a8",
}


def theme() -> gr.themes.Base:
    """The look of all pages: system fonts, a quiet background, one colour."""
    return gr.themes.Default(
        primary_hue=_TEAL,
        secondary_hue=_TEAL,
        neutral_hue="slate",
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
