"""The tree in which the SemSim authors published their images and labels.

    train_with_ori/<id>/<id>_<label>_ori.png           the original
    train_with_ori/<id>/<id>_<label>_rec_<k>_<m>.png   by model m, recognisable
    train_with_ori/-<id>/<id>_<label>_rec_<k>_<m>.png  by model m, not recognisable
    folder_names.txt                                   model names, one a line, from model 1 on
    class_names.txt                                    class names, one a line, from label 0 on
    ids.csv                                            which image has which id, who voted
    README.md

k is the number of counted votes that did not recognise it. The folder is the majority's word, so a
reconstruction without one has no place here and is left out; the README says how many were.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from annotation.errors import StudyError
from annotation.formats.card import card, copy_image
from annotation.formats.plain import write_csv
from annotation.formats.study_data import StudyData
from annotation.texts import counted

TREE = "train_with_ori"
MODELS, CLASSES, IDS = "folder_names.txt", "class_names.txt", "ids.csv"
ABOUT = """
`train_with_ori/<id>/` holds the original of image `<id>` and the reconstructions of it that the
majority recognised, `train_with_ori/-<id>/` those that it did not. In
`<id>_<label>_rec_<k>_<m>.png`, `k` is how many of the counted votes did not recognise it, `m` the
line of its model in `folder_names.txt`; `<label>` is the line of its class in `class_names.txt`,
counted from 0. `ids.csv` says which image has which id, whether the votes are simulated, and who
votes. {undecided} reconstructions without a majority are left out.
"""


def write_train_with_ori(data: StudyData, folder: Path) -> str:
    """Write the decided reconstructions; raises `StudyError` where there is none."""
    decided, undecided = data.decided, len(data.labels) - len(data.decided)
    decided = decided.assign(class_name=decided["class_name"].replace("", "unknown"))
    if decided.empty:
        raise StudyError(
            f"None of {undecided} reconstructions has a majority, so there is nothing to sort into "
            "recognisable and not. Collect more votes first."
        )
    models, classes = sorted(set(decided["model"])), sorted(set(decided["class_name"]))
    _write_lines(folder / MODELS, models)
    _write_lines(folder / CLASSES, classes)
    ids = _ids(decided["image_id"])
    about_ids = {"id": list(ids.values()), "image_id": list(ids)}
    spec = data.study.spec
    marked = pd.DataFrame(about_ids, dtype="str")
    marked = marked.assign(simulated=spec.simulated, voter=spec.voters)
    write_csv(marked, folder / IDS)
    for row in decided.to_dict("records"):
        number = ids[row["image_id"]]
        stem = f"{number}_{classes.index(row['class_name'])}"
        name = f"rec_{row['n_votes'] - row['n_recognised']}_{models.index(row['model']) + 1}"
        sign = "" if row["recognisable"] else "-"
        _put(Path(row["original"]), folder / TREE / number / f"{stem}_ori.png")
        _put(Path(row["reconstruction"]), folder / TREE / f"{sign}{number}" / f"{stem}_{name}.png")
    about = ABOUT.format(undecided=undecided)
    (folder / "README.md").write_text(card(data, about), encoding="utf-8")
    return f"{counted(len(decided), 'reconstruction')} ({undecided} without a majority left out)"


def _ids(image_ids: pd.Series) -> dict[str, str]:
    """The tree's ids: those of the study if all are numbers, else numbers from 1 on."""
    known = sorted(set(image_ids))
    if all(re.fullmatch("[0-9]+", one) for one in known):
        return {one: one for one in known}
    return {one: str(number) for number, one in enumerate(known, start=1)}


def _write_lines(path: Path, names: Sequence[str]) -> None:
    broken = [name for name in names if name != name.strip() or len(name.splitlines()) != 1]
    if broken:
        raise StudyError(
            f"{path.name} holds one name a line, which cannot hold the name {broken[0]!r}: empty, "
            "with a line break, or with white space around it."
        )
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _put(source: Path, target: Path) -> None:
    if not target.exists():  # an original is shared by all models
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_image(source, target)
