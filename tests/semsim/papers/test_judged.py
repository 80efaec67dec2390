"""What simulated people and metrics say on average, and of which sets."""

import math

import pandas as pd
import pytest

from semsim.metrics import find_metric
from semsim.papers.engine import Judged
from semsim.papers.simulated_votes import CONTROL


@pytest.fixture
def judged() -> Judged:
    psnr = {"a": [20.0, 30.0], "b": [20.0, math.inf], "same": [math.inf, math.inf]}
    keys = [
        {
            "dataset": "toy",
            "attack": CONTROL if model == "same" else "invgrad",
            "model": model,
            "image_id": str(number),
        }
        for model in psnr
        for number in range(2)
    ]
    values = [value for own in psnr.values() for value in own]
    scores = pd.DataFrame(keys).assign(metric="psnr", value=values)
    votes = pd.DataFrame(keys).assign(recognised=[True, False, True, True, True, True])
    return Judged(
        labels=pd.DataFrame(keys),
        votes=votes,
        scores=scores,
        specs=(find_metric("psnr").spec, find_metric("mse").spec),
        absent={},
    )


def test_one_infinite_score_does_not_drown_the_others(judged):
    found = {model: judged.of([model]).means() for model in ("a", "b", "same")}
    assert {model: one["psnr"] for model, one in found.items()} == {
        "a": 25.0,
        "b": 20.0,
        "same": math.inf,
    }
    assert {model: one["people"] for model, one in found.items()} == {"a": 0.5, "b": 1, "same": 1}
    assert judged.of(["a", "b"]).means()["psnr"] == pytest.approx(70 / 3)
    assert all(math.isnan(one["mse"]) for one in found.values())  # nobody asked it
