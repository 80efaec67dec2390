"""All pages of the science in the order of the navigation, and the files they offer."""

from fastapi import APIRouter

from semsim.ui import (
    ScienceContext,
    audit,
    compare,
    compare_files,
    federated,
    learn,
    reconstruct,
    reconstruct_files,
    split,
)

# Title, address below /studio, module with `render(context)`.
PAGES = (
    ("Reconstruct", "reconstruct", reconstruct),
    ("Train SemSim", "train", learn),
    ("Compare", "compare", compare),
    ("Audit", "audit", audit),
    ("Split inference", "split", split),
    ("Federated", "federated", federated),
)


def routers(context: ScienceContext) -> tuple[APIRouter, ...]:
    """The routes of everything the pages let people download or look at."""
    return tuple(files.router(context) for files in (compare_files, reconstruct_files))
