"""What `reproduce deployed` computes at each scale, a row a way to share."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.reproduce.plans import Work, campaign_works, of_preset, plans_here
from semsim.targets.train_settings import TrainSettings
from semsim.terminal import text_table
from semsim.words import counted


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way in which clients train and share, and the InvGrad that goes with it.

    name: of its folder. network, attack: settings beside the scale's own, as text.
    """

    name: str
    title: str
    strategy: str = "none"
    share: str = "gradient"
    network: str = ""
    attack: str = ""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The rows, of one architecture on one data set, each attacked by the same attack.

    architecture, attack: as text, ended by what a row adds. trainings: moments of a training at
    which its target is attacked, as in `Campaign`. jury_epochs: of simulated people, in tenths of
    the usual.
    """

    name: str
    rows: tuple[Row, ...]
    dataset: str
    architecture: str
    attack: str
    images: int
    train: TrainSettings
    trainings: tuple[str, ...]
    jury_epochs: int

    def campaign(self, row: Row) -> Campaign:
        """What is asked of one row."""
        return Campaign(
            name=f"deployed-{self.name}-{row.name}",
            datasets=(self.dataset,),
            architectures=(_with(self.architecture, row.network),),
            strategies=(row.strategy,),
            shares=(row.share,),
            attacks=(_with(self.attack, row.attack),),
            images=self.images,
            train=self.train,
            trainings=self.trainings,
            together=self.images,
        )


def scale_of(name: str) -> Scale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    return of_preset(_SCALES, name)


def plans_of(scale: Scale) -> dict[str, Plan]:
    """Return the plan of each row, by its name; its sets are called by `set_name`.

    Raises `DataError` where the attacked pictures are not there.
    """
    return {row.name: _named(plan_of(scale.campaign(row)), row) for row in scale.rows}


def set_name(row: Row, training: str) -> str:
    """What a set of a row is called in votes and tables; training: of `Scale.trainings`."""
    return f"{row.title}, {training}" if training else row.title


def _with(text: str, more: str) -> str:
    if not more:
        return text
    return f"{text}{',' if ':' in text else ':'}{more}"


def _named(plan: Plan, row: Row) -> Plan:
    """Sets of different rows would else have one name, since a plan tells its own apart alone."""
    trainings = plan.campaign.trainings
    sets = [
        replace(one, model=set_name(row, training))
        for one, training in zip(plan.sets, trainings, strict=True)
    ]
    return replace(plan, sets=tuple(sets))


def deployed_rows(
    *,
    batch: int,
    smaller: int,
    lr: float,
    steps: tuple[int, int],
    longer: str,
    noise: tuple[float, ...],
) -> tuple[Row, ...]:
    """The rows: what papers attack, updates, the same with batch norm, and DP-SGD.

    batch: pictures of a client. smaller: of one from whom more comes back. lr: of its steps. steps:
    fewer and more of them. longer: settings of a longer attack. noise: of DP-SGD.
    """
    few, many = steps

    def update(count: int, more: str = "", pictures: int = batch) -> str:
        return f"update:steps={count},batch={pictures},lr={lr}{more}"

    on, on_smaller = f"on {batch} pictures", f"on {counted(smaller, 'picture')}"
    normal = {"network": "batch_norm=true"}
    private = [Row(name="clip", title="DP-SGD, clip 1, no noise", strategy="dp-sgd:noise=0")]
    for level in noise:
        strategy = f"dp-sgd:noise={level}"
        private.append(
            Row(name=f"noise-{level}", title=f"DP-SGD, noise {level}", strategy=strategy)
        )
    return (
        Row(name="gradient", title="Gradient of one picture"),
        Row(name="step", title=f"1 step {on}", share=update(1)),
        Row(name="few", title=f"{few} steps {on}", share=update(few)),
        Row(name="many", title=f"{many} steps {on}", share=update(many)),
        Row(
            name="many-as-one",
            title=f"{many} steps {on}, attacked as one gradient",
            share=update(many),
            attack="updates=one-gradient",
        ),
        Row(
            name="momentum",
            title=f"{few} steps {on}, momentum 0.9",
            share=update(few, ",momentum=0.9"),
        ),
        Row(
            name="step-long", title=f"1 step {on}, attacked longer", share=update(1), attack=longer
        ),
        Row(
            name="smaller-step",
            title=f"1 step {on_smaller}, attacked longer",
            share=update(1, pictures=smaller),
            attack=longer,
        ),
        Row(
            name="smaller-few",
            title=f"{few} steps {on_smaller}, attacked longer",
            share=update(few, pictures=smaller),
            attack=longer,
        ),
        Row(name="norm-gradient", title="Batch norm fixed, gradient of one picture", **normal),
        Row(
            name="norm-step",
            title=f"Batch norm in training, 1 step {on}",
            share=update(1),
            **normal,
        ),
        Row(
            name="norm-few",
            title=f"Batch norm in training, {few} steps {on}",
            share=update(few),
            **normal,
        ),
        *private,
    )


_rows = partial(
    deployed_rows, batch=8, smaller=2, lr=0.05, steps=(4, 8), noise=(0.003, 0.01, 0.1, 1.0)
)
# A seed of its own draws originals that neither the demo's SemSim nor its recogniser has seen.
_SMALL = Scale(
    name="small",
    rows=_rows(longer="steps=2000"),
    dataset="symbols:seed=2",
    architecture="cnn4:width=16,activation=silu",
    attack="invgrad:fast",
    images=16,
    train=TrainSettings(epochs=16, batch_size=32, lr=0.05),
    trainings=("until=0.3", ""),
    jury_epochs=10,
)
_SMOKE = replace(
    _SMALL,
    name="smoke",
    rows=deployed_rows(
        batch=2, smaller=1, lr=0.05, steps=(2, 3), longer="restarts=2", noise=(0.01,)
    ),
    dataset="symbols:train_per_class=4,test_per_class=1,seed=2",
    architecture="cnn4:width=4,activation=silu",
    attack="invgrad:fast,steps=2",
    images=4,
    train=TrainSettings(epochs=1, batch_size=32, lr=0.01),
    trainings=("",),
    jury_epochs=1,
)
_PAPER = replace(
    _SMALL,
    name="paper",
    rows=_rows(longer="steps=9600"),
    dataset="cifar100",
    architecture="cnn4:activation=silu",
    attack="invgrad:paper",
    images=104,
    train=TrainSettings(epochs=200, lr=0.01),
    trainings=("until=0.2", "until=0.4", ""),
)
_SCALES = {one.name: one for one in (_SMOKE, _SMALL, _PAPER)}


def rows_text(scale: Scale) -> str:
    """Return what is computed, a line a row."""
    lines = []
    for row in scale.rows:
        asked, sets = scale.campaign(row), len(scale.trainings)
        how = asked.architectures[0], row.strategy, row.share, asked.attacks[0]
        lines.append([row.title, *how, str(sets), str(sets * scale.images)])
    head = ["row", "target", "strategy", "what is shared", "attack", "sets", "pictures"]
    return f"Scale {scale.name}, on {scale.dataset}.\n{text_table(head, lines)}"


def works_of(scale: Scale, data: Path, *, known: bool = True) -> list[Work]:
    """Return the trainings and attacks of a scale; rows share targets.

    known: whether to look what is done below `data`, which reads the pictures that are here.
    """
    asked = [(row.title, scale.campaign(row)) for row in scale.rows]
    plans = plans_here(campaign for _, campaign in asked) if known else ()
    return campaign_works(asked, plans, data)
