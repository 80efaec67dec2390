"""The pages about studies that Gradio does not draw."""

from fastapi import APIRouter

from annotation.accounts.access import Who, account_name
from annotation.ui import (
    StudyContext,
    items_pages,
    new_pages,
    overview_pages,
    people,
    preview_pages,
    results,
)


def routers(context: StudyContext, who: Who | None = None) -> tuple[APIRouter, ...]:
    """Their routes, which only people with an account may use; `who` tells whose a request is."""
    account = account_name(who)
    return (
        new_pages.router(context, account),
        overview_pages.router(context, account),
        people.router(context, account),
        items_pages.router(context),
        preview_pages.router(context),
        results.router(context),
    )
