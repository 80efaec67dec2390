"""The figure of split points, of sets made without training."""

import numpy as np
import pytest
import torch

from semsim.systems.split.figures import cut_figures
from semsim.systems.split.run import FeatureLeak, write_split_set
from semsim.types import LabelledImages

IMAGES = LabelledImages(
    dataset="made",
    classes=("a",),
    ids=("p",),
    images=torch.full((1, 3, 8, 8), 0.5),
    labels=torch.zeros(1, dtype=torch.long),
)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_each_pair_of_cuts_is_drawn_once_with_the_pictures_of_the_first_seed(seeds, tmp_path):
    networks = [f"small:h={h},t=1" for h in (1, 2)]
    folders = []
    for number, (network, seed) in enumerate((n, s) for n in networks for s in seeds):
        leak = FeatureLeak(
            images=torch.full((1, 3, 8, 8), 0.2 + 0.6 * seed),
            ssim=np.zeros(1),
            psnr=np.zeros(1),
            residuals=np.zeros(1),
            grey_residuals=np.ones(1),
            shadow_accuracy=1.0,
            decoder_error=0.0,
        )
        record = {"model": f"{network}/none/seed {seed}", "attack": {"name": "adaptive"}}
        folders.append(write_split_set(tmp_path / str(number), record, IMAGES, leak))
    scores = {"attack": "adaptive", "ssim_mean": 0.5, "psnr_mean": 20.0}
    outcome = {"summary": [{"network": n, **scores} for n in networks], "sets": folders}
    frame = cut_figures(outcome)["adaptive"].frame
    assert list(zip(frame["h"], frame["t"], strict=True)) == [(0, 0), (1, 1), (2, 1)]
    assert {picture.flat[0] for picture in frame["picture"][1:]} == {51}
