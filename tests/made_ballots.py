"""Tables of votes made up for tests of the human study's statistics."""

import numpy as np
import pandas as pd

from annotation.votes.aggregate import Ballots, ballots_of
from semsim.base.columns import VOTE_COLUMNS

CLASSES = ("bear", "cat", "cow", "dog")


def vote(item, annotator, answer, *, truth="cat", **more):
    """One row of a table of votes; `item` is "model/original" or just the original."""
    model, _, original = item.rpartition("/")
    return {
        "study": "made",
        "task": "recognition",
        "item": item,
        "kind": "reconstruction",
        "model": model or "m",
        "dataset": "d",
        "attack": "a",
        "image_id": original,
        "class_name": truth,
        "annotator": annotator,
        "answer": answer,
        "recognised": answer in (truth, "same"),
        "rt_ms": 1000.0,
        "status": "counted",
        "vote_id": f"{item}-{annotator}",
        "simulated": False,
        "votes_per_item": 5,
        "headline": "majority",
        "protocol": 1,
        **more,
    }


def table(rows) -> pd.DataFrame:
    """Rows as a table with the types of an export."""
    kept = {name: kind for name, kind in VOTE_COLUMNS.items() if "datetime" not in kind}
    return pd.DataFrame(rows, columns=list(kept)).astype(kept)


def votes_of(answers, **more) -> pd.DataFrame:
    """{item: "c-d"} as votes: the annotators p0, p1, … name the class that starts so, "n" none.

    "-" is no vote.
    """
    named = {name[0]: name for name in ("ant", "bear", "cat", "dog", "none")}
    return table(
        vote(item, f"p{who}", named[mark], **more)
        for item, marks in answers.items()
        for who, mark in enumerate(marks)
        if mark != "-"
    )


def random_votes(
    seed=0, *, models=3, originals=20, annotators=5, missing=0.0, right=(0.9, 0.3)
) -> pd.DataFrame:
    """Votes by annotators who differ, on models that leak less and less."""
    draw = np.random.default_rng(seed)
    leak = np.linspace(*right, models)
    skill = draw.uniform(0.7, 1.0, annotators)
    rows = []
    for model in range(models):
        for original in range(originals):
            truth = CLASSES[original % len(CLASSES)]
            clear = draw.random() < leak[model]
            for who in range(annotators):
                if draw.random() < missing:
                    continue
                sees = clear and draw.random() < skill[who]
                said = truth if sees else draw.choice([*CLASSES, "none", "none"])
                rows.append(
                    vote(
                        f"m{model}/{original:03}",
                        f"p{who}",
                        str(said),
                        truth=truth,
                        rt_ms=float(draw.gamma(2, 800)),
                    )
                )
    return table(rows)


def ballots(votes: pd.DataFrame, *, seed=0, **more) -> Ballots:
    return ballots_of(votes, np.random.default_rng(seed), **more)
