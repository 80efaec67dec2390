"""How a command is told which study it is about."""

from typing import Annotated

import typer

from annotation.domain import Study
from annotation.errors import NotFoundError
from annotation.store import Store
from annotation.study.labelling import list_studies

StudyName = Annotated[str, typer.Argument(help="Name or id of the study.")]


def find_study(store: Store, name: str) -> Study:
    """The one study of that name or id; raises `NotFoundError` where there is none, or several."""
    found = [s for s in list_studies(store) if name in (s.id, s.name)]
    if len(found) != 1:
        known = ", ".join(f"{s.name!r} ({s.id})" for s in found or list_studies(store))
        problem = "Several studies are" if found else "No study is"
        raise NotFoundError(f"{problem} called {name!r}. Use an id of: {known or '(no studies)'}.")
    return found[0]
