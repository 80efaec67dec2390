"""All pages of the science in the order of the navigation, and the files they offer."""

from fastapi import APIRouter

from semsim.ui import (
    ScienceContext,
    audit,
    compare,
    compare_files,
    federated,
    lab,
    learn,
    pictures,
    reconstruct,
    reconstruct_files,
    split,
)

# Title, address below /studio, module with `render(context)`.
PAGES = (
    ("Reconstruct", "reconstruct", reconstruct),
    ("Train SemSim", "train", learn),
    ("Audit", "audit", audit),
    ("Split inference", "split", split),
    ("Federated", "federated", federated),
)


def routers(context: ScienceContext) -> tuple[APIRouter, ...]:
    """The plain pages, and the routes of everything the pages let people download or look at."""
    found = (pictures, compare, compare_files, lab, reconstruct_files)
    return tuple(one.router(context) for one in found)
