"""Part of the Studies page: the versions of a study's protocol, and making a new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from annotation.domain import ProtocolVersion
from annotation.errors import AnnotationError
from annotation.study import protocols, setting_texts
from annotation.study.exports import facts_of_lists
from annotation.study.labelling import get_study
from annotation.study.protocols import AMENDABLE
from annotation.ui import StudyContext, study_view
from annotation.ui.study_form import html
from annotation.web.templates import fill

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
        spec = get_study(context.store, study).spec
        return gr.Textbox(value=setting_texts.as_text(getattr(spec, setting)), info=_info(setting))

    def save(
        study: str, setting: str | None, value: str, why: str, request: gr.Request
    ) -> list[Any]:
        try:
            changes = {setting: setting_texts.value_of(setting, value.strip())} if setting else {}
            protocols.amend(context.store.by(request.username), study, changes, why)
        except AnnotationError as error:
            return [study_view.problems(str(error)), *[gr.skip()] * 4]
        return ["", *show(study)]

    shown = [panel.versions, panel.setting, panel.value, panel.why]
    chosen.change(show, chosen, shown, **QUIETLY)
    panel.setting.input(pick, [chosen, panel.setting], panel.value, **QUIETLY)
    given = [chosen, panel.setting, panel.value, panel.why]
    panel.save.click(save, given, [panel.problems, *shown], **TELLING)


def _info(setting: str) -> str:
    return setting_texts.HELP[setting]


def _versions(context: StudyContext, study: str) -> str:
    if not study:
        return ""
    lists = facts_of_lists(context.store, study)
    versions = protocols.protocol_versions(context.store, study)
    return versions_table(versions, lists.said if lists else ())


def versions_table(versions: Sequence[ProtocolVersion], lists: Sequence[str] = ()) -> str:
    """Every version with what it changed, when, by whom and why; what is said of the `lists`."""
    shown = [(version, _changes(version)) for version in versions]
    return fill("versions.html", versions=shown, lists=lists)


def _changes(version: ProtocolVersion) -> str:
    return ", ".join(
        f"{name} = {setting_texts.as_text(getattr(version.spec, name)) or '(empty)'}"
        for name in version.changed
    )
