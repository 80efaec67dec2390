"""Errors of routes that scripts call, answered as JSON with a status that fits."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from fastapi.responses import JSONResponse, PlainTextResponse

from semsim.base.errors import DataError, JobError, SemsimError
from semsim.importers import uploads

R = TypeVar("R")
log = logging.getLogger(__name__)
# An address names the version of its picture, so that a browser asks for it once.
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}


class GoneError(DataError):
    """Something that there is not, or no more."""


_STATUS: tuple[tuple[type[SemsimError], int], ...] = (
    (uploads.NoUploadError, 404),
    (uploads.GapError, 409),
    (uploads.TooLargeError, 413),
    (GoneError, 404),
    (JobError, 404),
)


def said(work: Callable[..., R]) -> Callable[..., R | JSONResponse]:
    """Wrap `work` to return its answer, or its error as JSON with a status that fits."""

    @wraps(work)
    def answer(*args: Any, **values: Any) -> R | JSONResponse:
        try:
            return work(*args, **values)
        except SemsimError as error:
            status = next((code for kind, code in _STATUS if isinstance(error, kind)), 422)
            have = {"have": error.have} if isinstance(error, uploads.GapError) else {}
            return JSONResponse({"error": str(error), **have}, status)
        except OSError as error:
            log.exception("A page could not read or write")
            return JSONResponse({"error": f"The disk says: {error.strerror or error}."}, 507)

    return answer


def worded(work: Callable[..., R]) -> Callable[..., R | PlainTextResponse]:
    """Wrap `work` so that it answers what is not there as text."""

    @wraps(work)
    def answer(*args: Any, **values: Any) -> R | PlainTextResponse:
        try:
            return work(*args, **values)
        except SemsimError as error:
            return PlainTextResponse(str(error), status_code=404)

    return answer
