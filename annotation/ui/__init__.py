"""The pages of the human study. Each module has `render(context)`, called where the page stands."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.images import Shelf
from annotation.store import Store
from annotation.votes.science import Science
from annotation.web.frame import in_hand
from annotation.web.templates import STATIC as STATIC
from annotation.web.templates import STATIC_URL as STATIC_URL


@dataclass(frozen=True, kw_only=True)
class StudyContext:
    """Context that the pages work on.

    `find_sets` lists the reconstruction sets there are, as (label, folder). `note` is what the page
    of studies says above them; `science` is what the other half computes and keeps of votes.
    """

    store: Store
    images: Shelf
    find_sets: Callable[[], list[tuple[str, Path]]]
    science: Science
    note: Callable[[], str] = str

    @property
    def in_hand(self) -> Callable[[Any], str]:
        """Function that returns the study of a request, see `annotation.web.frame.in_hand`."""
        return in_hand(self.store)
