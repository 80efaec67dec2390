"""Images, settings and a finished comparison for tests of federated learning.

The images are noise about a colour for each class.
"""

from pathlib import Path

import torch

from semsim.base.jobs.folders import Job, read_order, run_as_job
from semsim.base.storage.atomic import write_json
from semsim.images import to_uint8
from semsim.sets.image import AttackResult, set_images
from semsim.sets.writer import write_set
from semsim.systems.federated.comparison import carry_out, load, queue_comparison
from semsim.systems.federated.data import FederatedData, of_images
from semsim.systems.federated.settings import (
    REFERENCE,
    RESCALED,
    TRAINING,
    FederatedJob,
    FederatedOrder,
    FederatedSettings,
)
from semsim.types import LabelledImages

# What the processes of `flower_process` and the test that starts them agree on.
SETTINGS = FederatedSettings(scheme="pbpfl", clients=2, rounds=3, batch_size=4)
TINY = FederatedOrder(
    data="symbols:train_per_class=1,test_per_class=1,size=16",
    network="mlp-3",
    clients=2,
    rounds=1,
    arms=("uplink-closed-form",),
    images=2,
    attack="invgrad:steps=1",
)


def made_images(count: int, seed: int, side: int = 8) -> LabelledImages:
    """`count` images of three classes in turn, each of which has a colour of its own."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    noise = torch.rand(count, 3, side, side, generator=rng)
    return LabelledImages(
        dataset="noise",
        classes=("a", "b", "c"),
        ids=tuple(f"{seed}-{place}" for place in range(count)),
        images=(0.5 * torch.eye(3)[labels][:, :, None, None] + 0.5 * noise),
        labels=labels,
    )


def made_data(count: int = 24, side: int = 8) -> FederatedData:
    """`count` training examples and twelve for testing."""
    return of_images(made_images(count, 0, side), made_images(12, 1, side))


def finished_comparison(data: Path) -> Job:
    """The job of a tiny comparison that is done; its training and its attacks are made up."""
    job = queue_comparison(TINY, data)
    out, images = read_order(job, FederatedJob).out, load(TINY.data).images
    assert images is not None
    write_json(out / TRAINING, _made_training())
    for step, arm in enumerate((REFERENCE, RESCALED, *TINY.arms)):
        attacked = images.pick(range(TINY.images))
        record = {
            "name": f"federated/{TINY.network}/{arm}",
            "model": f"{TINY.network}/{arm}",
            "dataset": {"name": attacked.dataset, "classes": list(attacked.classes)},
            "attack": {"name": "invgrad"},
            "gradient_difference": None,
            "status": "ok",
        }
        results = [_made_result(image, 0.3 * step) for image in attacked.images]
        write_set(out / "sets" / arm, record, set_images(attacked, results))
    # What is there already is not computed again: nothing is left but to judge.
    run_as_job(job.folder, lambda report: carry_out(TINY, out, report))
    return job


def _made_result(image: torch.Tensor, noise: float) -> AttackResult:
    spoilt = (1 - noise) * image + noise * torch.rand_like(image)
    return AttackResult(
        picture=to_uint8(spoilt),
        attacked=to_uint8(image),
        error="",
        objective=0.1,
        shift_x=0,
        shift_y=0,
        flipped=False,
    )


def _made_training() -> dict[str, object]:
    points = [
        {"round": n, "loss": 1 / n, "squared_error": 1 / n, "accuracy": n / 9} for n in (1, 2, 3)
    ]
    schemes = ("FedAvg", "PBPFL")
    costs = {"perturb": 0.1, "forward": 0.2, "backward": 0.3, "update": 0.4}
    traffic = {"bytes_down": 1_500_000, "bytes_up": 900_000, "numbers_down": 9, "numbers_up": 9}
    return {
        "curves": dict.fromkeys(schemes, points),
        "costs": dict.fromkeys(schemes, costs),
        "traffic": dict.fromkeys(schemes, traffic),
        "condition": 12.0,
        "largest_difference": 1e-9,
        "released": {"predictions": 1e-9, "parameters": 0.5},
        "gamma": {"gamma": 1.5, "estimated": 1.4, "error_before": 0.9, "error_after": 0.1},
    }
