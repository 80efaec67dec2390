"""All pages of the science in the order of the navigation, and the files they offer."""

from fastapi import APIRouter

from semsim.ui import (
    ScienceContext,
    audit,
    compare,
    compare_files,
    federated,
    federated_form,
    lab,
    lab_cards,
    learn,
    learn_files,
    pictures,
    reconstruct,
    reconstruct_files,
    reconstruct_form,
    split,
    split_form,
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
    found = (pictures, compare, compare_files, lab, learn_files, reconstruct_files)
    data = context.data
    drawn = {
        reconstruct_form.NAME: lambda: reconstruct_form.cards_html(data),
        split_form.NAME: lambda: split_form.cards_html(data),
        split_form.METRICS_NOW: lambda: split_form.metrics_html(context.checkpoints),
        federated_form.NAME: lambda: federated_form.cards_html(data),
    }
    return (*(one.router(context) for one in found), lab_cards.router(drawn))
