"""Texture against shape: edges, silhouettes and stylised pictures, ten people each, 16 words.

Geirhos and others 2019. Trial by trial, with reaction times. The photographs behind the pictures
were not released.
"""

from pathlib import Path

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.stats.evidence import NONE_ANSWER
from semsim.base.table_files import check_columns
from semsim.people.fetching import archive_of
from semsim.people.source import SELF, Judged, Source, paired, picture_files

VOTES = "votes.csv"
RAW = "raw-data"
_IN_TIME = "na"  # the answer of who gave none in time
# A model's folder here, those of its pictures and of its trials in the repository.
_MODELS = {
    "edges": ("edges", "edge-experiment"),
    "silhouettes": ("filled-silhouettes", "silhouette-filled-experiment"),
    "stylised": ("style-transfer-preprocessed-512", "style-transfer-512-nomask-experiment"),
}
_COLUMNS = ("model", "image_id", "class_name", "annotator", "answer", "rt_s")


def _read(folder: Path) -> Judged:
    """Read the whole repository, or a folder with `votes.csv` and a folder a model.

    No answer in time is "none".
    """
    rows = _trials(folder) if (folder / RAW).is_dir() else _votes(folder)
    answer = rows["answer"].mask(rows["answer"].isin(["", _IN_TIME]), NONE_ANSWER)
    seconds = pd.to_numeric(rows["rt_s"], errors="coerce")
    rows = rows.assign(answer=answer, rt_ms=seconds * 1000).drop(columns="rt_s")
    pairs = []
    for model, (stimuli, _) in _MODELS.items():
        pictures = picture_files(folder, f"{model}/*", f"stimuli/{stimuli}/*/*")
        shown = {(model, image_id): path for image_id, path in pictures.items()}
        pairs += paired(rows[rows["model"] == model], pictures, shown)
    return Judged(pairs=pairs, votes=rows)


def _votes(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / VOTES, keep_default_na=False)
    check_columns(table, _COLUMNS, f"{folder / VOTES}", DataError)
    return table[list(_COLUMNS)].assign(where=f"{VOTES} row " + (table.index + 2).astype(str))


def _trials(folder: Path) -> pd.DataFrame:
    """Return the trials of all people; those of networks lie beside them and are left out."""
    parts = [
        _of_person(path, model)
        for model, (_, experiment) in _MODELS.items()
        for path in sorted((folder / RAW / experiment).glob("*_subject-*.csv"))
    ]
    if not parts:
        raise DataError(f"{folder / RAW} holds no trial of a person.")
    return pd.concat(parts, ignore_index=True)


def _of_person(path: Path, model: str) -> pd.DataFrame:
    table = pd.read_csv(path, keep_default_na=False)
    needed = ("subj", "rt", "object_response", "category", "imagename")
    check_columns(table, needed, f"{path}", DataError)
    shown = table["imagename"].str.removesuffix(".png").str.rpartition("_")[2]
    return pd.DataFrame(
        {
            "model": model,
            "image_id": shown,
            "class_name": table["category"],
            "annotator": f"{model}:" + table["subj"],
            "answer": table["object_response"],
            "rt_s": table["rt"],
            "where": f"{path.name} row " + (table.index + 2).astype(str),
        }
    )


_REPOSITORY = ("rgeirhos/texture-vs-shape", "ccd0c01d42c0a8a834e90ec141e7f24fa915dc23")
TEXTURE_VS_SHAPE = Source(
    name="texture-vs-shape",
    about="10 people a picture name one of 16 objects in edges, silhouettes, stylised ones",
    repository=_REPOSITORY[0],
    commit=_REPOSITORY[1],
    licence="CC BY 4.0 for the pictures; the repository states none for the trials",
    citation="Geirhos et al. 2019, ImageNet-trained CNNs are biased towards texture (ICLR)",
    files=archive_of(*_REPOSITORY),
    megabytes=524,
    tables={VOTES: "59970d385f4ac2bcf4e70dad7662588abd57f7702886bf12f48524cdd2d3ace5"},
    marks=((VOTES, "edges"), (f"{RAW}/edge-experiment", "stimuli")),
    read=_read,
    compares=False,
    note=f"The photographs were not released. {SELF}",
)
