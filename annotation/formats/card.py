"""Files that lie beside an exported table: the facts of a study in words, and the images."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from annotation.domain import Study
from annotation.errors import NotFoundError
from annotation.formats.study_data import StudyData
from semsim.base.words import in_markdown, jury_words, voters_words

SIMULATED = (
    "**Simulated votes: no person answered.** They come from five networks, the "
    "simulated annotators, and show nothing about people."
)

MODEL = (
    "**Votes of a model: no person answered.** They come from the vision-language model {} and "
    "say nothing about what people recognise."
)


def card(data: StudyData, contents: str) -> str:
    """A README in Markdown; its first line says so where the votes are simulated.

    Args:
        contents: What lies beside it, in Markdown.
    """
    study = data.study
    model = study.spec.voter
    mark = MODEL.format(in_markdown(model)) if model else f"{SIMULATED} {jury_words()}"
    top = [mark, ""] if study.spec.simulated else []
    facts = [f"- {name}: {value}" for name, value in _facts(data)]
    return "\n".join([*top, f"# {in_markdown(study.name)}", "", *facts, "", contents.strip(), ""])


def one_line(text: str) -> str:
    """`text` without line breaks, which would end a heading or an item of a list."""
    return " ".join(text.split())


def _facts(data: StudyData) -> list[tuple[str, str]]:
    study, verdicts = data.study, data.labels["recognisable"]
    counts = verdicts.value_counts()
    return [
        ("Question", "; ".join((study.task.value, *map(in_markdown, study.kind.terms)))),
        ("Data set", in_markdown(study.dataset)),
        ("Target models", "; ".join(_model(study, model) for model in study.models)),
        ("Reconstructions", f"{len(verdicts)} of {data.labels['image_id'].nunique()} originals"),
        ("Left out because the attack failed", str(study.n_failed)),
        ("Votes wanted for each", str(study.spec.votes_per_item)),
        ("Votes that count", f"{len(data.counted)} by {data.counted['annotator'].nunique()}"),
        (f"Recognisable by {study.kind.decides}", str(counts.get(True, 0))),
        (f"Unrecognisable by {study.kind.decides}", str(counts.get(False, 0))),
        (f"No {study.kind.decides} (yet)", str(int(verdicts.isna().sum()))),
        ("Headline score", study.spec.headline.value),
        *((("Candidate lists", in_markdown(" ".join(data.lists))),) if data.lists else ()),
        ("Annotators", _annotators(study)),
        ("Protocol (SHA-256)", study.protocol),
    ]


def _model(study: Study, model: str) -> str:
    """A model, how good it was at its own task, and who attacked it, as far as known."""
    test = study.target(model)
    known = [test.text] if test.accuracy is not None else []
    known += [f"attacker {in_markdown(test.attacker)}"] if test.attacker else []
    return ": ".join([in_markdown(model), *([", ".join(known)] if known else [])])


def _annotators(study: Study) -> str:
    if study.spec.simulated:
        return in_markdown(voters_words(study.spec.voters)) if study.spec.voter else "simulated"
    return (
        "people, under the names they chose or the ids a recruiting service gave them: put others "
        "in their place before you publish this folder"
    )


FOLDER = "images"


def with_images(table: pd.DataFrame, columns: Sequence[str], folder: Path) -> pd.DataFrame:
    """`table` with the images of `columns` copied into `folder`/images, and paths from `folder` on.

    Files keep their names, the SHA-256 of their content, so each is there once. Raises
    `NotFoundError` for an image that is gone.
    """
    paths = pd.unique(pd.concat([table[name].dropna() for name in columns], ignore_index=True))
    (folder / FOLDER).mkdir()
    for path in map(Path, paths):
        copy_image(path, folder / FOLDER / path.name)
    below = {path: f"{FOLDER}/{Path(path).name}" for path in paths}
    return table.assign(**{name: table[name].map(below).astype("str") for name in columns})


def copy_image(source: Path, target: Path) -> None:
    """Copy one image as it is; raises `NotFoundError` where it is gone."""
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise NotFoundError(f"The image file {source.name} is gone from {source.parent}.") from None
