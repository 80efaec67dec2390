"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.grid.subprocess_worker import apart
from semsim.lab import LabContext, sets
from semsim.lab.choices import CHOICES, DATASETS, FormChoice, choices_in
from semsim.lab.markup import pieces
from semsim.lab.page import Crossed, ItemList, LabForm, LabPage, NumberField, now_at
from semsim.lab.settings_form import Given
from semsim.learning.default_checkpoint import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.systems.split.plan import (
    FIRST_LOOK,
    KIND,
    PRESETS,
    RUNS,
    SYSTEMS,
    SplitPlace,
    SplitPlan,
    like,
    planned,
)
from semsim.systems.split.plan import plan_of as plan_of_job
from semsim.systems.split.summary import answer_words, attack_words, result_html

_INTRO = (
    "A client runs a network's first layers and sends their features to a server ([[split "
    "inference]]). Can the server get the pictures back, and what do defences hide?"
)
_LAB, _HTML = pieces("lab.html"), pieces("page.html", "semsim.systems.split")
_CHOICES = choices_in("semsim.systems.split")
METRICS_NOW = "split-metrics"
_PAPER = replace(PRESETS["paper"], name="", dataset="cifar100")
_SHOWN = ("ssim", "psnr", "recogniser")  # scores that every result has
_TRAIN = ("epochs", "ensemble_epochs", "lr", "ensemble_lr", "batch_size")
_SHADOW = ("epochs", "lr", "batch_size", "start")
FORM = LabForm(
    name="split",
    kind=KIND,
    offered=(
        ("See it work", "One small network, with noise and without.", FIRST_LOOK),
        (
            "Does Ensembler hide more?",
            "Three systems, two attacks, three runs each.",
            SYSTEMS,
        ),
        ("As in the paper", "ResNet-18 and six defences on CIFAR-100; a GPU's work.", _PAPER),
    ),
    lists={
        "datasets": ItemList("dataset", CHOICES["pictures"], "Pictures", DATASETS, one=True),
        "split-networks": ItemList(
            "networks", _CHOICES["networks"], "networks", "semsim.systems.split:SPLIT_NETWORKS"
        ),
        "split-defences": ItemList(
            "defences", _CHOICES["defences"], "defences", "semsim.systems.split:SPLIT_DEFENCES"
        ),
        "attacks": ItemList("attacks", _CHOICES["attacks"], "Attacks"),
    },
    numbers=(
        NumberField("images", "Pictures judged", "Of those the client sends."),
        NumberField("defence_seeds", "Defence seeds", "Trainings of each defence.", seeds=True),
        NumberField("attack_seeds", "Attack seeds", "A verdict needs three.", seeds=True),
    ),
    settings={"train": _TRAIN, "shadow": _SHADOW},
    named=("experiment", RUNS),
    like=like,
    crossed=Crossed(
        caption="Each dot is a system: a network, cut between client and server, that is trained "
        "with a defence and then attacked",
        across=("split-networks", "networks"),
        down=("split-defences", "defences"),
        fixed=("none",),
    ),
    folded="cuts, epochs, metrics",
)


def page(context: LabContext) -> LabPage[SplitPlan]:
    """Declare the page: its texts, what its form means, what is drawn of a job."""
    place = SplitPlace(data=context.data, checkpoints=context.checkpoints, device=context.device)
    metrics = metrics_html(context.checkpoints)

    def order_of(given: Given) -> SplitPlan:
        return plan_of(given, FORM.free_name(context.data))

    return LabPage(
        form=FORM,
        title="Split inference",
        intro=_INTRO,
        papers=("ensembler",),
        called="Experiment",
        nothing="No experiment has been run here yet. Choose a card and press Start.",
        data=context.data,
        html=FORM.html(_HTML.more(*map(FORM.settings_html, FORM.settings), metrics)),
        order_of=order_of,
        effort=lambda plan: apart("semsim.systems.split.run:effort", plan),
        queued=lambda given: apart("semsim.systems.split.plan:queue_split", order_of(given), place),
        draw=lambda job: draw(context.data, job),
        parts={"grid": ""},
        drawn_anew={METRICS_NOW: lambda: metrics_html(context.checkpoints)},
    )


def metrics_html(checkpoints: Path) -> str:
    """List further metrics, those trained here first; the promoted SemSim is chosen."""
    known = all_metrics(Resources(checkpoints=checkpoints))
    names = sorted((name for name in known if name not in _SHOWN), key=lambda n: n in METRICS)
    choices = [FormChoice(item=name, title=known[name].spec.title, line="") for name in names]
    mine = promoted(checkpoints)
    chosen = [f"semsim:{mine}"] if mine else []
    return _HTML.metrics(
        _LAB.choices(
            "metrics", "Metrics besides SSIM, PSNR and a reference classifier", choices, chosen
        ),
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


def draw(data: Path, job: Job) -> list[Any]:
    """Return HTML of the last pictures, each attack's progress, and, once done, the verdict."""
    state = jobs.state(job)
    named = [
        (f"{model} · {attack_words(attack, '')}", folder)
        for model, attack, folder in planned(plan_of_job(job), data)
    ]
    found = jobs.result(job) if state is JobState.DONE else None
    said, result = ((), "") if found is None else (answer_words(found), result_html(found))
    return sets.drawn(sets.in_turn(named, state), said, sets.METHOD, result)
