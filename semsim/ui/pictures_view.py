"""The page Pictures as HTML, and what is said of a plan before anything is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from semsim.base.errors import DataError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.sets.imports import places_of
from semsim.base.words import agreeing, counted
from semsim.importers import uploads
from semsim.importers.archives import READ, is_broken
from semsim.importers.import_job import KEEP, ImportOrder, order_of, plan_of, tasks_for
from semsim.importers.uploads import Upload
from semsim.lab.markup import pieces, rooted
from semsim.ui import ScienceContext, pictures_data
from semsim.ui.answers import GoneError
from semsim.ui.jobpanel import CUT_OFF, JobView, when
from semsim.ui.pictures_data import Shelved, Wanted

# What may be sent after what it belongs to: what the place for it is called, asks and says.
ADDED = {
    "originals": (
        "Add the originals",
        "The originals lie elsewhere?",
        "Drop their folder or zip here. They are matched by name.",
    ),
    "classes": (
        "Add class names",
        "What do the pictures show?",
        "Drop a table with the columns image_id and class_name here (CSV or Parquet). If folders "
        "or file names hold numbers of classes, drop a text file of class names, one per line.",
    ),
}
_WAITS = {
    **dict.fromkeys(jobs.LIVE, "At work on"),
    JobState.DONE: "Not kept yet:",
    JobState.FAILED: "Could not be read:",
}  # else it was cut off
_RESUMES = "Resume begins it again, with the files that are here."
HTML = pieces("pictures.html", "semsim.ui")
_ASKS = ": people can be asked if"  # of pictures without classes, to which fields give some
_SETS, _PAIRS = 6, 12  # on a page


def home(
    context: ScienceContext,
    wanted: Wanted,
    page: int,
    waiting: Sequence[tuple[Job, ImportOrder]],
    kept: tuple[str, str, bool],
    sending: Sequence[Upload] = (),
) -> str:
    """Return a page of the sets there are, with the place where a user's own pictures come in.

    Args:
        waiting: Looks that no user has kept yet.
        sending: Uploads that no user has looked at.
        kept: Name and task of what was kept just now, and whether it was read anew for that.
    """
    every, brought = pictures_data.shelf(context), pictures_data.brought(context)
    chosen = [one for one in every if wanted.wants(one)]
    page, last, shown = _paged(chosen, page, _SETS)
    asked = {name: value for name, value in asdict(wanted).items() if value}
    return HTML.home(
        _lead(every),
        sorted(READ),
        [_waiting(job, order) for job, order in waiting],
        [_card(one) for one in shown],
        _choices(every, wanted) if every else {},
        wanted,
        rooted(f"/studio/pictures?{urlencode(asked)}{'&' if asked else ''}"),
        page,
        last,
        _kept(context, *kept),
        brought,
        [(one.id, one.name, f"{one.have / 1e6:,.1f}", one.size / 1e6) for one in sending],
    )


def _kept(context: ScienceContext, name: str, task: str, anew: bool) -> dict[str, Any]:
    """Return what was kept and where to go on with it; empty where it is not there."""
    sets = any(one.folder.parent.name == name for one in pictures_data.shelf(context))
    holds = {one.holds for one in pictures_data.brought(context) if one.key == name}
    study = study_address(name, task) if sets else ""
    votes = bool(holds - {"pictures"})
    there = {"name": name, "study": study, "votes": votes, "pictures": "pictures" in holds}
    there["anew"] = anew
    return there if sets or holds else {}


def _kept_by(context: ScienceContext, job: Job) -> dict[str, Any]:
    """Return what a job has kept, as `_kept` does; empty where it has not."""
    done = jobs.result(job) if job.kind == KEEP and jobs.state(job) is JobState.DONE else {}
    return _kept(context, done["kept"], done["task"], bool(done["anew"])) if done else {}


def _waiting(job: Job, order: ImportOrder) -> dict[str, str]:
    state = jobs.state(job)
    return {
        "id": job.id,
        "name": order.name,
        "when": when(job.created),
        "words": _WAITS.get(state, "Not looked at to its end:"),
        "go": "See why" if state is JobState.FAILED else "Go on with it",
    }


def study_address(name: str, task: str) -> str:
    """Return the address at which a new study of the sets of an import is made."""
    asked = {"sets": name, "task": task}
    given = {key: value for key, value in asked.items() if value}
    return rooted(f"/studio/new?{urlencode(given)}")


def _lead(every: Sequence[Shelved]) -> str:
    own = sum(not one.built_in for one in every)
    pairs = sum(len(one.pairs) for one in every)
    built_in = len(every) - own
    return (
        f"{counted(pairs, 'reconstruction')} in {counted(len(every), 'set')}: "
        f"{own} of your own, {built_in} built in."
    )


def _card(one: Shelved) -> dict[str, Any]:
    names = ("key", "name", "problem", "changed", "said", "dataset", "attack", "attacker", "target")
    facts = {name: getattr(one, name) for name in (*names, "at_chance", "built_in")}
    study = "" if one.built_in else study_address(one.folder.parent.name, "")
    return {**facts, "study": study, "shown": pictures_data.shown_classes(one)}


def _choices(every: Sequence[Shelved], wanted: Wanted) -> dict[str, list[str]]:
    names = ("dataset", "model", "attack")
    found = {name: sorted({getattr(one, name) for one in every} - {""}) for name in names}
    of_set = [one for one in every if one.dataset == wanted.dataset]
    classes = sorted({name for one in of_set for name in one.classes})
    return {**found, "own": ["own", "built in"], "classes": classes}


def _paged(every: Sequence[Any], page: int, most: int) -> tuple[int, int, Sequence[Any]]:
    """The page that is shown, the last one, and what is on it."""
    last = max(1, -(-len(every) // most))
    page = min(max(page, 1), last)
    return page, last, every[(page - 1) * most : page * most]


def one_set(context: ScienceContext, key: str, class_name: str, page: int) -> str:
    """One set: its pairs by class, the facts of its run, and whether it may go."""
    one = pictures_data.find_shelved(context, key)
    page, last, shown = _paged(pictures_data.pairs_of(one, class_name), page, _PAIRS)
    asked = f"{urlencode({'name': class_name})}&" if class_name else ""
    return HTML.one_set(
        one,
        f"{one.said}: originals and reconstructions.",
        pictures_data.facts_of(one),
        one.classes,
        class_name,
        shown,
        rooted(f"/studio/pictures/set/{key}?{asked}"),
        page,
        last,
        pictures_data.why_kept(context, one),
        rooted(f"/studio/new?{urlencode({'set': str(one.folder)})}"),
    )


def one_class(context: ScienceContext, dataset: str, class_name: str, page: int) -> str:
    """Return the page of what every set of a data set has of a class, an original a page."""
    found = pictures_data.same_originals(context, dataset, class_name)
    if not found:
        raise DataError(f"No set of {dataset} shows {class_name}.")
    page, last, ((image_id, shown),) = _paged([*found.items()], page, 1)
    asked = urlencode({"dataset": dataset, "name": class_name})
    return HTML.one_class(
        dataset,
        class_name,
        f"{image_id}: {counted(len(shown), 'reconstruction')}.",
        image_id,
        shown,
        rooted(f"/studio/pictures/class?{asked}&"),
        page,
        last,
    )


def plan(context: ScienceContext, job: Job) -> str:
    """Return what was found in files, or the progress of the look, or its error, as HTML."""
    state = jobs.state(job)
    if state is not JobState.DONE or job.kind == KEEP:
        live, there = state in jobs.LIVE, has_files(job)
        looked = there and not live and job.kind != KEEP
        return HTML.watching(
            job.title,
            job.id,
            Markup(status(job)),
            live,
            may_resume(job),
            looked,
            sorted(READ),
            ADDED if looked and _may_lack(job) else {},
            _kept_by(context, job),
        )
    check_files(job)
    found = plan_of(job)
    tasks, words = tasks_for(found), [word for _, word in found["words"]]
    return HTML.plan(
        job.id,
        found,
        _plan_lead(found),
        _free_name(context, found["name"]),
        found["sets"],
        _checks(found),
        pictures_data.judge_choices(context, found),
        tasks,
        "pair" if tasks["recognition"] or len({*words}) == 1 or "" in words else "recognition",
        sorted(READ),
        {name: words for name, words in ADDED.items() if _lacks(found, name)},
    )


def status(job: Job) -> str:
    """Return the progress of a job, or its outcome, as HTML."""
    return JobView.of(job, _RESUMES if may_resume(job) else "").html


def may_resume(job: Job) -> bool:
    """Return whether a job can run again: it was cut off or could not write, and has its files."""
    early = {*CUT_OFF, JobState.FAILED} if job.kind == KEEP else CUT_OFF
    return jobs.state(job) in early and has_files(job)


def has_files(job: Job) -> bool:
    """Return whether all files that a job looks at are still there."""
    try:
        order = order_of(job)
        return all(uploads.find(order.spool, one).whole for one in order.uploads)
    except SemsimError:
        return False


def check_files(look: Job) -> None:
    """`GoneError`, which says what became of them, where the files of a look are there no more."""
    if has_files(look):
        return
    own = {*order_of(look).uploads}
    kept = [
        jobs.result(job)["kept"]
        for job in jobs.list_jobs(look.folder.parent, KEEP)
        if jobs.state(job) is JobState.DONE and own & {*order_of(job).uploads}
    ]
    became = f"were kept as {kept[0]}" if kept else "are here no longer: drop them once more"
    raise GoneError(f"The files of this plan {became}.")


def _may_lack(job: Job) -> bool:
    """Return whether a failed look might succeed with another file; not for a broken zip."""
    return jobs.state(job) is JobState.FAILED and not is_broken(order_of(job).source)


def _lacks(plan: Mapping[str, Any], name: str) -> bool:
    """Return whether what a plan found may lack the entry `name` of `ADDED`."""
    sets = plan["sets"]
    if name == "originals" and plan["pictures"]:
        return True  # then it is what came back of them
    if name == "originals":
        return bool(sets) and bool(plan["left_out"] or any(one["lacking"] for one in sets))
    numbers = all(one.isdecimal() for found in sets for one in found["classes"])
    return bool(sets) and (numbers or any(one["unnamed"] for one in sets))


def _free_name(context: ScienceContext, name: str) -> str:
    """`name`, with a number behind it where it is taken."""
    for number in range(1, 1000):
        free = name if number == 1 else f"{name}-{number}"
        places = places_of(free, context.data)
        if not places.taken:
            return free
    return ""


def _plan_lead(plan: Mapping[str, Any]) -> str:
    sets, human = plan["sets"], plan["human"]
    pairs, said = sum(one["pairs"] for one in sets), []
    if sets:
        attacks = {one["attack"] for one in sets} - {"unknown"}
        where = counted(len(sets), "set")
        where += f" by {counted(len(attacks), 'attack')}" if attacks else ""
        said.append(f"{counted(pairs, 'pair')} in {where}")
    if human and human["votes"]:
        said.append(
            f"{counted(human['votes'], 'vote')} of {counted(human['people'], 'person', 'people')}"
        )
    if human and human["scores"]:
        said.append(f"scores of {', '.join(human['scores'])}")
    if found := plan["pictures"]:
        said.append(found["said"])
    return f"{'; '.join(said) or 'Labels'}. Nothing is kept yet."


def _checks(plan: Mapping[str, Any]) -> list[tuple[bool | None, str]]:
    """Check sizes and classes; return pairs (passed, sentence), where passed is None of a note."""
    sets = plan["sets"]
    told: list[tuple[bool | None, str]] = [
        (None, note) for note in plan["notes"] if not (plan["words"] and _ASKS in note)
    ]
    if found := plan["pictures"]:
        told.insert(0, _classes_check(found["classes"]))
    if not sets:
        return told
    sizes = sorted({(one["size"][1], one["size"][0]) for one in sets})
    sides = ", ".join(f"{width}×{height}" for width, height in sizes)
    all_used = "All pictures that can be used" if plan["left_out"] else "All pictures"
    if len(sizes) == 1:
        told.append((True, f"{all_used} are {sides} pixels."))
    else:
        told.append((False, f"The sets are of different sizes: {sides} pixels."))
    told += [(False, one) for one in plan["lost"]]
    lacking = sum(one["lacking"] for one in sets)
    if lacking:
        told.append((False, f"{counted(lacking, 'pair')} cannot be used: see what is left out."))
    classes = sorted({name for one in sets for name in one["classes"]})
    unnamed = sum(one["unnamed"] for one in sets)
    if classes:
        told.append(_classes_check(classes))
    if unnamed and not plan["words"]:
        has = agreeing(unnamed, "has", "have")
        told.append((False, f"{counted(unnamed, 'picture')} {has} no class."))
    attacked = sum(one["attacked"] for one in sets)
    if attacked:
        told.append((True, f"{attacked} come with the attacked image."))
    return told


def _classes_check(classes: Sequence[str]) -> tuple[bool, str]:
    some = ", ".join(classes[:8]) + (" …" if len(classes) > 8 else ".")
    return True, f"{counted(len(classes), 'class', 'classes')}: {some}"
