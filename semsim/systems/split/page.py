"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.storage.names import free_name
from semsim.base.words import counted
from semsim.grid.subprocess_worker import apart
from semsim.lab import LabContext, sets
from semsim.lab.choices import PICTURES, FormChoice, choices_from
from semsim.lab.markup import joined, pieces
from semsim.lab.page import Effort, ItemList, LabForm, LabPage, NumberField, now_at
from semsim.lab.settings_form import Given, settings_of
from semsim.learning.default_checkpoint import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.sets.recognition import CLEARER
from semsim.systems.split.plan import ARMS, KIND, PRESETS, RUNS, SplitPlace, SplitPlan, like
from semsim.systems.split.plan import plan_of as plan_of_job
from semsim.systems.split.summary import answer_words, count_text, scored, shadow_text, spread_text

_INTRO = (
    "A client runs a network's first layers and sends their features to a server ([[split "
    "inference]]). Can the server get the pictures back, and what do defences hide?"
)
_LAB, _HTML = pieces("lab.html"), pieces("page.html", "semsim.systems.split")
METRICS_NOW = "split-metrics"
NETWORKS = choices_from(
    {"small:width=16": ("Small ResNet", "Minutes on a laptop.")},
    {"resnet18": ("ResNet-18", "The paper's; a GPU's work."), "vgg16": ("VGG-16", "A GPU's work.")},
)

DEFENCES = choices_from(
    {
        "none": ("Nothing", "What every defence is compared with; always run."),
        "single": ("Fixed noise", "One noise picture is added to what is sent."),
        "ensembler:bodies=4,selected=2": ("Ensembler", "Many bodies answer, a secret few count."),
    },
    {
        "shredder": ("Fresh noise", "New noise on every picture, without retraining."),
        "dr-single": ("Dropout", "Parts of the server's answer are dropped in training."),
        "dr-ensemble:bodies=4": ("Dropout, several bodies", "Ensembler's shape, no secret."),
        "dr-ensemble:bodies=10": ("Dropout, ten bodies", "The same, as published."),
        "ensembler:bodies=10,selected=4": ("Ensembler, as published", "Four of ten bodies count."),
        "random-head": ("Untrained head", "What no training of the head can hide."),
    },
)

ATTACKS = choices_from(
    {
        "adaptive": ("Adaptive", "Trains a copy of the client's part through all bodies."),
        "adaptive-aligned": ("Adaptive, aligned", "Also matched to what is sent: stronger."),
    },
    {
        "one-body": ("One body at a time", "Tries each of the server's bodies alone."),
        "one-body-aligned": ("One body, aligned", "The same, matched to what is sent."),
        "oracle": ("Knows the secret", "No server can; the most that could leak."),
        "oracle-aligned": ("Knows the secret, aligned", "The same, matched to what is sent."),
    },
)
_ATTACK_EPOCHS = PRESETS["small"].shadow.epochs  # the form has one number for both of its parts
FIRST_LOOK = replace(
    PRESETS["small"],
    name="",
    defences=("none", "single"),
    attacks=("adaptive-aligned",),  # the plain one fails on the undefended system
    shadow=replace(PRESETS["small"].shadow, decoder_epochs=_ATTACK_EPOCHS),
    defence_seeds=(0,),
    attack_seeds=(0,),
    images=24,
)
_ENSEMBLER = replace(
    FIRST_LOOK,
    defences=("none", "single", "ensembler:bodies=4,selected=2"),
    attacks=("adaptive", "adaptive-aligned"),
    attack_seeds=(0, 1, 2),
    images=48,
)
_PAPER = replace(PRESETS["paper"], name="", dataset="cifar100")
_SHOWN = ("ssim", "psnr", "recogniser")  # scores that every result has
_TRAIN = ("epochs", "ensemble_epochs", "lr", "ensemble_lr", "batch_size")
_SHADOW = ("epochs", "lr", "batch_size", "start")
_PICKS = {
    "best SSIM": "best body by SSIM (needs the originals)",
    "best PSNR": "best body by PSNR (needs the originals)",
    "attacker's choice": "the body an attacker would choose",
    "mean of N": "mean of the bodies",
}
FORM = LabForm(
    name="split",
    kind=KIND,
    offered=(
        ("See it work", "One small network, with noise and without.", FIRST_LOOK),
        ("Does Ensembler hide more?", "Three systems, two attacks, three runs each.", _ENSEMBLER),
        ("As in the paper", "ResNet-18 and six defences on CIFAR-100; a GPU's work.", _PAPER),
    ),
    lists={
        "datasets": ItemList("dataset", PICTURES, "Pictures", "semsim.datasets:DATASETS", one=True),
        "split-networks": ItemList(
            "networks", NETWORKS, "networks", "semsim.systems.split:SPLIT_NETWORKS"
        ),
        "split-defences": ItemList(
            "defences", DEFENCES, "defences", "semsim.systems.split:SPLIT_DEFENCES"
        ),
        "attacks": ItemList("attacks", ATTACKS, "Attacks"),
    },
    numbers=(
        NumberField("images", "Pictures judged", "Of those the client sends."),
        NumberField("defence_seeds", "Defence seeds", "Trainings of each defence.", seeds=True),
        NumberField("attack_seeds", "Attack seeds", "A verdict needs three.", seeds=True),
    ),
    settings={"train": _TRAIN, "shadow": _SHADOW},
    named=True,
    like=like,
)


def page(context: LabContext) -> LabPage[SplitPlan]:
    """Declare the page: its texts, what its form means, what is drawn of a job."""

    def order_of(given: Given) -> SplitPlan:
        return plan_of(given, free_name(context.data / "runs", "experiment", RUNS))

    def queued(given: Given) -> Job:
        place = SplitPlace(
            data=context.data, checkpoints=Path(context.checkpoints), device=str(context.device)
        )
        job: Job = apart("semsim.systems.split.plan:queue_split", order_of(given), place)
        return job

    return LabPage(
        form=FORM,
        title="Split inference",
        intro=_INTRO,
        papers=("ensembler",),
        called="Experiment",
        nothing="No experiment has been run here yet. Choose a card and press Start.",
        data=context.data,
        html=form_html(context.checkpoints),
        order_of=order_of,
        effort=effort,
        queued=queued,
        draw=lambda job: draw(context.data, job),
        parts={"grid": ""},
        drawn_anew={METRICS_NOW: lambda: metrics_html(context.checkpoints)},
    )


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's experiment."""
    systems = FORM.crossed(
        "Each dot is a system: a network, cut between client and server, that is trained with a "
        "defence and then attacked",
        ("split-networks", "networks"),
        ("split-defences", "defences"),
        fixed=("none",),
    )
    side = (FORM.choices("datasets"), FORM.choices("attacks"))
    inside = _HTML.more(
        _LAB.fields(settings_of(FIRST_LOOK.train, _TRAIN), "train."),
        _LAB.fields(settings_of(FIRST_LOOK.shadow, _SHADOW), "shadow."),
        metrics_html(checkpoints),
    )
    lists = ("datasets", "split-networks", "split-defences")
    more = _LAB.more(lists, inside, "More: cuts, epochs, metrics")
    return str(_LAB.plan(systems, joined(side), FORM.row(), more, beside=True))


def metrics_html(checkpoints: Path) -> str:
    """List further metrics, those trained here first; the promoted SemSim is chosen."""
    known = all_metrics(Resources(checkpoints=checkpoints))
    names = sorted((name for name in known if name not in _SHOWN), key=lambda n: n in METRICS)
    choices = [FormChoice(item=name, title=known[name].spec.title, line="") for name in names]
    mine = promoted(checkpoints)
    chosen = [f"semsim:{mine}"] if mine else []
    return _HTML.metrics(
        _LAB.choices("metrics", "Metrics beside SSIM, PSNR and a recogniser", choices, chosen),
        now_at(METRICS_NOW),
    )


def plan_of(given: Given, free: str = "") -> SplitPlan:
    """The plan that the form means; `SettingsError` names a field that is empty.

    The undefended system is always among the defences: without it nothing can be said of them.

    Args:
        free: What it is called where the form does not say.
    """
    plan = FORM.order(given, free)
    return replace(
        plan,
        defences=tuple(dict.fromkeys(("none", *plan.defences))),
        shadow=replace(plan.shadow, decoder_epochs=plan.shadow.epochs),
        metrics=given.texts("metrics"),
    )


def effort(plan: SplitPlan) -> Effort:
    """Return what a plan takes."""
    found = apart("semsim.systems.split.run:outlook", plan)
    return Effort(
        made=counted(found.systems, "system"),
        more=" to train",
        attacked=(
            f"{counted(found.attacks, 'attack')}, each judged on "
            f"{counted(found.pictures, 'picture')}"
        ),
        disk=found.disk,
    )


def draw(data: Path, job: Job) -> list[Any]:
    """Return HTML of the last pictures, each attack's progress, and, once done, the verdict."""
    state = jobs.state(job)
    named = [
        (f"{model} · {attack_words(attack, '')}", folder)
        for model, attack, folder in planned(plan_of_job(job), data)
    ]
    steps = sets.in_turn(named, state)
    verdict = result = ""
    if state is JobState.DONE:
        found = jobs.result(job)
        verdict = sets.verdict_html(answer_words(found), steps, sets.METHOD)
        result = result_html(found)
    begun = [sets.strip_html(steps), sets.sets_html(steps)]
    return [*begun, verdict, result, sets.line_up_html(steps)]


@lru_cache(maxsize=8)
def planned(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """Every set of a plan: model, attack, folder; the last few are kept, as a page asks often."""
    found: tuple[tuple[str, str, Path], ...] = apart(
        "semsim.systems.split.run:planned_sets", plan, Path(data).resolve()
    )
    return found


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: a study of it, the table, what comes without features, the cost."""
    inside = _HTML.result(
        scores_html(result["summary"]),
        _HTML.baselines(result["baselines"]),
        costs_html(result["costs"]),
    )
    return sets.made_html(inside, result["sets"])


def scores_html(summary: Sequence[Mapping[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row a way to attack."""
    more = scored(pd.DataFrame(list(summary)))
    head = ["Network", "Defence", "Accuracy", "Attack", "Runs"]
    head += [CLEARER, "SSIM", "PSNR, dB", "Recognised", "Shadow right on public"]
    rows = [
        [
            row["network"],
            row["defence"],
            _HTML.accuracy(
                f"{row['accuracy']:.1%} ({100 * row['change']:+.1f} points)", row["valid"]
            ),
            attack_words(str(row["attack"]), str(row["choice"])),
            row["n"],
            count_text(row),
            spread_text(dict(row), "ssim", 3),
            spread_text(dict(row), "psnr", 2),
            "–" if pd.isna(share := row.get("recognised")) else f"{share:.0%}",
            shadow_text(row),
            *(spread_text(dict(row), name, 3) for name in more),
        ]
        for row in summary
    ]
    return _HTML.scores([*head, *more], rows, all(row["valid"] for row in summary))


def attack_words(attack: str, choice: str) -> str:
    """An attack the way people say it."""
    if not attack:
        return "not attacked"
    arm, _, body = attack.partition("-body")
    if attack not in ARMS and arm in ARMS:
        return f"{ARMS[arm].title} {body}"
    title = ARMS[attack].title if attack in ARMS else attack
    return f"{title}: {_PICKS.get(choice, choice)}" if choice else title


def costs_html(costs: Sequence[Mapping[str, Any]]) -> str:
    """Operations, time and bytes, one row a defence."""
    rows = [
        [
            f"{cost['network']} {cost['defence']}",
            f"{cost['client'] / 1e6:.2f} MFLOP, {cost['client_ms']:.1f} ms",
            f"{cost['server'] / 1e6:.2f} MFLOP, {cost['server_ms']:.1f} ms",
            f"{cost['sent']:,} bytes",
            f"{cost['returned']:,} bytes",
        ]
        for cost in costs
    ]
    return _HTML.costs(rows)
