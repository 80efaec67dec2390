"""All pages of the science in the order of the navigation, and the files they offer."""

from functools import partial

from fastapi import APIRouter

from semsim.ui import (
    ScienceContext,
    audit,
    compare,
    compare_files,
    federated,
    lab,
    lab_page,
    learn,
    learn_view,
    pictures,
    reconstruct,
    reconstruct_view,
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
    found = (pictures, compare, compare_files, lab, learn_view, reconstruct_view)
    forms = (reconstruct.FORM, split.FORM, federated.FORM)
    drawn = {form.name: partial(form.cards_html, context.data) for form in forms}
    drawn[split.METRICS_NOW] = partial(split.metrics_html, context.checkpoints)
    return (*(one.router(context) for one in found), lab_page.router(drawn))
