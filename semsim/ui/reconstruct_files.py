"""The pictures of the page Reconstruct: what was attacked and what came back, by the cell's key."""

import re
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from semsim.campaign.store import PieceStore
from semsim.errors import SemsimError
from semsim.images import png_of
from semsim.ui import ScienceContext
from semsim.ui.markup import rooted

FOLDER = "/studio/reconstruct-files"
_KEY = re.compile(r"[0-9a-f]{20}")
# An address names the version of its picture, so that a browser asks for it once.
_KEEP = {"Cache-Control": "private, max-age=31536000, immutable"}


def address(key: str, kind: str, changed: int) -> str:
    """Where a picture is: `kind` is attacked or picture; `changed` tells versions apart."""
    return rooted(f"{FOLDER}/{key}/{kind}.png?v={changed}")


def router(context: ScienceContext) -> APIRouter:
    """The route of the pictures below `FOLDER`."""
    routes = APIRouter()
    store = PieceStore(context.data)

    @routes.get(FOLDER + "/{key}/{kind}.png")
    def picture(key: str, kind: Literal["attacked", "picture"]) -> Response:
        if not _KEY.fullmatch(key):
            return PlainTextResponse("No such cell.", status_code=404)
        try:
            result = store.cells.read(key).result
        except SemsimError as error:
            return PlainTextResponse(str(error), status_code=404)
        found = result.attacked if kind == "attacked" else result.picture
        if found is None:
            return PlainTextResponse("This attack gave no picture.", status_code=404)
        return Response(png_of(found), media_type="image/png", headers=_KEEP)

    return routes
