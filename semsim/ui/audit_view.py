"""What the page Audit draws: plain values in, HTML out."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PIL import Image

from semsim.attacks.security.advice import TryOut, described, signed, stated
from semsim.attacks.security.index import SecurityIndex
from semsim.images import to_uint8
from semsim.ui.markup import pieces, png_address

if TYPE_CHECKING:
    from torch import Tensor

_HTML = pieces("audit.html")
WIDTH = 110.0  # mm, of the picture: legible on a phone and not huge on a wide screen
STYLE = """<style>
.aud table{border-collapse:collapse;width:100%;font-size:.92em}
.aud th,.aud td{text-align:left;padding:.3rem .6rem;border:0;color:inherit;
  border-bottom:1px solid var(--border-color-primary)}
.aud td.n,.aud th.n{text-align:right;font-variant-numeric:tabular-nums}
.aud .wide{overflow-x:auto}
.aud p{margin:.6rem 0}
.aud h2{font-size:1.15em;font-weight:600;margin:1.2rem 0 .4rem}
.aud .c{font-size:1.6em;font-weight:600;margin:.2rem 0}
.aud img{width:128px;height:128px;image-rendering:pixelated;display:block}
.aud figure{display:inline-block;margin:0 1rem 1rem 0}
.aud svg{max-width:100%;height:auto}
</style>"""


def verdict_html(index: SecurityIndex, words: Sequence[str]) -> str:
    """c(M), large, and what it means."""
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
    return _HTML.table("What if?", "Changes", header, rows)


def example_html(pictures: Sequence[tuple[str, Tensor]], words: str) -> str:
    """Pictures, (3, H, W) in [0, 1], with words below each and below all."""
    return _HTML.example([(name, _address(image)) for name, image in pictures], words)


def _address(image: Tensor) -> str:
    file = io.BytesIO()
    Image.fromarray(to_uint8(image)).save(file, format="PNG")
    return png_address(file.getvalue())
