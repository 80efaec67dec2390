"""Reconstruction sets of split inference, made without an attack."""

import torch

from semsim.split.experiment import Leak
from semsim.split.records import write_split_set
from semsim.types import LabelledImages


def written(folder, name="single"):
    images = LabelledImages(
        dataset="digits",
        classes=("0",),
        ids=("a", "b"),
        images=torch.rand(2, 3, 8, 8),
        labels=torch.tensor([0, 0]),
    )
    zeros = torch.zeros(2).numpy()
    leak = Leak(
        images=torch.rand(2, 3, 8, 8),
        ssim=zeros,
        psnr=zeros,
        residuals=zeros,
        grey_residuals=zeros + 1,
        shadow_accuracy=0.5,
        decoder_error=0.1,
    )
    record = {
        "model": f"small/{name}/seed 0",
        "target": {"valid": True, "test_accuracy": 0.9},
        "attack": {"name": "adaptive"},
    }
    return write_split_set(folder / name, record, images, leak)
