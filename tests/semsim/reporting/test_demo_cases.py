"""The four cases of the site and the start page: their rows are those of the demo's own files."""

import base64
import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from semsim import SemSim
from semsim.base.sets.reader import read_set
from semsim.images import read_image
from semsim.metrics.learned import learned_by
from semsim.metrics.provenance import read_training
from semsim.reporting.notation import number
from semsim.weights import CHECKPOINTS

ROOT = Path(__file__).resolve().parents[3]
CASES = json.loads((ROOT / "data/demo/cases.json").read_text(encoding="utf-8"))["cases"]
SETS = {found.model: found for found in map(read_set, (ROOT / "data/demo/sets").iterdir())}
SEMSIM = "SemSim (demo)"


def shown(case, which):
    """The pixels of a case's picture, (H, W, 3) in [0, 1]."""
    packed = base64.b64decode(case[which].removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(packed)).convert("RGB")) / 255


def made_by(case):
    """The set that a case is of."""
    return SETS[case["model"].replace(" / ", "/")]


def values_of(case):
    """What each metric says of a case, as it is written."""
    return {title: value for title, value, _ in case["metrics"]}


def said(value):
    return float(value.replace("−", "-"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["way"])
def test_a_case_is_of_the_files_beside_it(case):
    found = made_by(case)
    (pair,) = [row for row in found.pairs.itertuples() if row.image_id == case["image_id"]]
    for which in ("original", "reconstruction"):
        pixels = read_image(Path(getattr(pair, which))).permute(1, 2, 0).numpy()
        assert shown(case, which) == pytest.approx(pixels, abs=1e-6)
    assert case["target"] == found.target_words
    assert re.fullmatch(r"recognised by \d of \d simulated", case["people"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["way"])
def test_the_metrics_say_what_they_say_of_its_pictures(case):
    values = values_of(case)
    first, second = shown(case, "original"), shown(case, "reconstruction")
    psnr = -10 * np.log10(((first - second) ** 2).mean())
    assert values["PSNR"] == number(psnr, 2)
    ways = {title: way for title, _, way in case["metrics"]}
    assert (ways["PSNR"], ways[SEMSIM]) == ("higher is closer", "lower is closer")
    (pair,) = [row for row in made_by(case).pairs.itertuples() if row.image_id == case["image_id"]]
    images = (read_image(Path(path))[None] for path in (pair.original, pair.reconstruction))
    with torch.no_grad():
        (semsim,) = SemSim.from_pretrained(CHECKPOINTS / "demo")(*images).tolist()
    assert said(values[SEMSIM]) == pytest.approx(semsim, abs=0.0051)


def test_the_semsim_has_learned_from_none_of_its_originals():
    training = read_training(CHECKPOINTS / "demo.safetensors")
    assert len(training.pixels) >= training.n_originals > 0
    pairs = pd.concat([made_by(case).pairs for case in CASES], ignore_index=True)
    ids = {case["image_id"] for case in CASES}
    cases = pairs[pairs["image_id"].isin(ids)].assign(dataset="symbols")
    found = learned_by(training).among(cases)
    assert found.unseen == {f"symbols/{image_id}" for image_id in ids}
    assert not found.by_name  # told by their pixels, whatever they are called
    assert not found.unseen & set(training.pixels)


def test_the_site_says_whom_the_semsim_sides_with_where_psnr_and_annotators_differ():
    text = " ".join((ROOT / "docs/index.md").read_text(encoding="utf-8").split())
    ways = Counter(case["way"].partition(" ")[0].lower() == "both" for case in CASES)
    assert ways == {True: 2, False: 2}
    assert "PSNR agrees with the simulated annotators on two and disagrees on two" in text
    (psnrs,) = [case for case in CASES if case["way"] == "PSNR alone says it leaks"]
    (theirs,) = [case for case in CASES if case["way"].endswith("alone recognise it")]
    leaks_more = said(values_of(psnrs)[SEMSIM]) < said(values_of(theirs)[SEMSIM])  # a distance
    side = "PSNR" if leaks_more else "the annotators"
    assert f"On those two, the demo SemSim agrees with {side}" in text
