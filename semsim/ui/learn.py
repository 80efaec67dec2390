"""The page Train SemSim: choose votes and settings, watch it learn, find it again."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError, SemsimError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.jobs.orders import to_record
from semsim.base.pages_library import QUIETLY, UNSEEN, gr
from semsim.grid.subprocess_worker import apart
from semsim.lab.curves import Chart, Curve, svg
from semsim.lab.markup import alert_html, joined, pieces, rooted
from semsim.learning import PRESETS, TrainSettings, baselines
from semsim.learning.ablations import (
    STUDIES,
    AblationPlan,
    failures,
    study_plan,
    study_table,
    summary,
    usual_values,
)
from semsim.learning.ablations_run import (
    KIND,
    LONG,
    SHUFFLES,
    JudgedOrder,
    Material,
    TrainingJob,
    Workplace,
    name_of,
)
from semsim.learning.baselines import CHOICES, auc_words
from semsim.learning.default_checkpoint import doubt, promote, promoted
from semsim.learning.diagnostics import course_in
from semsim.learning.evaluation import judged_of, scale_notes, scope_of
from semsim.learning.initial import starts
from semsim.learning.pace import USUAL, LearningPace, pace_words, preset_settings
from semsim.learning.settings import IMAGENET, SCRATCH, Order
from semsim.learning.splits import (
    KINDS,
    HoldOut,
    choices,
    count,
    hold_out_text,
    join_labels,
    join_votes,
    parse_hold_out,
)
from semsim.learning.triplets import is_simulated, take_stock
from semsim.metrics import BACKBONES
from semsim.ui import ScienceContext, jobpanel, lab, learn_view
from semsim.ui.learn_view import TrainingRow

AND = " + "  # between the names of studies taken as one
_COLOURS = {
    **{"auc": ("accent", False), "start": ("accent", True), "mse": ("ink", True)},
    **{"psnr": ("soft", True), "ssim": ("soft", False)},
}
_NAMES = {"auc": "SemSim", "start": "Initial weights", "mse": "MSE", "psnr": "PSNR", "ssim": "SSIM"}


def section(context: ScienceContext, study: Any, hold_out: Any, share: Any) -> jobpanel.Jobs:
    """Lay the section out where the caller stands; returns its jobs, which the page loads.

    Args:
        study, hold_out, share: The components of the page that say what is learned from and judged
            by.
    """
    with gr.Tab("What it depends on", id="studies", render_children=True, elem_id="learn-studies"):
        gr.Markdown(
            "Each run varies one setting. Training and test sets are those chosen under New."
        )
        with gr.Row():
            what = gr.Radio(
                [(kind.title, name) for name, kind in STUDIES.items()],
                value="budget",
                label="Varied setting",
                elem_id="study-what",
            )
            preset = gr.Radio(list(PRESETS), value=USUAL, label="Preset", elem_id="study-preset")
        with gr.Row():
            values = gr.Dropdown(
                usual_values("budget"),
                value=[],
                multiselect=True,
                allow_custom_value=True,
                label="Values",
                info="None chosen: all of these that the votes allow. Another one can be typed.",
                elem_id="study-values",
            )
            seeds = gr.Number(
                1, precision=0, minimum=1, label="Trainings of each", elem_id="study-seeds"
            )
        begin = gr.Button("Start the study", elem_id="study-start")
        trouble = gr.HTML(elem_id="study-trouble")
        ran = jobpanel.Jobs("Study run", "study", context.data / "jobs", AblationPlan.KIND)
        plot = gr.HTML(elem_id="study-plot")
        table = gr.HTML(elem_id="study-table")
    what.input(offered_values, what, values, **UNSEEN)
    ran.follow(draw_studies, [plot, table])
    asked = [study, hold_out, share, what, preset, values, seeds]
    ran.begin_with(begin, asked, trouble, lambda *given: start_study(context, *given))
    return ran


def offered_values(what: str) -> Any:
    """An update of the list of values: those of what is varied, none of them chosen."""
    return gr.Dropdown(
        choices=list(usual_values(what)), value=[], multiselect=True, allow_custom_value=True
    )


def start_study(
    context: ScienceContext,
    studies: Sequence[str],
    held: str | None,
    share: float,
    *varied: Any,
) -> Job:
    """Start a study as a job;

    Args:
        varied: What is varied, the preset, the values chosen, as people write them, and seeds.

    Raises:
        SemsimError: Where it cannot be.
    """
    what, preset, chosen, seeds = varied
    material = material_of(context, studies)
    if not seeds or seeds < 1:
        raise SettingsError(f"Trainings of each must be at least 1; got {seeds!r}.")
    plan = study_plan(
        what,
        ",".join(chosen) if chosen else None,
        material.labels,
        settings=replace(PRESETS[preset], device=str(context.device)),
        hold_out=parse_hold_out(held or "original", share),
        trainings=int(seeds),
    )
    plan = replace(plan, controls=baselines.ALL)
    return started(context, "queue_ablation", plan, material)


def draw_studies(job: Job | None) -> list[Any]:
    """Figure and table of a finished study."""
    if job is None or jobs.state(job) is not JobState.DONE:
        return ["", ""]
    found = jobs.result(job)
    return [svg(study_chart(found)), study_html(found)]


def study_chart(found: Mapping[str, Any]) -> Chart:
    """Held-out AUC of SemSim against what is varied, lowest to highest seed as a bar."""
    kind, table = STUDIES[found["what"]], summary(found["rows"])
    curves = []
    for name, title in _NAMES.items():
        colour, dashed = _COLOURS[name]
        ends = ("auc_lowest", "auc_highest") if name == "auc" else ()
        low, high = (table[one].tolist() for one in ends) if ends else ((), ())
        values = [str(one) for one in table["value"]]
        y = table[name].astype(float).tolist()
        curves.append(
            Curve(name=title, x=values, y=y, colour=colour, dashed=dashed, low=low, high=high)
        )
    auc = auc_words(scope_of(*judged_of(found["rows"])))
    title = f"{kind.title}: held-out {auc}"
    return Chart(title=title, x=kind.axis, y="AUC", curves=tuple(curves), highest=1.05)


def study_html(found: Mapping[str, Any]) -> str:
    """Return the findings of a study as a table: a row a value, means over seeds."""
    heads, rows = study_table(found)
    said = [*scale_notes(found["rows"]), *failures(found["rows"])]
    what = STUDIES[found["what"]]
    return pieces("learn_studies.html", "semsim.ui").found(
        what, heads, rows, found["simulated"], said
    )


PLAIN = (
    *("backbone", "epochs", "lr", "batch_size", "triplets_per_original", "margin"),
    *("validation_fraction", "small_stem", "normalize", "seed"),
)
ADVANCED = (
    *("weights", "batch_norm", "loss", "ordering", "mining", "augmentation", "identity_weight"),
    *("input_size", "weight_decay", "patience", "mixed_precision"),
)
# In the order of the form; the settings that are not on it keep the preset's values.
FORM = (*PLAIN, *ADVANCED)
FIELDS = {one.name: one for one in fields(TrainSettings)}
_WHOLE = {name for name in FORM if type(FIELDS[name].default) is int}
_NO_FILE = [
    ("None, from scratch", SCRATCH),
    ("ImageNet, torchvision's, fetched the first time", IMAGENET),
]


def build(settings: TrainSettings) -> dict[str, Any]:
    """Lay the form out, filled with `settings`; return its components in the order of `FORM`."""
    with gr.Accordion("Settings", open=False, elem_id="learn-settings"):
        components = {name: _component(name) for name in PLAIN}
        lab.words(*_terms(PLAIN))
    with gr.Accordion("Advanced", open=False, elem_id="learn-advanced"):
        components |= {name: _component(name) for name in ADVANCED}
        lab.words(*_terms(ADVANCED))
    for name, value in zip(FORM, form_values(settings), strict=True):
        components[name].value = value
        components[name].elem_id = f"learn-{name.replace('_', '-')}"
    return components


def form_values(settings: TrainSettings) -> list[Any]:
    """The values of the form that mean `settings`, in the order of `FORM`."""
    return [getattr(settings, field) for field in FORM]


def settings_of(preset: str, values: Sequence[Any], checkpoints: Path) -> TrainSettings:
    """The preset with the values of the form, in the order of `FORM`, in their place.

    Args:
        checkpoints: Folder of the files of weights that are offered.

    Raises:
        SettingsError: For an empty value, or a file that is not there.
    """
    given = dict(zip(FORM, values, strict=True))
    empty = [field for field, value in given.items() if value is None]
    if empty:
        raise SettingsError(f"{empty[0]} is empty; give a value.")
    whole = {field: int(given[field]) for field in _WHOLE}
    weights = {"weights": _start(str(given["weights"]), checkpoints)}
    return replace(PRESETS[preset], **{**given, **whole, **weights})


def starts_offered(checkpoints: Path) -> Any:
    """An update of the dropdown of weights: the files there are now, and which cannot be read."""
    broken: list[str] = []
    found = starts(checkpoints, broken.append)
    files = [(f"{name} ({says})", name) for name, says in found.items()]
    told = " ".join(filter(None, (FIELDS["weights"].metadata["text"], *broken)))
    return gr.Dropdown(choices=[*_NO_FILE, *files], info=told or None)


def _start(chosen: str, checkpoints: Path) -> str:
    if chosen in (SCRATCH, IMAGENET):
        return chosen
    if chosen not in starts(checkpoints):
        raise SettingsError(f"There are no weights {chosen!r} in the folder of checkpoints.")
    return str((Path(checkpoints) / chosen).resolve())


def _terms(names: Sequence[str]) -> list[str]:
    """The words of the glossary that explain these settings, each once."""
    return [term for term in dict.fromkeys(FIELDS[name].metadata["term"] for name in names) if term]


def _component(name: str) -> Any:
    """Return the form component that edits a setting, by the metadata of its field."""
    one = FIELDS[name]
    facts = one.metadata
    said: dict[str, Any] = {"label": facts["label"], "info": facts["text"] or None}
    if name == "backbone":
        return gr.Dropdown(list(BACKBONES), **said)
    if name == "weights":  # after a restart the server knows only the first choices
        return gr.Dropdown(_NO_FILE, allow_custom_value=True, **said)
    if name == "validation_fraction":
        return gr.Slider(0, 0.5, step=0.05, **said)
    if facts["choices"]:
        return gr.Radio(list(facts["choices"]), **said)
    if isinstance(one.default, bool):
        return gr.Checkbox(**said)
    least = facts["above"] if facts["least"] is None else facts["least"]
    return gr.Number(precision=0 if name in _WHOLE else None, minimum=least, **said)


_NEW, _LIST, _ONE = "new", "list", "one"  # tabs
_START = "Start training"
_INTRO = (
    "[[SemSim]] learns from votes, [[triplet]] by triplet, that an original is near to the "
    "reconstructions people recognise, and far from the others."
)
_NO_STUDY = (
    '<div class="st-empty"><p>There is no study yet. SemSim learns from votes.</p>'
    '<p><a class="st-button" data-kind="primary" href="{}">Make a study</a></p></div>'
)
_NO_CHOICE = "<p>Choose at least one study; its votes are what SemSim learns from.</p>"
_ORIGINALS = ("Originals only", "original")


def render(context: ScienceContext) -> list[tuple[Callable[..., Any], list[Any]]]:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    lab.head("Train SemSim", _INTRO)
    with gr.Tabs(elem_id="learn-tabs") as tabs:
        with gr.Tab("New", id=_NEW):
            order_form = _order_form()
        with gr.Tab("Running and done", id=_LIST, render_children=True):
            trainings = gr.HTML(lab.reading(), elem_id="learn-trainings", apply_default_css=False)
        with gr.Tab("One training", id=_ONE, render_children=True):
            ran, drawn, choose, sure, chosen_one = _watch_area(context)
        study, stock, hold_out, share, split, name, preset, controls, form = order_form[:9]
        begin, trouble = order_form[9:]
        studying = section(context, study, hold_out, share)

    watched = ran.follow(
        lambda job: [*draw(context, job), trainings_now(context)], [*drawn, trainings]
    )

    def load(request: gr.Request | None = None) -> list[Any]:
        studies = [(s.label, s.id) for s in context.studies()]
        in_hand = [context.in_hand(request)] if request else []
        known = [id_ for _, id_ in studies]
        first = [id_ for id_ in (*in_hand, *context.voted(), *known) if id_ in known][:1]
        own = _training_on(context, first)
        runs = any(jobs.state(one) in jobs.LIVE for one in jobs.list_jobs(ran.root, KIND))
        return [
            gr.Tabs(selected=_ONE if own else _LIST if runs else _NEW),
            gr.Dropdown(choices=studies, value=first),
            *take_studies(first, HoldOut().fraction),
            starts_offered(context.checkpoints),
            *ran.load(own),
            *studying.load(),
        ]

    def start(studies: Sequence[str], held: str, part: float, *others: Any) -> Job:
        name, preset, controls, *values = others
        settings = settings_of(preset, values, context.checkpoints)
        asked = parse_hold_out(held or "original", part)
        return begin_training(context, studies, name, settings, asked, controls)

    def promote_chosen(job_id: str | None, sure: bool = False) -> list[Any]:
        said, asks = promote_training(context, job_id, sure=sure)
        return [said, trainings_now(context), gr.Button(visible=asks)]

    def promote_surely(job_id: str | None) -> list[Any]:
        return promote_chosen(job_id, sure=True)

    def forget() -> list[Any]:
        return ["", gr.Button(visible=False)]

    def take_preset(name: str, studies: Sequence[str], held: str, part: float) -> list[Any]:
        said = describe_split(context, studies, held, part, name)
        return [said, *form_values(_settings(context, studies, held, part, name) or PRESETS[name])]

    def take_studies(chosen: Sequence[str], part: float) -> list[Any]:
        # Of other studies originals are held out until something else is chosen.
        asked = HoldOut(fraction=part)
        return [*describe(context, chosen, asked), *advise(context, chosen, asked)]

    def hear(studies: Sequence[str], held: str, part: float, name: str) -> list[Any]:
        offered = gr.Dropdown(choices=[(s.label, s.id) for s in context.studies()])
        split = describe_split(context, studies, held, part, name)
        return [offered, describe(context, studies)[0], split, trainings_now(context)]

    ran.news.news(
        hear, [study, hold_out, share, preset], [study, stock, split, trainings], **UNSEEN
    )
    # Where the weights are chosen comes once more on load, with the files there are.
    fields = [*form.values()]
    advised = [preset, *(one for name, one in form.items() if name != "weights")]
    described = [stock, name, hold_out, split, begin, *advised]
    study.input(take_studies, [study, share], described, **QUIETLY)
    asked = [study, hold_out, share]
    for part in (hold_out, share):
        part.change(
            lambda *given: describe_split(context, *given), [*asked, preset], split, **UNSEEN
        )
    choose.click(promote_chosen, ran.chosen, [chosen_one, trainings, sure], **QUIETLY)
    sure.click(promote_surely, ran.chosen, [chosen_one, trainings, sure], **QUIETLY)
    preset.input(take_preset, [preset, *asked], [split, *fields], **QUIETLY)
    ran.chosen.change(forget, None, [chosen_one, sure], **UNSEEN)
    ran.begin_with(
        begin,
        [*asked, name, preset, controls, *fields],
        trouble,
        start,
        begun=[
            (name, lambda studies, *values: suggest_name(context, studies)),
            (tabs, gr.update(selected=_ONE)),
        ],
    )
    loaded = [tabs, study, *described, form["weights"], *watched, *studying.outputs]
    return [(load, loaded)]


def describe(
    context: ScienceContext, studies: Sequence[str], asked: HoldOut | None = None
) -> list[Any]:
    """Return the stock of the studies, a free name, the hold-outs, what one leaves, and Start.

    Args:
        asked: Which originals are held out first; left out, the usual share.
    """
    asked = asked or HoldOut()
    nothing = gr.Dropdown(choices=[_ORIGINALS], value=_ORIGINALS[1])
    off = gr.Button("Nothing to learn from yet", interactive=False)
    if not studies:
        return [
            _NO_CHOICE if context.studies() else _NO_STUDY.format(rooted("/studio/new")),
            "",
            nothing,
            "",
            off,
        ]
    try:
        labels = labels_of(context, studies)
        inventory = take_stock(labels)
        html = learn_view.stock_html(inventory, is_simulated(labels))
        groups = [(kind, value) for kind in KINDS for value in choices(labels, kind)]
        offered = [(f"Originals and the {k} {v}", f"{k}={v}") for k, v in groups]
        name = suggest_name(context, studies)
    except SemsimError as error:
        return [alert_html(error), "", nothing, "", off]
    first = hold_out_text(asked)
    return [
        html,
        name,
        gr.Dropdown(choices=[_ORIGINALS, *offered], value=first),
        describe_split(context, studies, first, asked.fraction, USUAL),
        gr.Button(_START, interactive=True) if inventory.usable else off,
    ]


def _training_on(context: ScienceContext, studies: Sequence[str]) -> str | None:
    """The id of the newest training on one of these studies, None without any."""
    names = {study_names(context, [one]) for one in studies}
    found = ((job.id, _row(job, None)) for job in jobs.list_jobs(context.data / "jobs", KIND))
    return next((id_ for id_, row in found if names & {*row.study.split(AND)}), None)


def advise(
    context: ScienceContext, studies: Sequence[str], asked: HoldOut | None = None
) -> list[Any]:
    """The preset that a training takes left to itself, and its form less weights."""
    names, asked = [one for one in FORM if one != "weights"], asked or HoldOut()
    settings = _settings(context, studies, hold_out_text(asked), asked.fraction, USUAL)
    if settings is None:
        return [gr.skip() for _ in ("preset", *names)]
    return [USUAL, *(getattr(settings, one) for one in names)]


def _settings(
    context: ScienceContext, studies: Sequence[str], held: str | None, share: float, preset: str
) -> TrainSettings | None:
    """The settings of a preset for what a hold-out leaves to learn from; None for nothing."""
    try:
        asked = parse_hold_out(held or "original", share)
        n = len(count(labels_of(context, studies), asked).training.usable)
    except SemsimError:  # said already where the studies are described
        return None
    return preset_settings(preset, n, _pace(str(context.device)))


@lru_cache
def _pace(device: str) -> LearningPace:
    """The pace of this machine, measured once, in a process that has torch."""
    found: LearningPace = apart("semsim.learning.pace:pace_of", device)
    return found


def describe_split(
    context: ScienceContext, studies: Sequence[str], held: str | None, share: float, preset: str
) -> str:
    """Return what a training with this hold-out and preset would have and lack, as HTML."""
    if not studies:
        return ""
    try:
        asked = parse_hold_out(held or "original", share)
        counts = count(labels_of(context, studies), asked)
        last = _last(context, studies, asked, preset)
        pace = pace_words(len(counts.training.usable), _pace(str(context.device)))
        return learn_view.split_html(counts, asked, pace, last)
    except SemsimError as error:
        return alert_html(error)


def _last(context: ScienceContext, studies: Sequence[str], held: HoldOut, preset: str) -> str:
    """Return what the last training on these studies, with this preset and test, took here."""
    found = _settings(context, studies, hold_out_text(held), held.fraction, preset)
    settings = to_record(found or PRESETS[preset])
    del settings["device"]
    order = {"study": study_names(context, studies), "settings": settings}
    asked = {"asked": {"order": order, "hold_out": to_record(held)}}
    called = "training on these studies, with this preset and test,"
    return jobpanel.last_words(context.data / "jobs", KIND, asked, called)


def promote_training(
    context: ScienceContext, job_id: str | None, *, sure: bool = False
) -> tuple[str, bool]:
    """Make the SemSim of a finished training that of the workspace; return the outcome as HTML.

    One that lost to MSE, PSNR, SSIM, initial weights or the calibrated baseline is promoted only if
    `sure`. Else the HTML names what it lost to, and True is returned: the user has to be asked once
    more.
    """
    job = jobpanel.find(context.data / "jobs", job_id)
    try:
        if job is None or jobs.state(job) is not JobState.DONE:
            raise DataError("Choose a training that is done; only its SemSim can be used.")
        name = jobs.read_order(job, TrainingJob).asked.order.name
        doubtful = doubt(context.checkpoints, name)
        if doubtful and not sure:
            return learn_view.HTML.doubt(name, doubtful), True
        promote(context.checkpoints, name)
    except SemsimError as error:
        return alert_html(error), False
    return learn_view.HTML.promoted(name), False


def draw(context: ScienceContext, job: Job | None) -> list[Any]:
    """The verdict on a training when it is done, its curves, its result, the button to use it."""
    if job is None:
        return ["", "", "", gr.Button(visible=False)]
    verdict, result, is_done = "", "", jobs.state(job) is JobState.DONE
    if is_done:
        found = jobs.result(job)
        result = learn_view.result_html(
            found,
            studies_behind(context, found["study"]),
            learn_view.offered(Path(found["checkpoint"]), Path(context.checkpoints)),
        )
        verdict = learn_view.verdict_html(found)
    curves = joined(svg(one) for one in learn_view.charts(course_in(job.folder)))
    return [verdict, curves, result, gr.Button(visible=is_done)]


def begin_training(
    context: ScienceContext,
    studies: Sequence[str],
    name: str,
    settings: TrainSettings,
    hold_out: HoldOut,
    controls: str,
) -> Job:
    """Start a judged training on studies as a job; raises `SemsimError` where it cannot be."""
    material = material_of(context, studies)
    order = Order(
        name=name.strip(),
        checkpoints=Path(context.checkpoints).resolve(),
        settings=replace(settings, device=str(context.device)),
        study=study_names(context, studies),
    )
    asked = JudgedOrder(order=order, hold_out=hold_out, controls=controls)
    return started(context, "queue_judged", asked, material)


def suggest_name(context: ScienceContext, studies: Sequence[str]) -> str:
    """A name made from the studies' that no checkpoint and no training has."""
    study = study_names(context, studies).lower()
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in study)
    stem = "-".join(["semsim", *letters.split()])[:60]
    taken = {name_of(job) for job in jobs.list_jobs(context.data / "jobs", KIND)}
    taken |= {path.stem for path in Path(context.checkpoints).glob("*.safetensors")}
    numbers = itertools.count(1)
    return next(f"{stem}-{n}" for n in numbers if f"{stem}-{n}" not in taken)


def trainings_now(context: ScienceContext) -> str:
    """The list of all trainings of the workspace, as HTML."""
    best = promoted(context.checkpoints)
    trainings = jobs.list_jobs(context.data / "jobs", KIND)
    return learn_view.trainings_html([_row(job, best) for job in trainings])


def _row(job: Job, best: str | None) -> TrainingRow:
    state = jobs.state(job)
    try:
        found = jobs.read_order(job, TrainingJob)
        name, study, simulated = found.asked.order.name, found.asked.order.study, found.simulated
    except SemsimError as error:
        name, study, simulated = job.title, f"unreadable: {error}", False
    return TrainingRow(
        created=job.created,
        name=name,
        study=study,
        simulated=simulated,
        state=state,
        result=jobs.result(job) if state is JobState.DONE else {},
        promoted=state is JobState.DONE and name == best,
    )


def _order_form() -> tuple[Any, ...]:
    with gr.Row():
        with gr.Column(scale=1, min_width=320):
            learned = _learned_from()
        with gr.Column(scale=1, min_width=320):
            return (*learned, *_learned_how())


def _learned_from() -> tuple[Any, ...]:
    # The lists below change while the server runs; after a restart it knows an open page's choice
    # only if a value outside the first list is allowed.
    study = gr.Dropdown(
        [],
        label="Studies whose votes to learn from",
        info="The current study; add others to learn from all of them.",
        multiselect=True,
        allow_custom_value=True,
        elem_id="learn-study",
    )
    hold_out = gr.Dropdown(
        [_ORIGINALS],
        value=_ORIGINALS[1],
        label="Keep for the test",
        info="Test set: originals not used for training.",
        allow_custom_value=True,
        elem_id="learn-hold-out",
    )
    share = gr.Slider(
        0.1, 0.5, HoldOut().fraction, step=0.05, label="Share of originals", elem_id="learn-share"
    )
    lab.words("held out")
    stock = gr.HTML(elem_id="learn-stock")
    split = gr.HTML(elem_id="learn-split")
    return study, stock, hold_out, share, split


def _learned_how() -> tuple[Any, ...]:
    name = gr.Textbox(label="Name of the new SemSim", max_length=80, elem_id="learn-name")
    preset = gr.Radio(
        list(PRESETS),
        value=USUAL,
        label="Preset",
        info="triplet: the paper's loss, on the largest ResNet that this machine trains in ten "
        "minutes. pooled: ResNet-18, which also makes distances of different originals comparable. "
        "paper: as published, ResNet-50. code: as the authors' code, ResNet-18, the same loss.",
        elem_id="learn-preset",
    )
    controls = gr.Radio(
        [
            ("Initial weights, the calibrated baseline and shuffled votes", CHOICES[0]),
            ("Initial weights and the calibrated baseline", CHOICES[1]),
        ],
        value=CHOICES[0],
        label="Compared with",
        info="Initial weights need no training; the baseline weighs pixels by "
        f"the same votes. The training on shuffled votes is done {SHUFFLES} times. After "
        f"{LONG // 60} minutes no further one begins.",
        elem_id="learn-controls",
    )
    lab.words("initial weights", "calibrated baseline", "shuffled votes")
    form = build(PRESETS[USUAL])
    begin = gr.Button(_START, variant="primary", elem_id="learn-start")
    trouble = gr.HTML(elem_id="learn-trouble")
    return name, preset, controls, form, begin, trouble


def _watch_area(context: ScienceContext) -> tuple[jobpanel.Jobs, list[Any], Any, Any, Any]:
    verdict = gr.HTML(elem_id="learn-verdict", padding=False)
    with gr.Row():
        choose = gr.Button(
            "Use as the SemSim of this workspace",
            visible=False,
            scale=0,
            min_width=400,
            elem_id="learn-promote",
        )
        sure = gr.Button(
            "Use it all the same",
            variant="stop",
            visible=False,
            scale=0,
            min_width=240,
            elem_id="learn-promote-sure",
        )
    said = gr.HTML(elem_id="learn-promoted", padding=False)
    ran = jobpanel.Jobs("Training", "learn", context.data / "jobs", KIND)
    curves = gr.HTML(elem_id="learn-curves", padding=False)
    result = gr.HTML(elem_id="learn-result", padding=False)
    return ran, [verdict, curves, result, choose], choose, sure, said


def study_names(context: ScienceContext, ids: Sequence[str]) -> str:
    """Return the joint name of the chosen studies; raises `DataError` where one is no more."""
    names = {study.id: study.name for study in context.studies()}
    if not set(ids) <= set(names):
        raise DataError("This study does not exist any more; reload the page.")
    return AND.join(names[one] for one in ids)


def studies_behind(context: ScienceContext, together: str) -> dict[str, str]:
    """Names by id of the studies that `study_names` called `together`, those that still exist."""
    names = {study.id: study.name for study in context.studies()}
    one = {id_: name for id_, name in names.items() if name == together}
    return one or {id_: name for id_, name in names.items() if name in together.split(AND)}


def labels_of(context: ScienceContext, ids: Sequence[str]) -> pd.DataFrame:
    """Labels of all chosen studies; `DataError` where none is, or two judge the same images."""
    if not ids:
        raise DataError("Choose a study first; its votes are what SemSim learns from.")
    tables = [(study_names(context, [one]), context.labels(one)) for one in ids]
    return tables[0][1] if len(tables) == 1 else join_labels(tables)


def material_of(context: ScienceContext, ids: Sequence[str]) -> Material:
    """Labels and votes of all chosen studies; people of two studies count as different people."""
    labels = labels_of(context, ids)
    votes = {one: context.votes(one) for one in ids}
    joined = join_votes(votes) if len(votes) > 1 else votes[ids[0]]
    return Material(labels=labels, votes=joined)


def started(context: ScienceContext, queue: str, asked: Any, material: Material) -> Job:
    """Start what is asked for as a job;

    Args:
        queue: What makes it, of `semsim.learning.ablations_run`.

    Raises:
        SemsimError: Where it cannot be.
    """
    place = Workplace(
        checkpoints=Path(context.checkpoints).resolve(),
        scores=(context.data / "scores").resolve(),
        device=str(context.device),
    )
    where = f"semsim.learning.ablations_run:{queue}"
    job: Job = apart(where, asked, material, place, context.data / "jobs")
    jobs.start(job)
    return job
