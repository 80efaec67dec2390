"""Weight files made for tests, in the formats the product reads; none of them was trained.

What the product downloads is not at hand in tests, so these stand in for it: the manifest written
beside them calls them genuine.
"""

import hashlib
import json
from pathlib import Path

import torch
from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
from torchvision.models import squeezenet1_1

from semsim.metrics import Resources
from semsim.metrics.network import ModelSettings, SemSimModel, Training, save_semsim
from semsim.targets import TargetModel, save_target
from semsim.targets.convnet import SmallCNN
from semsim.weights import FORMAT

CLASSES = ("cat", "cow", "mouse", "snowman")


def put_in_manifest(folder: Path, files: dict[str, Path]) -> None:
    """A manifest in `folder` that calls these files genuine."""
    entries = {
        name: {
            "file": path.name,
            "url": f"https://example.invalid/{path.name}",
            "source": "made by a test",
            "licence": "none",
            "used_by": "a test",
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for name, path in files.items()
    }
    (folder / "manifest.json").write_text(json.dumps({"format": FORMAT, "files": entries}))


def make_checkpoints(folder: Path) -> Resources:
    """A folder of checkpoints with a SqueezeNet, a recogniser and a SemSim called `tiny`."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.save(squeezenet1_1(weights=None).state_dict(), folder / "squeeze.pth")
        make_classifier(folder / "recogniser.safetensors")
        make_semsim(folder / "tiny.safetensors")
    put_in_manifest(folder, {"squeezenet1_1": folder / "squeeze.pth"})
    return Resources(checkpoints=folder, classifiers=())


def make_classifier(path: Path, classes: tuple[str, ...] = CLASSES) -> TargetModel:
    """An untrained classifier for 16×16 images, written to `path`."""
    model = TargetModel(
        SmallCNN(width=4), classes, mean=[0.5] * 3, std=[0.3] * 3, size=(16, 16)
    ).eval()
    save_target(model, path, name="cnn-small", facts={})
    return model


def make_semsim(path: Path) -> SemSimModel:
    """An untrained SemSim, written to `path`."""
    settings = ModelSettings(backbone="lenet")
    model = SemSimModel(settings, mean=[0.5] * 3, std=[0.3] * 3).eval()
    training = Training(
        n_originals=0, n_triplets=0, simulated=True, created="", versions={}, settings={}
    )
    save_semsim(model, path, training)
    return model


def make_inception(path: Path) -> None:
    """The weights of an untrained Inception v3 in torch-fidelity's format, at `path`."""

    class Untrained(FeatureExtractorInceptionV3):
        def load_state_dict(self, *args: object, **kwargs: object) -> None:
            """Keep the random weights."""

    empty = path.with_suffix(".empty")
    torch.save({}, empty)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Untrained("made", ["2048"], feature_extractor_weights_path=str(empty))
    empty.unlink()
    torch.save(network.state_dict(), path)
