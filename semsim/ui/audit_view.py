"""What the page Audit draws: plain values in, HTML out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semsim.attacks.security.advice import TryOut, described, signed, stated
from semsim.attacks.security.index import SecurityIndex
from semsim.images import png_of, to_uint8
from semsim.reporting.writing import png_address
from semsim.ui.markup import pieces

if TYPE_CHECKING:
    from torch import Tensor

_HTML = pieces("audit.html")
WIDTH = 130.0  # mm, of the picture: legible on a phone and not huge on a wide screen


def verdict_html(index: SecurityIndex, words: Sequence[str]) -> str:
    """What c(M) says in a sentence, then what it means."""
    return _HTML.verdict(stated(index), words)


def layers_html(index: SecurityIndex) -> str:
    """c(M) layer by layer."""
    header = ["Convolution", "n", "equations", "rank U", "hidden", "part of c(M)"]
    rows = [
        [
            f"{layer.place}: {described(layer)}",
            *(f"{count:,}" for count in (layer.unknowns, layer.equations)),
            f"{layer.rank:,}" if layer.exact else f"≤ {layer.rank:,}",
            f"{layer.hidden:,}",
            signed(layer.contribution),
        ]
        for layer in index.layers
    ]
    return _HTML.layers(header, rows, index.features)


def tried_html(index: SecurityIndex, tried: Sequence[TryOut]) -> str:
    """What small changes would make of c(M)."""
    if not tried:
        return ""
    rows = [
        [f"convolution {one.place}: {one.change}", signed(one.value), f"{one.hidden:,}"]
        for one in tried
    ]
    header = ["Change in", f"c(M), now {signed(index.value)}", "hidden of the image itself"]
    return str(_HTML.table("What if a layer were changed?", "Changes", header, rows))


def example_html(pictures: Sequence[tuple[str, Tensor]], words: str) -> str:
    """Pictures, (3, H, W) in [0, 1], with words below each and below all."""
    return _HTML.example([(name, _address(image)) for name, image in pictures], words)


def _address(image: Tensor) -> str:
    return png_address(png_of(to_uint8(image)))
