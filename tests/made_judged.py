"""The toy study of training with all columns that a study exports, its votes, and a training."""

import shutil
from functools import partial
from pathlib import Path

import learning_toy
import pandas as pd
from learning_toy import toy_labels
from made_once import code, made_once

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.learning import TrainSettings
from semsim.learning.ablations_run import (
    JudgedOrder,
    Material,
    TrainingJob,
    Workplace,
    do_training,
    queue_judged,
)
from semsim.learning.settings import Order
from semsim.learning.splits import HoldOut

QUICK = TrainSettings(backbone="lenet", lr=0.005, epochs=2, batch_size=8, triplets_per_original=2)

_KEY = ["study", "dataset", "attack", "model", "image_id", "class_name", "votes_per_item"]


def judged_labels(folder: Path, originals: int = 8, votes: int = 3, seed: int = 0) -> pd.DataFrame:
    """Labels of four models of two architectures; all annotators say the same."""
    made = toy_labels(folder, originals=originals, seed=seed)
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


def finished_training(folder: Path, data: Path) -> Job:
    """The job of a small training that is done; its SemSim and its card are in `folder`.

    It was trained once, see `made_once`; its pictures stay where that is.
    """
    made_of = [Path(__file__), Path(learning_toy.__file__), *code("semsim")]
    made = made_once("semsim", made_of, _train)
    for kept, place in ((made / "checkpoints", folder), (made / "jobs", data / "jobs")):
        shutil.copytree(kept, place, dirs_exist_ok=True)
        for path in place.rglob("*.json"):
            told = path.read_text("utf-8").replace(str(made / "checkpoints"), str(folder))
            path.write_text(told, "utf-8")
    (job,) = (made / "jobs").iterdir()
    return jobs.read_job(data / "jobs" / job.name)


def _train(made: Path) -> None:
    labels, checkpoints = judged_labels(made / "images", originals=6), made / "checkpoints"
    order = Order(name="mine", checkpoints=checkpoints, settings=QUICK, study="Demo study")
    place = Workplace(checkpoints=checkpoints, scores=made / "scores", device="cpu")
    asked = JudgedOrder(order=order, hold_out=HoldOut())
    job = queue_judged(asked, Material(labels=labels), place, made / "jobs")
    jobs.run_as_job(job.folder, partial(do_training, jobs.read_order(job, TrainingJob), job.folder))
