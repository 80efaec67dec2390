"""Part of the Studies page: the versions of a study's protocol, and making a new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from annotation.domain import ProtocolVersion
from annotation.errors import AnnotationError
from annotation.study import labelling as studies
from annotation.study import settings
from annotation.study.protocols import AMENDABLE
from annotation.ui import StudyContext, study_view
from annotation.ui.study_form import html

TELLING: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
QUIETLY: dict[str, Any] = {"queue": False, **TELLING}


@dataclass(frozen=True, kw_only=True)
class ProtocolPanel:
    """The components: what has been in force, and a form to change one setting."""

    versions: gr.HTML
    setting: gr.Dropdown
    value: gr.Textbox
    why: gr.Textbox
    save: gr.Button
    problems: gr.HTML


def draw() -> ProtocolPanel:
    """Lay the panel out where the caller stands."""
    with gr.Accordion("Protocol", open=False, elem_id="study-protocol"):
        versions = html("protocol-versions")
        with gr.Row():
            setting = gr.Dropdown(
                sorted(AMENDABLE), value=None, label="Change a setting", elem_id="protocol-setting"
            )
            value = gr.Textbox("", label="New value", lines=1, elem_id="protocol-value")
            why = gr.Textbox("", label="Why", lines=1, elem_id="protocol-why")
        problems = html("protocol-problems")
        save = gr.Button("Save as a new version", elem_id="protocol-save")
    return ProtocolPanel(
        versions=versions, setting=setting, value=value, why=why, save=save, problems=problems
    )


def wire(context: StudyContext, chosen: gr.Textbox, panel: ProtocolPanel) -> None:
    """Tie the panel to the store; `chosen` holds the id of the study on screen."""

    def show(study: str) -> list[Any]:
        return [_versions(context, study), None, "", ""]

    def pick(study: str, setting: str | None) -> Any:
        if not study or not setting:
            return gr.Textbox(value="", info=None)
        spec = studies.get_study(context.store, study).spec
        return gr.Textbox(value=settings.as_text(getattr(spec, setting)), info=_info(setting))

    def save(
        study: str, setting: str | None, value: str, why: str, request: gr.Request
    ) -> list[Any]:
        try:
            changes = {setting: settings.value_of(setting, value.strip())} if setting else {}
            studies.amend(context.store, study, changes, why, request.username or "")
        except AnnotationError as error:
            return [study_view.problems(str(error)), *[gr.skip()] * 4]
        return ["", *show(study)]

    shown = [panel.versions, panel.setting, panel.value, panel.why]
    chosen.change(show, chosen, shown, **QUIETLY)
    panel.setting.input(pick, [chosen, panel.setting], panel.value, **QUIETLY)
    given = [chosen, panel.setting, panel.value, panel.why]
    panel.save.click(save, given, [panel.problems, *shown], **TELLING)


def _info(setting: str) -> str:
    return settings.HELP[setting]


def _versions(context: StudyContext, study: str) -> str:
    return versions_table(studies.protocol_versions(context.store, study)) if study else ""


def versions_table(versions: Sequence[ProtocolVersion]) -> str:
    """Every version with what it changed, when, by whom and why."""
    heads = "".join(
        f'<th scope="col">{name}</th>' for name in ("Version", "From", "Changed", "Why", "SHA-256")
    )
    return (
        '<div class="st-scroll" role="region" aria-label="Protocol versions" tabindex="0">'
        '<table class="st-table" aria-label="Protocol versions">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(map(_row, versions))}</tbody></table>"
        '</div><p class="st-facts">Every vote says under which version its item was shown. What '
        "decides the items, the question or the headline never changes.</p>"
    )


def _row(version: ProtocolVersion) -> str:
    changed = ", ".join(
        f"{name} = {settings.as_text(getattr(version.spec, name)) or '(empty)'}"
        for name in version.changed
    )
    by = f" ({version.by})" if version.by else ""
    cells = (
        str(version.version),
        f"{version.at:%Y-%m-%d %H:%M} UTC{by}",
        changed or "as made",
        version.why or "–",
        version.sha256[:12],
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
