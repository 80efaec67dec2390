"""A folder that Hugging Face `datasets` reads as an image dataset (builder "imagefolder").

    README.md                   the dataset card
    train/metadata.jsonl        one row a reconstruction
    train/images/<sha256>.png   every image once

`file_name` becomes the column image; `original_file_name` becomes original in versions of
`datasets` that know several images a row, and stays a path in older ones.
Source: Hugging Face documentation, "Create an image dataset", ImageFolder.
"""

import json
from pathlib import Path

import pandas as pd

from annotation.formats.card import card
from annotation.formats.pictures import with_images
from annotation.formats.plain import write_jsonl
from annotation.formats.study_data import StudyData
from annotation.texts import counted

NAMES = {"reconstruction": "file_name", "original": "original_file_name"}
ABOUT = """
One row a reconstruction in `train/metadata.jsonl`: `image` (`file_name`) is the reconstruction,
`original` (`original_file_name`) what was attacked. `recognisable` is the majority of the votes,
null where there is none; `mean_response` is the share of votes that recognised it. Of ratings it is
the share at or above the threshold, and `mean_rating` decides what is recognisable. Read it with
`datasets.load_dataset("imagefolder", data_dir=...)`.
"""


def write_hugging_face(data: StudyData, folder: Path) -> str:
    """Write labels and images as an image dataset folder with a card."""
    table = _shown_only(data.labels)
    (folder / "train").mkdir()
    table = with_images(table, list(NAMES), folder / "train").rename(columns=NAMES)
    write_jsonl(table, folder / "train" / "metadata.jsonl")
    text = f"{_front_matter(data)}\n{card(data, ABOUT)}"
    (folder / "README.md").write_text(text, encoding="utf-8")
    return counted(len(table), "reconstruction")


def _shown_only(labels: pd.DataFrame) -> pd.DataFrame:
    # The attacked image is missing for many rows, and was never shown to anybody.
    rest = [name for name in labels.columns if name not in (*NAMES, "attacked")]
    return labels[[*NAMES, *rest]]


def _front_matter(data: StudyData) -> str:
    tags = ["image-reconstruction", "human-evaluation"]
    tags += ["simulated"] if data.study.spec.simulated else []
    # JSON is YAML, and quotes what a study may be called.
    return "\n".join(
        (
            "---",
            f"pretty_name: {json.dumps(data.study.name)}",
            f"tags: {json.dumps(tags)}",
            "---",
        )
    )
