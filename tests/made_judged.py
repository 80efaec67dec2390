"""The toy study of training with all columns that a study exports, and its votes."""

from pathlib import Path

import pandas as pd
from learning_toy import toy_labels

_KEY = ["study", "dataset", "attack", "model", "image_id", "class_name", "votes_per_item"]


def judged_labels(folder: Path, originals: int = 8, votes: int = 3) -> pd.DataFrame:
    """Labels of four models of two architectures; all annotators say the same."""
    made = toy_labels(folder, originals=originals)
    found = made["reconstruction"].str.extract(r"model-(\d)-(\w+)")
    yes = made["recognisable"].astype(int)
    return made.assign(
        attack="invgrad",
        model="net" + found[0] + "/" + found[1].str.lower(),
        class_name="texture",
        n_votes=votes,
        n_recognised=yes * votes,
        mean_response=yes.astype(float),
        votes_per_item=votes,
    )


def judged_votes(labels: pd.DataFrame) -> pd.DataFrame:
    """The votes such labels sum up."""
    rows = [
        {
            **{name: row[name] for name in _KEY},
            "kind": "reconstruction",
            "annotator": f"person {person}",
            "answer": "texture" if person < row["n_recognised"] else "none",
            "recognised": person < row["n_recognised"],
            "status": "counted",
            "simulated": True,
        }
        for _, row in labels.iterrows()
        for person in range(row["n_votes"])
    ]
    return pd.DataFrame(rows)
