"""Small pictures of what a piece of work is making, a few of each, for whoever watches."""

from dataclasses import dataclass

from semsim.base.progress import Progress
from semsim.images import png_of

STEPS = 5  # pictures of one image at most, at even shares of the work on it
SIDE = 64  # pixels of the longer side at most


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Preview of an image when `share` of the work on it was done, 0 to 1.

    Attributes:
        place: Which of those the piece was given.
        png: A PNG file, `SIDE` pixels a side at most.
    """

    place: int
    share: float
    png: bytes


Strip = tuple[Preview, ...]


class Camera:
    """Takes a picture where work has come to another image, or another fifth of the work on it."""

    def __init__(self) -> None:
        self._last = (-1, -1)

    def __call__(self, progress: Progress) -> Preview | None:
        """The picture, None where there is none to take."""
        look = progress.look
        if look is None:
            return None
        now = look.place, min(STEPS - 1, int(STEPS * look.share))
        if now == self._last:
            return None
        self._last = now
        try:
            png = png_of(look.picture(), SIDE)
        except Exception:  # noqa: BLE001  work must not end because it could not be shown
            return None
        return Preview(place=look.place, share=look.share, png=png)


def longer(strip: Strip, sight: Preview) -> Strip:
    """`strip` with `sight` at its end; only that where it shows another image, or an earlier step.

    The latter is where the work was begun again, by another worker for one.
    """
    goes_on = bool(strip) and strip[-1].place == sight.place and strip[-1].share < sight.share
    return (*strip, sight)[-STEPS:] if goes_on else (sight,)
