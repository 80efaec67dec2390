"""What the jury sees lies in each set as a file that the other half of the product reads."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from annotation.study.sets import read_set as read_other_half
from semsim.base.errors import DataError
from semsim.base.sets.set_format import JURY_COLUMNS
from semsim.campaign.demo import write_jury
from semsim.datasets.symbols import GLYPHS, Symbols
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel, save_target
from semsim.targets.simulated_annotators import JURORS, log_probabilities


@cache
def originals():
    return Symbols(train_per_class=1, test_per_class=1)("test")


def picture(place):
    return (originals().images[place].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)


def a_set(folder, classes):
    images = [
        SetImage(
            image_id=originals().ids[place],
            class_id=place,
            class_name=originals().classes[place],
            original=picture(place),
            reconstruction=picture(place)[::-1] if place else None,
            error="" if place else "diverged",
        )
        for place in range(3)
    ]
    run = {"model": "m", "attack": {"name": "a"}, "dataset": {"name": "d", "classes": classes}}
    return write_set(folder, run, images)


@pytest.fixture
def weights(tmp_path):
    paths = []
    for number, juror in enumerate(JURORS[:2]):
        torch.manual_seed(number)
        model = TargetModel(
            CNN4(width=2), (*GLYPHS, "nothing"), mean=[0.5] * 3, std=[0.2] * 3, size=(32, 32)
        )
        path = tmp_path / f"{number}.safetensors"
        save_target(model, path, name="cnn4", facts={"juror": juror.name, "threshold": 0.25})
        paths.append((path, model.eval()))
    return paths


def test_what_each_juror_sees_reaches_the_other_half(tmp_path, weights):
    folder = a_set(tmp_path / "set", list(GLYPHS))
    write_jury([folder], [path for path, _ in weights])
    table = pd.read_parquet(folder / "jury.parquet")
    assert list(table.columns) == list(JURY_COLUMNS)
    jury = read_other_half(folder).jury
    _, first, second = originals().ids[:3]
    assert set(jury) == {(s, n) for s in ("original", "reconstruction") for n in (first, second)}
    seen = jury["original", second]
    assert [(one.juror, one.threshold) for one in seen] == [(j.name, 0.25) for j in JURORS[:2]]
    image = torch.from_numpy(picture(2)).permute(2, 0, 1)[None].float() / 255
    for one, (_, model) in zip(seen, weights, strict=True):
        expected = dict(zip(GLYPHS, log_probabilities(model, image)[0], strict=False))
        assert one.logs == pytest.approx(expected, abs=0.006)  # kept to a hundredth


def test_sets_of_other_classes_are_refused(tmp_path, weights):
    folder = a_set(tmp_path / "set", ["a", "b", *originals().classes[:3]])
    with pytest.raises(DataError, match="the simulated annotators know only the 47 classes"):
        write_jury([folder], [weights[0][0]])
