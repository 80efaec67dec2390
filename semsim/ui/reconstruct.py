"""The page Reconstruct: choose targets and attacks, see what they take, run them, look."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semsim.attacks.as_text import with_preset
from semsim.base.errors import SemsimError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import gr
from semsim.base.storage.names import free_name
from semsim.campaign.campaign_job import KIND, like, name_of
from semsim.campaign.plan import DEMO_GRID, FIRST_LOOK, PAPER_GRID, Campaign
from semsim.campaign.watch import read_campaign
from semsim.grid.subprocess_worker import apart
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings
from semsim.ui import ScienceContext, jobpanel, lab, lab_page, plain_words, reconstruct_view
from semsim.ui.jobpanel import QUIETLY
from semsim.ui.lab_page import LabForm, LabPage, Loads, More
from semsim.ui.markup import joined, pieces
from semsim.ui.reconstruct_data import Pictures, SetView, kept_plan, set_views, under_attack
from semsim.ui.settings_form import MOST_SEEDS, Given, changed, settings_of

_INTRO = (
    "Train classifiers, attack pictures through the gradients they leak ([[gradient "
    "inversion]]), and see what comes back of each."
)
_NOTHING = "No campaign has been started here yet. Choose a card and press Start."
_DATA = "semsim.ui.reconstruct_data"
_HTML, _LAB = pieces("reconstruct.html"), pieces("lab.html")
_TRAIN = ("epochs", "lr", "batch_size", "until", "momentum", "weight_decay", "loss_scale")
_LISTS = {
    "datasets": plain_words.PICTURES,
    "architectures": plain_words.ARCHITECTURES,
    "strategies": plain_words.STRATEGIES,
    "attacks": plain_words.ATTACK_CHOICES,
    "shares": plain_words.SHARE_CHOICES,
}


def _fields(campaign: Campaign) -> Mapping[str, str]:
    presets = {text.partition(":")[2] for text in campaign.attacks}
    return {
        "images": str(campaign.images),
        "seeds": str(len(campaign.seeds)),
        "first_seed": str(campaign.seeds[0]),
        "preset": next(iter(presets)),
        **{f"train.{one.name}": one.value for one in settings_of(campaign.train, _TRAIN)},
    }


FORM = LabForm(
    name="rec",
    kind=KIND,
    offered=(
        ("See it work", "One small model, with a defence and without.", FIRST_LOOK),
        ("The demo's grid", "Two models, seven trainings, two attacks.", DEMO_GRID),
        ("As in the paper", "14 targets on CIFAR-100; a GPU's work.", PAPER_GRID),
    ),
    lists=_LISTS,
    texts=lambda campaign: {name: getattr(campaign, name) for name in _LISTS},
    fields=_fields,
    like=like,
)


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_page.render(page(context))


def page(context: ScienceContext) -> LabPage[Campaign]:
    """Declare the page's texts and acts, as `lab_page` takes them."""

    def order_of(given: Given) -> Campaign:
        return campaign_of(given, free_name(context.data / "runs", "campaign"))

    def outlook(campaign: Campaign, last: str, measured: bool = False) -> str:
        view = apart(f"{_DATA}:told", campaign, context.data, measured)
        return reconstruct_view.outlook_html(view, last, measuring=not measured)

    def queued(given: Given) -> Job:
        place = (context.data, str(context.device), context.checkpoints)
        job: Job = apart(f"{_DATA}:queued", order_of(given), given.text("judge"), *place)
        return job

    return LabPage(
        form=FORM,
        title="Reconstruct",
        intro=_INTRO,
        called="Campaign",
        papers=("semsim", "deployed", "everything"),
        data=context.data,
        html=form_html(context.checkpoints),
        order_of=order_of,
        told=outlook,
        measured=lambda campaign, last: outlook(campaign, last, measured=True),
        queued=queued,
        draw=lambda job: draw(context, job),
        nothing=_NOTHING,
        more=lambda ran: _grid(context, ran),
    )


def form_html(checkpoints: Path) -> str:
    """The form, filled with the first card's campaign."""
    targets = FORM.crossed(
        lab.said("Each dot is a [[target]]: a classifier that is trained and then attacked"),
        ("architectures", "models"),
        ("strategies", "trainings"),
    )
    side = (FORM.choices("datasets", "Pictures"), FORM.choices("attacks", "Attacks"))
    row = (
        _LAB.named(FORM.name),
        _HTML.numbers(FIRST_LOOK, MOST_SEEDS),
        _LAB.select("preset", "Steps of the attacks", plain_words.PRESETS, "fast"),
        _LAB.select("judge", "Word lists", lab.judge_choices(checkpoints), "", "", "judges"),
    )
    inside = (
        FORM.choices("shares", "What is shared"),
        _HTML.first_seed(FIRST_LOOK),
        _LAB.fields(settings_of(FIRST_LOOK.train, _TRAIN), "train."),
    )
    more = _LAB.more(
        ("datasets", "architectures", "attacks", "shares"),
        joined(inside),
        "More: how models are trained, what a client shares, settings of what is chosen",
    )
    return str(_LAB.plan(targets, joined(side), joined(row), more))


def campaign_of(given: Given, free: str = "") -> Campaign:
    """The campaign a form means; `SettingsError` where a field cannot be read.

    free: what it is called where the form does not say.
    """
    preset = given.text("preset")
    _refuse_own(given.texts("architectures"))
    return Campaign(
        name=given.text("name") or free,
        datasets=given.texts("datasets"),
        architectures=given.texts("architectures"),
        strategies=given.texts("strategies"),
        attacks=tuple(with_preset(given.texts("attacks"), preset)),
        shares=given.texts("shares"),
        images=given.whole("images", "Pictures"),
        seeds=given.seeds("seeds", "Seeds", given.whole("first_seed", "First seed")),
        train=changed(TrainSettings(), given.fields, "train."),
    )


def _refuse_own(architectures: Sequence[str]) -> None:
    """Whoever sees a page must not choose what code runs here."""
    unknown = [one for one in architectures if one.partition(":")[0].strip() not in TARGETS]
    if unknown:
        raise SettingsError(
            f"The form has no {unknown[0]!r} among its architectures. A network of your own is "
            "attacked from a command line, by `campaign run --model`."
        )


def draw(context: ScienceContext, job: Job) -> list[Any]:
    """Pictures now and of late, progress by set, the verdict and, when it is done, the result.

    The result of a finished campaign stays where the pictures that it attacked are gone.
    """
    campaign, state = read_campaign(context.data, name_of(job)), jobs.state(job)
    done, now = state is JobState.DONE, ""
    result = jobs.result(job) if done else {}
    made = reconstruct_view.result_html(result) if done else ""
    try:
        views = set_views(context, campaign)
    except SemsimError as error:
        if not done:
            raise
        return ["", reconstruct_view.gone_html(error), "", made]
    if state in jobs.LIVE:
        now = reconstruct_view.steps_html(under_attack(context, campaign, views))
    return [
        now + reconstruct_view.strip_html(views),
        reconstruct_view.sets_html(views),
        reconstruct_view.verdict_html(views, result.get("recognition")),
        made,
    ]


def _grid(context: ScienceContext, ran: jobpanel.Jobs) -> More:
    """The grid of pictures, with what chooses an attack and a page of it."""
    with gr.Row():
        small: dict[str, Any] = {"min_width": 140, "visible": False}
        attack = gr.Dropdown(
            [], label="Attack", allow_custom_value=True, elem_id="rec-attack", **small
        )
        number = gr.Number(1, label="Page", precision=0, elem_id="rec-page", **small)
    grid = gr.HTML(elem_id="rec-grid", apply_default_css=False)

    def opened(found: Job | None) -> list[Any]:
        views, images = _at_hand(context, found)
        attacks = attacks_of(views)
        first = attacks[0] if attacks else None
        return [
            gr.Dropdown(choices=attacks, value=first, visible=len(attacks) > 1),
            gr.Number(1, visible=reconstruct_view.pages(images) > 1),
            grid_now(context, found, first, 1),
        ]

    def redraw(job_id: str | None, attack: str | None, number: float | None) -> str:
        return grid_now(context, jobpanel.find(ran.root, job_id), attack, number)

    of_grid = [ran.chosen, attack, number]
    ran.timer.tick(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    for control in (attack, number):
        control.input(redraw, of_grid, grid, show_progress="hidden", **QUIETLY)
    return More(opened=opened, opened_outputs=[attack, number, grid])


def _at_hand(
    context: ScienceContext, job: Job | None
) -> tuple[list[SetView], Mapping[str, Pictures]]:
    """The sets of a job's campaign and its pictures; none where `draw` says what is wrong."""
    if job is None:
        return [], {}
    try:
        campaign = read_campaign(context.data, name_of(job))
        return set_views(context, campaign), kept_plan(campaign).pictures
    except SemsimError:
        return [], {}


def attacks_of(views: Sequence[SetView]) -> list[str]:
    """The attacks of a campaign by their labels."""
    return list(dict.fromkeys(view.planned.attack_label for view in views))


def grid_now(
    context: ScienceContext, job: Job | None, attack: str | None, page: float | None
) -> str:
    """Originals beside what one attack gave back, one page of them."""
    views, images = _at_hand(context, job)
    views = [view for view in views if view.planned.attack_label == attack]
    if not views:
        return ""
    last = reconstruct_view.pages(images)
    place = min(max(1, int(page or 1)), last)
    where = f'<p class="st-note">Page {place} of {last}</p>' if last > 1 else ""
    return where + reconstruct_view.grid_html(views, images, place)
