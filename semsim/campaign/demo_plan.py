"""What the built-in study is made of: its targets, its judges, its attack, and how much of each."""

from dataclasses import dataclass, replace

from semsim.campaign.cell import TargetPlan
from semsim.datasets.symbols import GLYPHS
from semsim.defences import STRATEGIES, parse
from semsim.errors import SettingsError
from semsim.registry import Plugin
from semsim.targets.train import TrainSettings

# Smooth activations and early training, as in the first rounds of federated learning: both leak
# more, so that a few hundred steps on two cores give images from clear to hopeless.
TARGETS_OF_DEMO = (
    (
        Plugin(name="resnet20-4", settings={"width": 32, "activation": "tanh"}),
        TrainSettings(epochs=1, lr=0.005),
    ),
    (
        Plugin(name="convnet8", settings={"width": 16, "activation": "tanh"}),
        TrainSettings(epochs=2, lr=0.05),
    ),
)
JUDGES = {
    "recogniser": Plugin(name="cnn-small"),
    "predictor": Plugin(name="convnet8", settings={"width": 12}),
}


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo is made with; few epochs and steps, so that two cores manage.

    images: originals attacked, each of another class. train_per_class: training images of the
    targets. narrower: their widths are divided by it, for a quick look. steps, tv: of InvGrad.
    noise_std, pruning_rate: of the two gradient defences, in training and in what leaks.
    judge_epochs, judge_per_class: of the two classifiers that judge. together: images attacked at
    once. device: where targets are trained and attacked, "auto" or a name such as "cpu".
    workers: processes.
    """

    images: int = 24
    train_per_class: int = 20
    narrower: int = 1
    steps: int = 250
    tv: float = 1e-2
    noise_std: float = 5e-2
    pruning_rate: float = 0.7
    judge_epochs: int = 10
    judge_per_class: int = 120
    seed: int = 0
    together: int = 8
    device: str = "auto"
    workers: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.images <= len(GLYPHS):
            raise SettingsError(f"Between 1 and {len(GLYPHS)} images, one a class: {self.images}.")


def strategies(settings: DemoSettings) -> dict[str, str]:
    """The seven of the authors' code, with gradient defences in what leaks too.

    The authors attack a clean gradient, which hides what these defences do.
    """
    rate, std = settings.pruning_rate, settings.noise_std
    return {
        **STRATEGIES["code"],
        "pruning": f"crop-flip & gradient-pruning:rate={rate},apply_at=both",
        "noise": f"crop-flip & gradient-noise:std={std},apply_at=both",
    }


def target_plans(settings: DemoSettings) -> list[TargetPlan]:
    """Two architectures under seven strategies."""
    return [
        TargetPlan(
            label=f"{architecture.name}/{strategy}",
            dataset=symbols_of(settings.train_per_class),
            architecture=_narrowed(architecture, settings.narrower),
            defence=Plugin(**parse(defence)._asdict()),
            train=replace(train, seed=settings.seed),
        )
        for architecture, train in TARGETS_OF_DEMO
        for strategy, defence in strategies(settings).items()
    ]


def _narrowed(architecture: Plugin, by: int) -> Plugin:
    width = architecture.settings["width"] // by
    return replace(architecture, settings={**architecture.settings, "width": width})


def symbols_of(train_per_class: int) -> Plugin:
    """The built-in symbols with that many training images a class."""
    return Plugin(name="symbols", settings={"train_per_class": train_per_class})


def invgrad(settings: DemoSettings) -> Plugin:
    """The attack on every image."""
    return Plugin(
        name="invgrad", settings={"steps": settings.steps, "tv": settings.tv, "start": "grey"}
    )
