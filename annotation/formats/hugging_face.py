"""A folder that Hugging Face `datasets` reads as an image dataset (builder "imagefolder").

    README.md                   the dataset card
    train/metadata.jsonl        one row a reconstruction
    train/images/<sha256>.png   every image once

`file_name` becomes the column image; `original_file_name` becomes original in versions of
`datasets` that know several images a row, and stays a path in older ones. `votes` is a list.
Source: Hugging Face documentation, "Create an image dataset", ImageFolder, and "Dataset cards".
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.formats.card import card, with_images
from annotation.formats.plain import records, write_jsonl
from annotation.formats.study_data import UNKNOWN, StudyData
from annotation.texts import counted
from semsim.base.columns import ORIGINAL_ANSWER

NAMES = {"reconstruction": "file_name", "original": "original_file_name"}
VOTE = ("annotator", "answer", "recognised", "rt_ms")  # of each vote in the column `votes`
_SIZES = ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
ABOUT = """
One row a reconstruction in `train/metadata.jsonl`: `image` (`file_name`) is the reconstruction,
`original` (`original_file_name`) what was attacked. `recognisable` is the majority of the votes,
null where there is none; `mean_response` is the share of votes that recognised it. Of ratings it is
the share at or above the threshold, and `mean_rating` decides what is recognisable. `votes` holds
each vote that counts: annotator, answer, whether it recognised the picture, and milliseconds taken.
Where people named the originals, `original_answer` is the name that most gave: for the headline
score `as-original-named` a vote counts as recognising where its answer is that name.
Read it with `datasets.load_dataset("imagefolder", data_dir=...)`.

## Licence

The pictures keep the licence of their data set, and the votes are of whoever ran the study. The
studio knows neither, so the front matter says {}
"""
TOLD = "`{}`, as whoever exported it said."
NOT_TOLD = (
    "`unknown`: write it there, and here, before you publish this folder, or export again in a\n"
    "terminal with `--licence`, as in `--licence cc-by-4.0`."
)


def write_hugging_face(data: StudyData, folder: Path) -> str:
    """Write labels and images as an image dataset folder with a card."""
    # The attacked image is missing for many rows, and was never shown to anybody.
    rest = [name for name in data.labels.columns if name not in (*NAMES, "attacked")]
    table = data.labels[[*NAMES, *rest]]
    (folder / "train").mkdir()
    table = with_images(table, list(NAMES), folder / "train").rename(columns=NAMES)
    table = table.assign(votes=_votes_of(data, table["item"]))
    write_jsonl(table, folder / "train" / "metadata.jsonl")
    licence = NOT_TOLD if data.licence == UNKNOWN else TOLD.format(data.licence.replace("`", "'"))
    text = f"{_front_matter(data)}\n{card(data, ABOUT.format(licence))}"
    (folder / "README.md").write_text(text, encoding="utf-8")
    return counted(len(table), "reconstruction")


def _votes_of(data: StudyData, items: pd.Series) -> pd.Series:
    """The counted votes on each item, in the order of their annotators."""
    found: dict[str, list[dict[str, Any]]] = {}
    told = ["item", *VOTE, *({ORIGINAL_ANSWER} & {*data.counted})]
    for vote in records(data.counted.sort_values("annotator")[told]):
        found.setdefault(vote.pop("item"), []).append(vote)
    return items.map(lambda item: found.get(item, []))


def _front_matter(data: StudyData) -> str:
    simulated = data.study.spec.simulated
    facts = {
        "pretty_name": data.study.name,
        "license": data.licence,
        "task_categories": ["image-classification"],
        "annotations_creators": ["machine-generated" if simulated else "crowdsourced"],
        "size_categories": [_size(len(data.labels))],
        "tags": [
            *("image-reconstruction", "human-evaluation", "privacy", data.study.task.value),
            *(["model-votes" if data.study.spec.voter else "simulated"] if simulated else []),
        ],
    }
    # JSON is YAML, and quotes what a study may be called; of halves of letters YAML knows nothing.
    told = {name: json.dumps(value, ensure_ascii=False) for name, value in facts.items()}
    lines = [f"{name}: {value}" for name, value in told.items()]
    return "\n".join(("---", *lines, "---"))


def _size(n: int) -> str:
    """The word that the hub has for `n` rows."""
    return next((word for most, word in _SIZES if n < most), "n>1M")
