"""The pages of the human study. Each module has `render(context)`, called where the page stands."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from annotation.images import Shelf
from annotation.store import Store
from annotation.study import exports, labelling, sets
from annotation.web.frame import chosen, framed, in_hand
from annotation.web.templates import STATIC as STATIC
from annotation.web.templates import STATIC_URL as STATIC_URL
from semsim.base.sets.reader import set_choices
from semsim.base.storage.places import DEMO


@dataclass(frozen=True, kw_only=True)
class StudyContext:
    """Context that the pages work on.

    `find_sets` lists the reconstruction sets there are, as (label, folder). `imports` are the
    folders of votes that others collected; `note` is what the page of studies says above them;
    `account` is whose name a request carries, if any.
    """

    store: Store
    images: Shelf
    find_sets: Callable[[], list[tuple[str, Path]]]
    imports: tuple[Path, ...]
    note: Callable[[], str] = str
    account: Callable[[Any], str | None] = lambda request: None

    @classmethod
    def of(cls, store: Store, options: Namespace, note: Callable[[], str]) -> Self:
        """The context of a server with these options: `images` and `data_dir`."""
        return cls(
            store=store,
            images=options.images,
            find_sets=partial(set_choices, [options.data_dir / "runs", DEMO]),
            imports=(options.data_dir / "imports", DEMO / "people"),
            note=note,
        )

    @property
    def in_hand(self) -> Callable[[Any], str]:
        """Function that returns the study of a request, see `annotation.web.frame.in_hand`."""
        return in_hand(self.store)

    @property
    def chosen(self) -> Callable[[Any], str]:
        """Function that returns the study a request names, see `annotation.web.frame.chosen`."""
        return chosen(self.store)

    def store_for(self, request: Any) -> Store:
        """The database; events say with whose account the request writes there."""
        return self.store.by(self.account(request))

    @property
    def lent(self) -> dict[str, Callable[..., Any]]:
        """Callbacks by which the pages of the science ask about studies, by name."""
        store, images = self.store, self.images
        return {
            "studies": partial(labelling.list_studies, store),
            "voted": partial(labelling.voted, store),
            "labels": partial(exports.export_labels, store, images=images),
            "votes": partial(exports.export_votes, store),
            "used_by": partial(sets.users_of, store, images),
            "in_hand": self.in_hand,
            "chosen": self.chosen,
            "framed": framed,
        }
