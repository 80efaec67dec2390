"""Page of a new study, and its requests to the server while a researcher fills it in."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import FileResponse
from jinja2.utils import htmlsafe_json_dumps

from annotation.domain import Study
from annotation.errors import NotFoundError, StudyError
from annotation.images import strip
from annotation.spec import SETTINGS, as_text
from annotation.study.create import keep_study
from annotation.study.labelling import get_study
from annotation.study.sets import SetFolder, sets_of
from annotation.study.study_file import StudyFile, of_mapping, read_text, written
from annotation.tasks import KINDS
from annotation.tasks.wording import LONGEST_TEXT, PLAIN, USUAL
from annotation.texts import counted
from annotation.ui import StudyContext, new_study
from annotation.web.api import routes
from annotation.web.root_path import rooted
from annotation.web.templates import page
from semsim.base.errors import SemsimError
from semsim.base.words import first_of

THUMBNAILS = 6
NAMELESS = "Give the study a name; annotators never see it."
Asked = Annotated[dict[str, Any], Body()]


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/new."""
    made = _New(context=context)
    return routes(
        get={
            "/studio/new": made.page,
            "/studio/new/picture/{key}/{image}/{which}": made.picture,
            "/studio/new/strip/{key}": made.strip,
        },
        post={
            "/studio/new/look": made.look,
            "/studio/new/create": made.create,
            "/studio/new/file": made.file,
            "/studio/new/read": made.read,
        },
    )


@dataclass(frozen=True, kw_only=True)
class _New:
    context: StudyContext
    places: dict[str, Path] = field(default_factory=dict)  # of sets, by key; asked for often

    def page(
        self,
        duplicate: str = "",
        wanted: Annotated[list[str], Query(alias="set")] = [],  # noqa: B006
        sets: str = "",
        task: str = "",
    ) -> Response:
        """The form; `duplicate` is the id of a study that it begins as.

        Args:
            wanted: Folders of sets to begin with.
            sets: The name of an import, whose sets are meant.
        """
        start: dict[str, Any] = {}
        said = ""
        if duplicate:
            study = get_study(self.context.store, duplicate)
            start, said = self._as_draft(study)
        elif wanted or sets:
            chosen = [name for name, at in self._known().items() if _is_meant(at, wanted, sets)]
            start = {"sets": chosen, **({"task": task} if task in KINDS else {})}
            said = "" if chosen else "The sets that were to be in it are not there any more."
        return page(
            "new.html",
            cards=self._cards(first=start.get("sets", ())),
            steps=new_study.steps(),
            kinds=KINDS,
            longest=LONGEST_TEXT,
            data=htmlsafe_json_dumps(
                {
                    "start": start,
                    "scores": new_study.scores_of(),
                    "texts": _usual_texts(),
                    "questions": {name: PLAIN(f"{name}.question") for name in KINDS},
                }
            ),
            said=said,
            title="New study",
        )

    def look(self, asked: Asked) -> dict[str, Any]:
        try:
            found = new_study.look(self.context.store, of_mapping(asked), self._known())
        except StudyError as error:
            return {"problems": {"question": str(error).splitlines()}, "said": {}}
        told: dict[str, Any] = {"problems": found.problems, "fields": found.fields}
        told |= {"said": found.said, "enough": found.enough}
        if found.plan is None:
            return told
        keys = {one.model: _key(one.folder) for one in found.folders}
        place = {image.image_id: one.model for one in found.folders for image in one.images}

        def address(model: str, image: str, which: str) -> str:
            key = keys[model or place[image]]
            return rooted(f"/studio/new/picture/{key}/{_key(image)}/{which}")

        items = new_study.items_of(found.plan, address)
        preview = {"study": new_study.page_of(found.plan.spec, len(found.plan.items))}
        unusual = new_study.unusual(found.plan.spec)
        return {**told, "preview": {**preview, "items": items}, "unusual": unusual}

    def create(self, request: Request, asked: Asked) -> dict[str, Any]:
        try:
            draft = of_mapping(asked)
            found = new_study.look(self.context.store, draft, self._known())
            problems = {step: list(lines) for step, lines in found.problems.items()}
            fields = dict(found.fields)
            if not str(draft.settings.get("name", "")).strip():
                problems["review"], fields[NAMELESS] = [NAMELESS], "name"
            if not draft.sets:
                problems.setdefault("pictures", ["Choose at least one set of pictures."])
            if problems:
                return {"problems": problems, "fields": fields}
            examined = new_study.made_of(draft, self._known())
            if examined.plan is None:
                problems = new_study.problems_of_making(draft, examined, self._known())
                return {
                    "problems": problems,
                    "fields": dict.fromkeys(problems.get("people", ()), "gold"),
                }
            store = self.context.store_for(request)
            made = keep_study(store, examined, self.context.images)
        except StudyError as error:
            return {"problems": {"pictures": str(error).splitlines()}}
        return {"study": made.id, "name": made.name}

    def file(self, asked: Asked) -> Response:
        return Response(written(of_mapping(asked)), media_type="application/yaml")

    def read(self, asked: Asked) -> dict[str, Any]:
        draft = read_text(str(asked.get("text", "")))
        new_study.chosen(draft, self._known())  # says which are not on this machine
        return _as_json(draft, self._known())

    def picture(self, key: str, image: str, which: str) -> Response:
        (found,) = new_study.read([self._place(key)])
        one = next((one for one in found.images if _key(one.image_id) == image), None)
        if one is None or which not in ("original", "reconstruction"):
            raise NotFoundError("There is no such picture.")
        headers = {"Cache-Control": "private, max-age=3600"}
        return FileResponse(getattr(one, which), headers=headers)

    def strip(self, key: str) -> Response:
        (found,) = new_study.read([self._place(key)])
        images = found.images
        shown = images[:: max(1, len(images) // THUMBNAILS)][:THUMBNAILS]
        headers = {"Cache-Control": "private, max-age=3600"}
        content = strip(tuple(one.reconstruction for one in shown))
        return Response(content, media_type="image/png", headers=headers)

    def _place(self, key: str) -> Path:
        if key not in self.places:
            self.places.update((_key(one), one) for one in self._known().values())
        if key not in self.places:
            raise NotFoundError("There is no such set.")
        return self.places[key]

    def _known(self) -> dict[str, Path]:
        return known_sets(self.context)

    def _cards(self, first: Collection[str]) -> list[dict[str, Any]]:
        found = self.context.find_sets()
        self.places.update((_key(folder), folder) for _, folder in found)
        cards = [_card(label, folder) for label, folder in found]
        # What is chosen already is seen without scrolling.
        return sorted(cards, key=lambda card: card["name"] not in first)

    def _as_draft(self, study: Study) -> tuple[dict[str, Any], str]:
        """The draft that a copy of a study begins as, and what of it is not there any more."""
        draft, lacking = file_of(self.context, study)
        named = {**draft.settings, "name": f"{study.name} (copy)"}
        said = f"Filled in from {study.name}.{lacking} It is a new study: no vote is copied."
        return _as_json(replace(draft, settings=named), self._known()), said


def known_sets(context: StudyContext) -> dict[str, Path]:
    """The sets there are, by the name that a file gives them."""
    return {_name(folder): folder for _, folder in context.find_sets()}


def file_of(context: StudyContext, study: Study) -> tuple[StudyFile, str]:
    """The file that makes a study again, and what is to be said of what it lacks.

    That is a password, answers of gold items, and sets of target models of which none is here any
    more, or several may be the one.
    """
    read = {name: _read(folder) for name, folder in known_sets(context).items()}
    known = {name: one for name, one in read.items() if one is not None}
    found = sets_of(context.store, context.images, study, known)
    gone = [model for model, names in found.items() if not names]
    several = [model for model, names in found.items() if len(names) > 1]
    said = f" Not on this machine any more: {first_of(gone, 5, last=' …')}." if gone else ""
    if several:
        said += f" Choose the set, as several may be it: {first_of(several, 5, last=' …')}."
    said += " Give it a password of its own: that of the study is not kept." * study.protected
    said += " Add the answers of its gold items." * (study.spec.gold_rate > 0)
    sets = tuple(names[0] for names in found.values() if len(names) == 1)
    return StudyFile(settings=vars(study.spec), sets=sets), said


def _as_json(draft: StudyFile, known: new_study.Known) -> dict[str, Any]:
    """A draft as the page fills itself in from it: every setting as text."""
    names = [
        next((name for name, one in known.items() if one == folder), str(folder))
        for folder in new_study.chosen(draft, known)
    ]
    usual = {name: one.usual for name, one in SETTINGS.items() if one.at}
    given = {name: value for name, value in draft.settings.items() if name != "password"}
    simple = {name: as_text(value) for name, value in {**usual, **given}.items()}
    own = {"sets": names, "people": draft.people, "wage": draft.wage, "gold": draft.gold}
    return {**simple, **own}


def _usual_texts() -> dict[str, str]:
    """Texts by name, without those that the form asks for by themselves."""
    return {name: text for name, text in USUAL.items() if not name.endswith(".question")}


def _name(folder: Path) -> str:
    """Return the name of a set in a file: its path, from here on where it lies below."""
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _is_meant(folder: Path, wanted: Sequence[str], name: str) -> bool:
    named = name in (folder.name, folder.parent.name) if name else False
    return named or str(folder) in wanted or folder.name in wanted


def _key(name: Path | str) -> str:
    """Return the key of a folder or an image's id in an address; both may hold anything."""
    return sha256(str(name).encode()).hexdigest()[:16]


def _read(folder: Path) -> SetFolder | None:
    try:
        return new_study.read([folder])[0]
    except SemsimError:
        return None


def _card(label: str, folder: Path) -> dict[str, Any]:
    """Return the card of a set; one that cannot be read states so and cannot be chosen."""
    found = _read(folder)
    title, _, rest = label.partition(" · ")
    dataset = found.dataset if found else ""
    card = {"name": _name(folder), "title": title, "label": label, "dataset": dataset}
    if found is None:
        return {**card, "problem": "cannot be read", "facts": rest, "strip": "", "target": None}
    images = found.images
    return {
        **card,
        "problem": "",
        "strip": rooted(f"/studio/new/strip/{_key(folder)}") if images else "",
        "facts": f"{counted(len(images), 'picture')} · {dataset} · {found.attack}",
        "target": found.target,
    }
