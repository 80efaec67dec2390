"""A small study made up for tests: images on disk and the table of labels that belongs to them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from semsim.images import write_png

MODELS = ("resnet/none", "resnet/crop", "resnet/noise", "conv/none", "conv/crop", "conv/noise")
_VOTE_COLUMNS = (
    *("study", "task", "item", "model", "dataset", "attack", "image_id", "class_name"),
    *("votes_per_item", "simulated"),
)
CLASSES = ("cat", "cow", "mouse", "snowman")


def make_labels(
    folder: Path,
    *,
    models: tuple[str, ...] = MODELS,
    n_images: int = 5,
    votes: int = 5,
    side: int = 16,
    seed: int = 0,
    simulated: bool = True,
) -> pd.DataFrame:
    """Labels of a study whose later models leak less: more noise, fewer votes that recognise."""
    draw = np.random.default_rng(seed)
    rows = []
    for image in range(n_images):
        original = torch.from_numpy(draw.random((3, side, side), dtype=np.float32))
        first = folder / "originals" / f"{image:03}.png"
        write_png(original, first)
        for step, model in enumerate(models):
            share = step / max(1, len(models) - 1)
            noise = torch.from_numpy(draw.random((3, side, side), dtype=np.float32))
            second = folder / model.replace("/", "__") / f"{image:03}.png"
            write_png((1 - share) * original + share * noise, second)
            recognised = round((1 - share) * votes) if votes else 0
            rows.append(
                {
                    "study": "made",
                    "task": "recognition",
                    "item": f"{model}-{image}",
                    "model": model,
                    "dataset": "symbols",
                    "attack": "invgrad",
                    "image_id": f"{image:03}",
                    "class_name": CLASSES[image % len(CLASSES)],
                    "original": str(first),
                    "reconstruction": str(second),
                    "n_votes": votes,
                    "n_recognised": recognised,
                    "mean_response": recognised / votes if votes else np.nan,
                    "recognisable": recognised * 2 > votes if votes else pd.NA,
                    "votes_per_item": 5,
                    "simulated": simulated,
                }
            )
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def make_votes(labels: pd.DataFrame) -> pd.DataFrame:
    """The votes such labels sum up: the first of the annotators are those who recognise."""
    rows = [
        {
            **{column: row[column] for column in _VOTE_COLUMNS},
            "kind": "reconstruction",
            "annotator": f"person {person}",
            "answer": row["class_name"] if person < row["n_recognised"] else "none",
            "recognised": person < row["n_recognised"],
            "status": "counted",
            "headline": "majority",
        }
        for _, row in labels.iterrows()
        for person in range(row["n_votes"])
    ]
    columns = [*_VOTE_COLUMNS, "kind", "annotator", "answer", "recognised", "status", "headline"]
    return pd.DataFrame(rows, columns=columns)


def write_import(folder, tables, headline="majority", simulated=False):
    """Imported labels as the importers leave them; tables: data frames by name."""
    folder.mkdir(parents=True)
    record = {
        **{"format": "semsim-import/1", "name": "Their labels", "source": "a test"},
        **{"kind": "table", "headline": headline, "simulated": simulated},
        **{"counts": {}, "unread": []},
    }
    (folder / "import.json").write_text(json.dumps(record))
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
