"""All pages of the science in the order of the navigation, and the files they offer."""

from fastapi import APIRouter

from semsim.lab.page import LabPage
from semsim.systems import SYSTEMS
from semsim.ui import (
    ScienceContext,
    compare,
    compare_files,
    lab,
    learn,
    learn_view,
    pictures,
    reconstruct_sets,
)
from semsim.ui.lab_page import Declared

_RECONSTRUCT = Declared("semsim.ui.reconstruct")
_SYSTEMS = {name: Declared(one.module("page")) for name, one in SYSTEMS.items()}
# Title, address below /studio, what has `render(context)`.
PAGES = (
    ("Reconstruct", "reconstruct", _RECONSTRUCT),
    ("Train SemSim", "train", learn),
    *((one.title, name, _SYSTEMS[name]) for name, one in SYSTEMS.items()),
)
_OF_METRICS = ("train", "compare")


def links() -> dict[str, list[tuple[str, str]]]:
    """Return titles and addresses of all pages, by group of the side bar: metrics, and the lab."""
    every = [*((title, address) for title, address, _ in PAGES), ("Compare", "compare")]
    return {
        "Metric": [one for one in every if one[1] in _OF_METRICS],
        "Attack lab": [one for one in every if one[1] not in _OF_METRICS],
    }


def routers(context: ScienceContext) -> tuple[APIRouter, ...]:
    """The plain pages, and the routes of everything the pages let people download or look at."""
    plain = (pictures, compare, compare_files, learn_view, reconstruct_sets)
    declared = [one.page(context) for one in (_RECONSTRUCT, *_SYSTEMS.values())]
    forms = [one for one in declared if isinstance(one, LabPage)]
    return (*(one.router(context) for one in plain), lab.router(context, forms))
