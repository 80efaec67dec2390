"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import gr
from semsim.base.storage.names import free_name
from semsim.base.words import counted
from semsim.grid.subprocess_worker import apart
from semsim.learning.default_checkpoint import promoted
from semsim.metrics import METRICS, Resources, all_metrics
from semsim.sets.recognition import CLEARER
from semsim.systems.split.plan import ARMS, KIND, PRESETS, RUNS, SplitPlace, SplitPlan, like
from semsim.systems.split.plan import plan_of as plan_of_job
from semsim.systems.split.summary import answer_words, count_text, scored, shadow_text, spread_text
from semsim.ui import ScienceContext, jobpanel, lab_page, lab_sets, plain_words
from semsim.ui.lab_page import LabForm, LabPage, Loads, More
from semsim.ui.markup import joined, pieces
from semsim.ui.plain_words import Choice
from semsim.ui.settings_form import MOST_SEEDS, Given, changed, settings_of

_INTRO = (
    "A client runs a network's first layers and sends their features to a server ([[split "
    "inference]]). Can the server get the pictures back, and what do defences hide?"
)
_NOTHING = "No experiment has been run here yet. Choose a card and press Start."
_OUTLOOK = "semsim.systems.split.run"
_LAB, _HTML = pieces("lab.html"), pieces("split.html")
METRICS_NOW = "split-metrics"
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


def _fields(plan: SplitPlan) -> Mapping[str, str]:
    return {
        "images": str(plan.images),
        "defence_seeds": str(len(plan.defence_seeds)),
        "attack_seeds": str(len(plan.attack_seeds)),
        **{f"train.{one.name}": one.value for one in settings_of(plan.train, _TRAIN)},
        **{f"shadow.{one.name}": one.value for one in settings_of(plan.shadow, _SHADOW)},
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
        "datasets": plain_words.PICTURES,
        "split-networks": plain_words.SPLIT_NETWORK_CHOICES,
        "split-defences": plain_words.SPLIT_DEFENCE_CHOICES,
        "attacks": plain_words.SPLIT_ATTACK_CHOICES,
    },
    texts=lambda plan: {
        "datasets": (plan.dataset,),
        "split-networks": plan.networks,
        "split-defences": plan.defences,
        "attacks": plan.attacks,
    },
    fields=_fields,
    like=like,
)


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_page.render(page(context))


def page(context: ScienceContext) -> LabPage[SplitPlan]:
    """Declare the page's texts and acts, as `lab_page` takes them."""

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
        called="Experiment",
        papers=("ensembler",),
        data=context.data,
        html=form_html(context.checkpoints),
        order_of=order_of,
        told=_outlook_html,
        queued=queued,
        draw=lambda job: draw(context, job),
        nothing=_NOTHING,
        more=_pictures,
    )


def _pictures(ran: jobpanel.Jobs) -> More:
    return More(drawn=[gr.HTML(elem_id="split-grid", apply_default_css=False, padding=False)])


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's experiment."""
    systems = FORM.crossed(
        "Each dot is a system: a network, cut between client and server, that is trained with a "
        "defence and then attacked",
        ("split-networks", "networks"),
        ("split-defences", "defences"),
        fixed=("none",),
    )
    side = (FORM.choices("datasets", "Pictures", True), FORM.choices("attacks", "Attacks"))
    row = (_LAB.named(FORM.name), _HTML.numbers(FIRST_LOOK, MOST_SEEDS))
    inside = _HTML.more(
        _LAB.fields(settings_of(FIRST_LOOK.train, _TRAIN), "train."),
        _LAB.fields(settings_of(FIRST_LOOK.shadow, _SHADOW), "shadow."),
        metrics_html(checkpoints),
    )
    lists = ("datasets", "split-networks", "split-defences")
    more = _LAB.more(lists, inside, "More: cuts, epochs, metrics")
    return str(_LAB.plan(systems, joined(side), joined(row), more, beside=True))


def metrics_html(checkpoints: Path) -> str:
    """List further metrics, those trained here first; the promoted SemSim is chosen."""
    known = all_metrics(Resources(checkpoints=checkpoints))
    names = sorted((name for name in known if name not in _SHOWN), key=lambda n: n in METRICS)
    choices = [Choice(item=name, title=known[name].spec.title, line="") for name in names]
    mine = promoted(checkpoints)
    chosen = [f"semsim:{mine}"] if mine else []
    return _HTML.metrics(
        _LAB.choices("metrics", "Metrics beside SSIM, PSNR and a recogniser", choices, chosen),
        lab_page.now_at(METRICS_NOW),
    )


def plan_of(given: Given, free: str = "") -> SplitPlan:
    """The plan that the form means; `SettingsError` names a field that is empty.

    The undefended system is always among the defences: without it nothing can be said of them.
    free: what it is called where the form does not say.
    """
    datasets = given.texts("datasets")
    if not datasets:
        raise SettingsError("Choose the pictures.")
    shadow = changed(FIRST_LOOK.shadow, given.fields, "shadow.")
    return replace(
        FIRST_LOOK,
        name=given.text("name") or free,
        dataset=datasets[0],
        networks=given.texts("split-networks"),
        defences=tuple(dict.fromkeys(("none", *given.texts("split-defences")))),
        attacks=given.texts("attacks"),
        defence_seeds=given.seeds("defence_seeds", "Defence seeds"),
        attack_seeds=given.seeds("attack_seeds", "Attack seeds"),
        images=given.whole("images", "Pictures judged"),
        train=changed(FIRST_LOOK.train, given.fields, "train."),
        shadow=replace(shadow, decoder_epochs=shadow.epochs),
        metrics=given.texts("metrics"),
    )


def _outlook_html(plan: SplitPlan, last: str) -> str:
    found = apart(f"{_OUTLOOK}:outlook", plan)
    pictures = counted(found.pictures, "picture")
    return lab_page.outlook_html(
        counted(found.systems, "system"),
        " to train",
        f"{counted(found.attacks, 'attack')}, each judged on {pictures}",
        found.disk,
        last,
    )


def draw(context: ScienceContext, job: Job) -> list[Any]:
    """Return HTML of the last pictures, each attack's progress, and, once done, the verdict."""
    state = jobs.state(job)
    steps = lab_sets.in_turn(
        [
            (f"{model} · {attack_words(attack, '')}", folder)
            for model, attack, folder in planned(plan_of_job(job), context.data)
        ],
        state,
    )
    begun = [lab_sets.strip_html(steps), lab_sets.sets_html(steps)]
    over = ["", ""]
    if state is JobState.DONE:
        result = jobs.result(job)
        verdict = lab_sets.verdict_html(answer_words(result), steps, lab_sets.METHOD)
        over = [verdict, result_html(result)]
    return [*begun, *over, lab_sets.line_up_html(steps)]


@lru_cache(maxsize=8)
def planned(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """Every set of a plan: model, attack, folder; the last few are kept, as a page asks often."""
    found: tuple[tuple[str, str, Path], ...] = apart(
        f"{_OUTLOOK}:planned_sets", plan, Path(data).resolve()
    )
    return found


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: a study of it, the table, what comes without features, the cost."""
    inside = _HTML.result(
        scores_html(result["summary"]),
        _HTML.baselines(result["baselines"]),
        costs_html(result["costs"]),
    )
    return lab_page.made_html(inside, result["sets"])


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
