"""Pages of the science. A page is a module with `render(context)`; `app.py` composes them."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd

from semsim.base.storage.places import DEMO
from semsim.lab import LabContext


@dataclass(frozen=True)
class StudyChoice:
    """A study a page can offer.

    Attributes:
        simulated: Whether programs voted in it.
        headline: The human score its protocol fixed.
        model: Name of the vision-language model that voted; empty where none did.
    """

    id: str
    name: str
    simulated: bool
    headline: str = "majority"
    model: str = ""

    @classmethod
    def of(cls, study: Any) -> Self:
        """The choice of a `study`, which has an id, a name and its `spec`."""
        spec = study.spec
        return cls(study.id, study.name, spec.simulated, spec.headline.value, spec.voter)

    @property
    def label(self) -> str:
        """Its name in a list; that votes are simulated is said once."""
        mark = f"votes of {self.model}" if self.model else "simulated"
        told = not self.simulated or mark.lower() in self.name.lower()
        return self.name if told else f"{self.name} ({mark})"


@dataclass(frozen=True, kw_only=True)
class ScienceContext(LabContext):
    """Inputs of the pages from outside: folders, studies, tables and callbacks.

    Attributes:
        studies: The studies there are, newest first.
        voted: Ids of the studies with votes, the one first that a page about votes opens with.
        labels, votes: A study's tables by its id, one row a reconstruction and one row a vote.
        in_hand: The id of the study that a request is about, "" for none.
        chosen: Likewise, and "" where the request names none.
        framed: A plain page of the studio, of its title and its HTML.
        built_in: Folders of the sets that came with the product.
        used_by: Names of the studies that asked people about the set in a folder.
        kept: What pages have read, so that plots and downloads show what the page shows.
    """

    studies: Callable[[], list[StudyChoice]]
    labels: Callable[[str], pd.DataFrame]
    votes: Callable[[str], pd.DataFrame]
    voted: Callable[[], list[str]] = list
    in_hand: Callable[[Any], str] = lambda request: ""
    chosen: Callable[[Any], str] = lambda request: ""
    framed: Callable[[str, str], str] = lambda title, body: body
    built_in: tuple[Path, ...] = ()
    used_by: Callable[[Path], list[str]] = lambda folder: []
    kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Namespace, lent: Mapping[str, Callable[..., Any]]) -> Self:
        """The context of a server.

        Args:
            options: Of the server; `data_dir`, `checkpoints` and `device` are used.
            lent: The callbacks; each of `studies` has an id, a name and its `spec`.
        """
        studies = lent["studies"]
        given: dict[str, Any] = {
            **lent,
            "studies": lambda: [StudyChoice.of(one) for one in studies()],
        }
        return cls(
            data=options.data_dir,
            checkpoints=options.checkpoints,
            device=options.device,
            built_in=(DEMO,),
            **given,
        )
