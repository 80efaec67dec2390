"""What the built-in studies are made of: three campaigns, two judges and the jury."""

from dataclasses import dataclass, replace

from semsim.campaign.campaign_job import plan_of
from semsim.campaign.grids import DEMO_GRID
from semsim.campaign.plan import Plan
from semsim.datasets.symbols import GLYPHS
from semsim.errors import SettingsError
from semsim.registry import check_settings, setting
from semsim.targets.jurors import JurySettings

JUDGES = {"recogniser": "cnn-small", "predictor": "convnet8:width=12"}
# Under these no training reaches `until`, and 48 epochs end before the network has learned what the
# strategy lets it learn; after 96 it names its training pictures, and the share of test pictures
# has been flat for 24.
LONGER = ("3-1-7", "43-18-18", "hybrid")
STAGES = ("until=0.3", "until=0.97")  # beside the 0.65 of the others: early and late in a training
_FACES = 20  # in the test split of the detector


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo is made with; few epochs and steps, so that two cores manage.

    images: each of another class, or face. train_per_class: training images of the targets.
    width: of their layers. epochs: of their trainings, which end before where `until` of the test
    images are right; longer: of those under the strategies in `LONGER`. attacks: of all targets.
    judge_epochs, judge_per_class: of the two classifiers that judge; jury_epochs, jury_per_class:
    of the simulated annotators. device: where targets are trained and attacked.
    """

    images: int = setting(12, "Images", "Originals attacked on each target.")
    train_per_class: int = 60
    width: int = 32
    epochs: int = 48
    longer: int = 96
    until: float = 0.65
    attacks: tuple[str, ...] = ("invgrad:fast", "prior:fast")
    judge_epochs: int = 10
    judge_per_class: int = 120
    jury_epochs: int = JurySettings.epochs
    jury_per_class: int = JurySettings.per_class
    seed: int = setting(0, "Seed", "Seed of everything.")
    together: int = setting(12, "Together", "Images attacked at once.", least=1)
    device: str = setting("auto", "Device", "auto, cpu, cuda, …")
    workers: int = setting(2, "Processes", "Processes, also on one GPU.", least=1)

    def __post_init__(self) -> None:
        check_settings(self)
        if not 1 <= self.images <= min(len(GLYPHS), _FACES):
            most = min(len(GLYPHS), _FACES)
            raise SettingsError(f"Between 1 and {most} images, each of another: {self.images}.")

    @property
    def jury(self) -> JurySettings:
        """How the simulated annotators are trained."""
        return JurySettings(
            per_class=self.jury_per_class,
            test_per_class=min(10, self.jury_per_class),
            epochs=self.jury_epochs,
            seed=self.seed,
        )


def plans(settings: DemoSettings) -> dict[str, tuple[Plan, ...]]:
    """The campaigns whose sets lie in each folder of the demo, worked out.

    "sets": symbols to be named, by two plain classifiers, with a smooth and a kinked activation,
    under the paper's seven strategies at the paper's strength, and the first without a strategy
    early and late in its training, too; the other learns too fast to be caught in between. Where a
    strategy keeps them below `until`, they are trained longer. "pairs": faces to be told apart, by
    detectors of faces.
    """
    width = settings.width
    symbols = replace(
        DEMO_GRID,
        datasets=(f"symbols:train_per_class={settings.train_per_class}",),
        architectures=tuple(
            text + ("" if width == 32 else f",width={width}") for text in DEMO_GRID.architectures
        ),
        strategies=tuple(name for name in DEMO_GRID.strategies if name not in LONGER),
        attacks=settings.attacks,
        images=settings.images,
        seeds=(settings.seed,),
        train=replace(DEMO_GRID.train, epochs=settings.epochs, until=settings.until),
        together=settings.together,
    )
    longer = replace(
        symbols,
        name="demo-longer",
        strategies=LONGER,
        train=replace(symbols.train, epochs=settings.longer),
    )
    stages = replace(symbols, name="demo-stages", strategies=("none",), trainings=STAGES)
    faces = replace(
        symbols,
        name="demo-faces",
        datasets=(f"face-or-not:train_per_picture={max(1, settings.train_per_class // 6)}",),
        strategies=("none", "crop-flip", "noise"),
        image_ids=tuple(f"face-or-not-test-{place:05d}" for place in range(settings.images)),
        train=replace(symbols.train, epochs=min(30, settings.epochs), lr=0.03, until=0.95),
    )
    return {
        "sets": (plan_of(symbols), plan_of(longer), _of_first_architecture(plan_of(stages))),
        "pairs": (plan_of(faces),),
    }


def _of_first_architecture(plan: Plan) -> Plan:
    """Planned together, so that its models have the names they have beside the others'."""
    first = plan.targets[0].plan.architecture
    targets = tuple(one for one in plan.targets if one.plan.architecture == first)
    return replace(plan, targets=targets, sets=tuple(s for s in plan.sets if s.target in targets))
