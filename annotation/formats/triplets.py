"""Triplets for training SemSim: original, a recognised and an unrecognised reconstruction of it.

triplets.csv, triplets.parquet    one row a triplet, paths from this folder on
images/<sha256>.png               every image once
"""

from pathlib import Path

import pandas as pd

from annotation.errors import StudyError
from annotation.formats.card import card, with_images
from annotation.formats.plain import write_csv, write_parquet
from annotation.formats.study_data import StudyData
from annotation.texts import counted

KEYS = ("study", "dataset", "image_id", "class_name", "original")
COLUMNS = {
    **{name: name for name in KEYS},
    "original": "anchor",
    "reconstruction_positive": "positive",
    "reconstruction_negative": "negative",
    "model_positive": "positive_model",
    "model_negative": "negative_model",
    "item_positive": "positive_item",
    "item_negative": "negative_item",
    **{"simulated": "simulated", "voter": "voter"},
}
IMAGES = ("anchor", "positive", "negative")
ABOUT = """
`triplets.csv` and `triplets.parquet` hold the same rows, one a triplet: `anchor` is the original,
`positive` a reconstruction of it that the majority recognised, `negative` one that the majority did
not. All pairs of a positive and a negative of one original are there. Paths start at this folder.
Originals that lack either kind, and reconstructions without a majority, make no triplet.
"""


def triplets(labels: pd.DataFrame) -> pd.DataFrame:
    """Every triplet that the decided rows of `labels` make; no two originals are ever mixed."""
    decided = labels[labels["recognisable"].notna()]
    recognised = decided["recognisable"].astype("bool")
    both = decided[recognised].merge(
        decided.loc[~recognised, [*KEYS, "item", "model", "reconstruction"]],
        on=list(KEYS),
        suffixes=("_positive", "_negative"),
    )
    return both[list(COLUMNS)].rename(columns=COLUMNS)


def write_triplets(data: StudyData, folder: Path) -> str:
    """Write the triplets with their images; raises `StudyError` where there is none."""
    table = triplets(data.labels)
    if table.empty:
        raise StudyError(
            "No original has both a reconstruction that the majority recognised and one that it "
            "did not, so there is no triplet. Collect more votes first."
        )
    relative = with_images(table, IMAGES, folder)
    write_csv(relative, folder / "triplets.csv")
    write_parquet(relative, folder / "triplets.parquet")
    (folder / "README.md").write_text(card(data, ABOUT), encoding="utf-8")
    return counted(len(table), "triplet")
