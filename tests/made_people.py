"""Small copies of public sources of judgements, made here: no picture of theirs is in them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from semsim.people.cifar import CIFAR10
from semsim.people.recurrent import CONDITIONS

OBJECTS = ("banana1", "banana2", "cat1", "cat2", "tree3", "tree4", "bird5", "bird6")
SIDE = 16


def draw(path: Path, seed: int, noise: float = 0.0) -> None:
    """A grey picture of one seed, with noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    smooth = np.random.default_rng(seed).random((4, 4)).repeat(SIDE // 4, 0).repeat(SIDE // 4, 1)
    rng = np.random.default_rng((seed, round(1000 * noise)))
    mixed = (1 - noise) * smooth + noise * rng.random((SIDE, SIDE))
    Image.fromarray((255 * mixed).astype(np.uint8)).save(path)


def rates() -> pd.DataFrame:
    """Shares that fall from one condition to the next; the control's is the highest."""
    shares = np.linspace(0.97, 0.55, len(CONDITIONS))
    return pd.DataFrame({"condition": CONDITIONS, "accuracy": shares, "sem": 0.004})


def made_recurrent(folder: Path) -> Path:
    """The form with a table and a folder a condition; noisier where fewer people are right."""
    for place, condition in enumerate(CONDITIONS):
        name = "originals" if place == 0 else condition
        for seed, image_id in enumerate(OBJECTS):
            draw(folder / name / f"{image_id}.png", seed, 0.05 * place)
    table = rates()
    table.to_csv(folder / "rates.csv", index=False)
    rng = np.random.default_rng(0)
    rows = [
        (person, condition, float(np.clip(share + rng.normal(0, 0.02), 0, 1)), 900.0)
        for person in range(12)
        for condition, share in zip(table["condition"], table["accuracy"], strict=True)
        if rng.random() < 0.6
    ]
    persons = pd.DataFrame(rows, columns=["person", "condition", "accuracy", "rt_ms"])
    persons.to_csv(folder / "people.csv", index=False)
    return folder


def made_recurrent_repository(folder: Path) -> Path:
    """The form of the authors' repository, as its pages describe it."""
    for place, condition in enumerate(CONDITIONS):
        below = condition.replace("partial_viewing", "occluder").replace("few_large", "few-large")
        below = below.replace("many_small", "many-small").replace("_", "/").replace("-", "_")
        for seed, image_id in enumerate(OBJECTS):
            draw(folder / "stimuli" / below / f"{image_id}.png", seed, 0.05 * place)
    table = rates()
    path = folder / "data/processed/perf_vectors.pkl"
    path.parent.mkdir(parents=True)
    vectors = {"accuracy": list(table["accuracy"]), "sem accuracy": table["sem"].to_numpy()}
    path.write_bytes(pickle.dumps(vectors))
    return folder


SHOWN = (("edges", "edge-experiment", "edges"),)
SHOWN += (("silhouettes", "silhouette-filled-experiment", "filled-silhouettes"),)
SHOWN += (("stylised", "style-transfer-512-nomask-experiment", "style-transfer-preprocessed-512"),)


def trials(model: str) -> pd.DataFrame:
    """Three people and four pictures; the third person misses one in time, or is wrong."""
    names = [f"{one}-bear1" if model == "stylised" else one for one in ("cat1", "cat2", "dog1")]
    rows = [
        (name, name[:3], f"subject-0{who}", name[:3] if (who, place) != (3, 0) else "na", 0.9)
        for who in (1, 2, 3)
        for place, name in enumerate(names)
    ]
    table = pd.DataFrame(rows, columns=["image_id", "class_name", "subject", "answer", "rt_s"])
    table["rt_s"] = table["rt_s"].mask(table["answer"] == "na")
    wrong = (table["subject"] == "subject-03") & (table["image_id"].str.startswith("dog"))
    return table.assign(answer=table["answer"].mask(wrong, "bear"))


def made_shape(folder: Path) -> Path:
    """The form with one table of votes and a folder a kind of picture."""
    parts = []
    for model, _, _ in SHOWN:
        own = trials(model)
        for seed, name in enumerate(own["image_id"].unique()):
            draw(folder / model / f"{name}.png", seed)
        parts.append(own.assign(model=model, annotator=f"{model}:" + own["subject"]))
    columns = ["model", "image_id", "class_name", "annotator", "answer", "rt_s"]
    pd.concat(parts)[columns].to_csv(folder / "votes.csv", index=False)
    return folder


def made_shape_repository(folder: Path) -> Path:
    """The form of the authors' repository: a file a person, a network's file beside them."""
    for model, experiment, stimuli in SHOWN:
        own = trials(model)
        for seed, name in enumerate(own["image_id"].unique()):
            draw(folder / "stimuli" / stimuli / name[:3] / f"{name}.png", seed)
        place = folder / "raw-data" / experiment
        place.mkdir(parents=True)
        for subject, rows in own.groupby("subject"):
            _trial_file(rows, str(subject)).to_csv(
                place / f"{experiment}_{subject}_session_1.csv", index=False, na_rep="NaN"
            )
        network = _trial_file(own[own["subject"] == "subject-01"], "vgg")
        network.to_csv(place / f"{experiment}_vgg_session_1.csv", index=False)
    return folder


def _trial_file(rows: pd.DataFrame, subject: str) -> pd.DataFrame:
    numbers = range(1, len(rows) + 1)
    named = [
        f"{n:04d}_edg_s01_0_{true}_00_{name}.png"
        for n, true, name in zip(numbers, rows["class_name"], rows["image_id"], strict=True)
    ]
    return pd.DataFrame(
        {
            **{"subj": subject, "session": 1, "trial": numbers},
            "rt": rows["rt_s"].to_numpy(),
            "object_response": rows["answer"].to_numpy(),
            "category": rows["class_name"].to_numpy(),
            **{"condition": 0, "imagename": named},
        }
    )


def counts() -> np.ndarray:
    """(4, 10) answers of 50 people: to a ship, two frogs and a truck."""
    found = np.zeros((4, 10), dtype=int)
    found[0, 8], found[1, 6], found[1, 3] = 50, 40, 10
    found[2, 6], found[2, 2], found[3, 9], found[3, 1] = 20, 30, 25, 25
    return found


TRUE = (8, 6, 6, 9)


def made_cifar10h(folder: Path) -> Path:
    """The form with one table; three of four pictures."""
    table = pd.DataFrame(counts(), columns=list(CIFAR10))
    table.insert(0, "kind", "hard")
    table.insert(0, "class_name", [CIFAR10[one] for one in TRUE])
    table.insert(0, "index", range(4))
    for index in range(3):
        draw(folder / "images" / f"{index:05d}.png", index)
    table.to_csv(folder / "counts.csv", index=False)
    return folder


def made_cifar10h_arrays(folder: Path) -> Path:
    """The authors' array, and that of the true classes."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "cifar10h-counts.npy", counts())
    np.save(folder / "cifar10_test_set_original_labels.npy", np.array(TRUE))
    return folder


def made_label_errors(folder: Path) -> Path:
    """Two pictures of CIFAR-10 with five answers each, and one picture itself."""
    folder.mkdir(parents=True, exist_ok=True)
    answers = [
        {"given": 3, "guessed": 0, "neither": 0, "both": 2},
        {"given": 0, "guessed": 4, "neither": 1, "both": 0},
    ]
    rows = [
        {
            "id": 20 + n,
            "given_original_label": 7,
            "given_original_label_name": "horse",
            "mturk": one,
        }
        for n, one in enumerate(answers)
    ]
    (folder / "cifar10_mturk.json").write_text(json.dumps(rows))
    draw(folder / "cifar10" / "00020.png", 1)
    return folder


def made_mooney(folder: Path) -> Path:
    """Ten originals; the more noise, the fewer people recognise a picture."""
    names = [f"thing{n}" for n in range(1, 11)]
    for place, name in enumerate(names):
        draw(folder / "stim/gray" / f"{name}_gray.jpg", place)
        draw(folder / "stim/mooney" / f"{name}_mooney.jpg", place, 0.09 * place)
    shares = np.linspace(0.95, 0.05, len(names))
    columns = ("recog_pre_disambiguation", "recog_gray", "recog_post_disambiguation")
    table = pd.DataFrame({"image": names, **dict.fromkeys(columns[1:], 1)})
    table.insert(1, columns[0], shares)
    table.to_csv(folder / "things_mooney.csv", index=False)
    return folder


def made_paper(folder: Path) -> Path:
    """Four models, six originals, five people: the columns of the paper's released votes."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for model in range(4):
        for image in range(6):
            right = [int(image + person > model + 2) for person in range(5)]
            rows.append(
                {
                    **{"model": f"m{model}", "cifar100_test_index0": image, "class_id": 7},
                    **{f"ann{n}": 7 if yes else -1 for n, yes in enumerate(right)},
                    **{"released_recognizable": int(sum(right) > 2), "released_label_inferred": 0},
                    **{"psnr": 20.0 - model + image / 9, "mse_uint8": 500.0 + 99 * model - image},
                }
            )
    pd.DataFrame(rows).to_csv(folder / "semsim_cifar100_labels.csv", index=False)
    return folder


MAKERS = {
    "recurrent": made_recurrent,
    "semsim-votes": made_paper,
    "texture-vs-shape": made_shape,
    "cifar-10h": made_cifar10h,
    "label-errors": made_label_errors,
    "things-mooney": made_mooney,
}
