"""A folder that Label Studio imports: tasks with one annotation an annotator.

    tasks.json            what to import
    annotated.json        the same as Label Studio exports it: who answered is the annotator
    config.xml            the labelling interface that the answers belong to
    images/<sha256>.png   every image once

Every kind of task becomes Choices. Label Studio's Pairwise asks which of two is better, left or
right, which is not the question whether two show the same; its Rating begins at no star, and does
not say what the ends of a scale are called. An annotation of `tasks.json` names no `completed_by`,
as Label Studio refuses people it does not know; the annotator's name is in `meta.text` of the
result, which Label Studio keeps. In `annotated.json` it is `completed_by`, from which
label-studio-sdk's converter fills `annotator`.
Source: Label Studio documentation, "Label Studio JSON format of annotated tasks", tags Choices and
Image, "local storage".
"""

import json
from pathlib import Path
from typing import Any

from annotation.domain import StimulusKind
from annotation.formats.card import card, with_images
from annotation.formats.plain import records
from annotation.formats.study_data import StudyData
from annotation.texts import counted

ADDRESS = "/data/local-files/?d="
# Items that nobody has a counted answer to, ever.
NEVER_COUNTED = (StimulusKind.PRACTICE, StimulusKind.CATCH, StimulusKind.GOLD)
ANSWER, SHOWN = "answer", "image"  # names of the tags in config.xml
_CHOICES = f"""  <Image name="{SHOWN}" value="$image"/>
  <Choices name="{ANSWER}" toName="{SHOWN}" choice="single" value="$choices"/>
</View>
"""
_ALONE = f"<View>\n{_CHOICES}"
_BESIDE = f"""<View style="display: flex">
  <Image name="original" value="$original"/>
{_CHOICES}"""
ABOUT = """
Make a project with `config.xml` as its labelling interface and import `tasks.json`. Images are
addressed as local files: start Label Studio with `LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true`
and `LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT` set to this folder. Add the folder `images` in it
as a local storage of the project. Only votes that count are there. `meta.text` of a result is the
annotator.

`annotated.json` has the same tasks in the form in which Label Studio exports them, with the
annotator in `completed_by`: for programs that read such exports. Label Studio imports it only where
it knows an account under each of these names.
"""


def write_label_studio(data: StudyData, folder: Path) -> str:
    """Write what counts as tasks with the counted votes as annotations, and the images."""
    tasks = label_studio_tasks(data, folder)
    _write(tasks, folder / "tasks.json")
    _write([_as_exported(task) for task in tasks], folder / "annotated.json")
    (folder / "config.xml").write_text(
        _BESIDE if data.study.kind.beside else _ALONE, encoding="utf-8"
    )
    (folder / "README.md").write_text(card(data, ABOUT), encoding="utf-8")
    return f"{counted(len(tasks), 'task')} with {counted(len(data.counted), 'annotation')}"


def _write(tasks: list[dict[str, Any]], path: Path) -> None:
    text = json.dumps(tasks, ensure_ascii=False, allow_nan=False, indent=1)
    path.write_text(text, encoding="utf-8")


def _as_exported(task: dict[str, Any]) -> dict[str, Any]:
    """`task` with who made each annotation, where Label Studio puts it: a person is an address."""
    named = [
        {**one, "completed_by": {"email": one["result"][0]["meta"]["text"][0]}}
        for one in task["annotations"]
    ]
    return {**task, "annotations": named}


def label_studio_tasks(data: StudyData, folder: Path) -> list[dict[str, Any]]:
    """The tasks as JSON values, their images copied into `folder`."""
    votes: dict[str, list[dict[str, Any]]] = {}
    for number, vote in enumerate(records(data.counted), start=1):
        votes.setdefault(vote["item"], []).append(_annotation(number, vote))
    shown = ["shown", "original"] if data.study.kind.beside else ["shown"]
    asked = ~data.stimuli["kind"].isin(NEVER_COUNTED)
    stimuli = with_images(data.stimuli[asked], shown, folder)
    return [
        {
            "id": number,
            "data": _task_data(data, stimulus, shown),
            "annotations": votes.get(stimulus["item"], []),
        }
        for number, stimulus in enumerate(stimuli.to_dict("records"), start=1)
    ]


def _task_data(data: StudyData, stimulus: dict[Any, Any], shown: list[str]) -> dict[str, Any]:
    offered = data.study.kind.offered(stimulus["candidates"])
    return {
        **{SHOWN if name == "shown" else name: f"{ADDRESS}{stimulus[name]}" for name in shown},
        "choices": [{"value": one} for one in offered],
        **{n: stimulus[n] for n in ("item", "kind", "model", "attack", "image_id", "class_name")},
        "study": data.study.name,
        "simulated": data.study.spec.simulated,
        "voter": data.study.spec.voters,
    }


def _annotation(number: int, vote: dict[str, Any]) -> dict[str, Any]:
    taken = {} if vote["rt_ms"] is None else {"lead_time": vote["rt_ms"] / 1000}
    result = {
        "id": vote["vote_id"],
        "from_name": ANSWER,
        "to_name": SHOWN,
        "type": "choices",
        "value": {"choices": [vote["answer"]]},
        "meta": {"text": [vote["annotator"]]},
    }
    return {
        "id": number,
        "result": [result],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": vote["server_ts"],
        **taken,
    }
