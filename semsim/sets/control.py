"""Whether a picture that came back shows more than a guess, which takes no attack.

The rule of every verdict: a guess is a plain picture, or the mean of the other originals, each in
the right mean colour. Noise is farther from any picture than the plain one is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NEARER = 0.9  # of a guess's error: by luck noise gets a few per cent nearer
GUESS = "a guess (a plain picture, or the mean of the others)"


@dataclass(frozen=True, kw_only=True)
class Control:
    """What can be guessed of originals. total: their sum, None where they differ in size."""

    originals: tuple[np.ndarray, ...]
    total: np.ndarray | None

    @classmethod
    def of(cls, originals: Sequence[np.ndarray]) -> "Control":
        """The control for these originals, (H, W, C) in 0 to 255 each."""
        alike = len({one.shape for one in originals}) == 1
        total = np.sum(originals, axis=0, dtype=float) if alike else None
        return cls(originals=tuple(originals), total=total)

    def is_beaten(self, place: int, picture: np.ndarray, attacked: np.ndarray) -> bool:
        """Whether `picture` is clearly nearer than every guess to what was attacked of an original.

        picture, attacked: (H, W, C) in 0 to 255; `attacked` may be shifted against the original at
        `place`. Nearer is by mean squared error, all shifted to the mean colour of `attacked`, so
        that shapes count where the light of a picture is off, and a lucky colour does not.
        """
        truth = _shapes(attacked)
        near = np.square(_shapes(picture) - truth).mean()
        far = min(np.square(guess - truth).mean() for guess in self._guesses(place))
        return bool(near < NEARER * far)

    def _guesses(self, place: int) -> list[np.ndarray]:
        plain, others = np.zeros(1), len(self.originals) - 1
        if self.total is None or others < 1:
            return [plain]
        return [plain, _shapes((self.total - self.originals[place]) / others)]


def clearer(
    pictures: Sequence[np.ndarray | None], originals: Sequence[np.ndarray]
) -> tuple[bool, ...]:
    """Of each picture whether it beats the control; one that failed, None, does not.

    pictures, originals: (H, W, C) in 0 to 255 each, in one order.
    """
    control = Control.of(originals)
    return tuple(
        picture is not None and control.is_beaten(place, picture, originals[place])
        for place, picture in enumerate(pictures)
    )


def comes_back(clearer: int, over: int) -> bool:
    """Whether an attack counts as one that gets pictures back: most of them beat the control."""
    return 2 * clearer > over


def count_words(clearer: int, over: int) -> str:
    """The control and on how many pictures it was beaten."""
    return f"clearer than {GUESS} on {clearer} of {over} pictures"


def _shapes(picture: np.ndarray) -> np.ndarray:
    """A picture less its mean colour, (H, W, C)."""
    exact = picture.astype(float)
    return exact - exact.mean(axis=(0, 1))
