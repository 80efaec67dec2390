"""The labelling page as a preview: of a study that is there, or of one in the making.

The server only reads here. Answers are taken by `static/preview.js` in the browser and go nowhere,
so that none can become a vote.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse, RedirectResponse

from annotation.domain import StimulusKind
from annotation.images import strip
from annotation.study.exports import read_items
from annotation.study.labelling import get_study, picture_of
from annotation.ui import StudyContext
from annotation.ui.new_study import as_told, page_of
from annotation.web.api import routes
from annotation.web.root_path import rooted
from annotation.web.templates import page

SMALL = 128  # pixels of a thumbnail's longer side
Digest = Annotated[str, InPath(pattern="^[0-9a-f]{64}$")]
_COUNTED = (StimulusKind.RECONSTRUCTION, StimulusKind.DECOY, StimulusKind.ORIGINAL)


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/preview, and the pictures of studies for researchers."""
    made = _Preview(context=context)
    return routes(
        get={
            "/studio/preview": made.page,
            "/studio/preview/items": made.items,
            "/studio/seen/{study}/{digest}": made.picture,
        }
    )


@dataclass(frozen=True, kw_only=True)
class _Preview:
    context: StudyContext

    def page(self, request: Request, study: str = "", draft: str | None = None) -> Response:
        """A preview of a study, without a name of the one in hand;

        Args:
            draft: Of one in the making.
        """
        if draft is not None:
            return page("preview_page.html", back="")
        if not study and (chosen := self.context.in_hand(request)):
            return RedirectResponse(rooted(f"/studio/preview?study={chosen}"), 303)
        if not study:
            return page("preview_none.html", title="Preview")
        get_study(self.context.store, study)
        return page("preview_page.html", back=rooted(f"/studio/overview?study={study}"))

    def items(self, study: str) -> dict[str, Any]:
        about = get_study(self.context.store, study)
        rows = [one for one in read_items(self.context.store, study) if one["kind"] in _COUNTED]
        shown = ("original", "shown") if about.kind.beside else ("shown",)
        items = as_told(
            rows,
            lambda row: [rooted(f"/studio/seen/{study}/{row[which]}") for which in shown],
            lambda row: row["candidates"] or (),
        )
        return {"study": page_of(about.spec, len(items)), "items": items}

    def picture(self, study: str, digest: Digest, small: bool = False) -> Response:
        """Any picture of a study;

        Args:
            small: No side longer than `SMALL`.
        """
        path = picture_of(self.context.store, study, digest, self.context.images)
        headers = {"Cache-Control": "private, max-age=86400, immutable"}
        if small:
            return Response(strip((path,), SMALL), media_type="image/png", headers=headers)
        return FileResponse(path, media_type="image/png", headers=headers)
