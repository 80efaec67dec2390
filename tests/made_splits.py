"""What experiments in split inference leave, made without training and without an attack."""

from dataclasses import replace

import torch

from semsim.base.jobs.folders import run_as_job
from semsim.systems.split.plan import FIRST_LOOK, SplitPlace, queue_split
from semsim.systems.split.run import FeatureLeak, planned_sets, write_split_set
from semsim.types import LabelledImages

SMALL = replace(FIRST_LOOK, networks=("small:width=2",))
ROW = {  # of a summary
    "network": "small",
    "defence": "<b>single</b>",
    "accuracy": 0.95,
    "change": -0.02,
    "valid": True,
    "attack": "one-body",
    "choice": "best SSIM",
    "n": 6,
    "ssim_mean": 0.5,
    "ssim_sd": 0.1,
    "psnr_mean": 20.0,
    "psnr_sd": 1.0,
    "recognised": 0.25,
}
COST = {
    "network": "small",
    "defence": "none",
    "client": 1e6,
    "client_ms": 1.25,
    "server": 2e6,
    "server_ms": 3.5,
    "sent": 4096,
    "returned": 128,
}
GUESSES = {
    **{"grey_ssim": 0.2, "grey_psnr": 12.0, "mean_ssim": 0.3, "mean_psnr": 15.0, "chance": 0.1},
    **{"recogniser": 0.95, "recogniser_grey": 0.1},
}


def row(defence, clearer, ssim=0.4, psnr=12.0, **changes):
    """A row of a summary: an attack that a server can make; `clearer` of ten pictures."""
    scores = {"defence": defence, "ssim_mean": ssim, "psnr_mean": psnr, "choice": ""}
    scores |= {"clearer": clearer, "by_shapes": 0, "judged": 10}
    return {**ROW, "attack": "adaptive", **scores, **changes}


def written(folder, name="single"):
    images = LabelledImages(
        dataset="digits",
        classes=("0",),
        ids=("a", "b"),
        images=torch.rand(2, 3, 8, 8),
        labels=torch.tensor([0, 0]),
    )
    zeros = torch.zeros(2).numpy()
    leak = FeatureLeak(
        images=torch.full((2, 3, 8, 8), 0.5),
        ssim=zeros,
        psnr=zeros,
        residuals=zeros,
        grey_residuals=zeros + 1,
        shadow_accuracy=0.5,
        decoder_error=0.1,
    )
    record = {
        "model": f"small/{name}/seed 0",
        "target": {"valid": True, "accuracy": 0.9, "chance": 0.1},
        "attack": {"name": "adaptive"},
    }
    return write_split_set(folder / name, record, images, leak)


def finished_sweep(data):
    """The job of a small experiment that is done."""
    plan = replace(SMALL, name="made")
    job = queue_split(plan, SplitPlace(data=data, checkpoints=data, device="cpu"))
    folders = [folder for _, _, folder in planned_sets(plan, data)]
    result = {
        "summary": [row("none", 9, 0.6, 20.0), row("single", 2, 0.25, 16.0, valid=False)],
        "baselines": GUESSES,
        "costs": [COST, {**COST, "defence": "single"}],
        "sets": [str(written(folder.parent, folder.name)) for folder in folders],
    }
    run_as_job(job.folder, lambda report: result)
    return job
