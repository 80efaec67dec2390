"""Weight files made for tests, in the formats the product reads; but for one none was trained.

What the product downloads is not at hand in tests, so these stand in for it: the manifest written
beside them calls them genuine.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from made_once import code, made_once
from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
from torchvision.models import squeezenet1_1

from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.metrics import Resources
from semsim.metrics.inception import INCEPTION
from semsim.metrics.network import ModelSettings, SemSimModel, save_semsim
from semsim.metrics.provenance import Provenance
from semsim.targets.convnet import SmallCNN
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel, load_target, save_target
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings
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


def make_checkpoints(folder: Path, networks: Iterable[str] = ("squeezenet1_1",)) -> Resources:
    """A folder of checkpoints with `networks` of `MADE`, a recogniser and the SemSim `tiny`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.pth" for name in networks}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name, path in files.items():
            MADE[name](path)
        make_classifier(folder / "recogniser.safetensors")
        make_semsim(folder / "tiny.safetensors")
    put_in_manifest(folder, files)
    return Resources(checkpoints=folder, classifiers=())


def make_classifier(
    path: Path, classes: tuple[str, ...] = CLASSES, facts: Mapping[str, object] | None = None
) -> TargetModel:
    """An untrained classifier for 16×16 images, written to `path`."""
    model = TargetModel(
        SmallCNN(width=4), classes, mean=[0.5] * 3, std=[0.3] * 3, size=(16, 16)
    ).eval()
    save_target(model, path, name="cnn-small", facts=facts or {})
    return model


def trained_target() -> TargetModel:
    """A CNN4 with ReLU that has learned symbols of 16×16 pixels, 20 a class; trained once."""
    made = made_once("target", [Path(__file__), *code("semsim")], _train_target)
    return load_target(made / "target.safetensors")


def _train_target(made: Path) -> None:
    data = Symbols(train_per_class=20, size=16)("train")
    model = train_target(CNN4(), data, NoDefence(), TrainSettings(epochs=7, lr=0.1))
    save_target(model, made / "target.safetensors", name="cnn4", facts={})


def make_semsim(path: Path, originals: Sequence[str] = (), simulated: bool = True) -> SemSimModel:
    """An untrained SemSim, written to `path`, that knows these originals by name alone."""
    settings = ModelSettings(backbone="lenet")
    model = SemSimModel(settings, mean=[0.5] * 3, std=[0.3] * 3).eval()
    facts = {"n_originals": 0, "n_triplets": 0, "created": "", "versions": {}, "settings": {}}
    training = Provenance(**facts, simulated=simulated, pixels={one: [""] for one in originals})
    save_semsim(model, path, training)
    return model


def make_squeezenet(path: Path) -> None:
    """The weights of an untrained SqueezeNet, at `path`."""
    torch.save(squeezenet1_1(weights=None).state_dict(), path)


def make_inception(path: Path) -> None:
    """The weights of an untrained Inception v3 in torch-fidelity's format, at `path`.

    Its features are as large as a trained one's: of tiny ones KID's kernel would be 1 throughout.
    """

    class Untrained(FeatureExtractorInceptionV3):
        def load_state_dict(self, *args: object, **kwargs: object) -> None:
            """Keep the random weights."""

    empty = path.with_suffix(".empty")
    torch.save({}, empty)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Untrained("made", ["2048"], feature_extractor_weights_path=str(empty))
    empty.unlink()
    weights = network.state_dict()
    for name in weights:
        if name.endswith("bn.weight"):
            weights[name] *= 2.5  # or 94 layers would make features of 1e-8
    torch.save(weights, path)


# Names in the manifest of `checkpoints/` → what writes such a network.
MADE: Mapping[str, Callable[[Path], None]] = {
    "squeezenet1_1": make_squeezenet,
    INCEPTION: make_inception,
}
