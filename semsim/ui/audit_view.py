"""What the page Audit draws: plain values in, HTML out."""

import base64
import io
from collections.abc import Sequence
from html import escape

from PIL import Image
from torch import Tensor

from semsim.attacks.security.advice import TryOut, described, signed, stated
from semsim.attacks.security.index import SecurityIndex
from semsim.images import to_uint8

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
    said = "".join(f"<p>{escape(text)}</p>" for text in words)
    return f'<p class="c">{escape(stated(index))}</p>{said}'


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
    dense = f"<p>The {index.features:,} values behind the last convolution leak whole.</p>"
    return f"<h2>Layer by layer</h2>{_table('Layers', header, rows)}{dense}"


def tried_html(index: SecurityIndex, tried: Sequence[TryOut]) -> str:
    """What small changes would make of c(M)."""
    if not tried:
        return ""
    rows = [
        [f"convolution {one.place}: {one.change}", signed(one.value), f"{one.hidden:,}"]
        for one in tried
    ]
    now = signed(index.value)
    header = ["Change in", f"c(M), now {now}", "hidden of the image itself"]
    return f"<h2>What if?</h2>{_table('Changes', header, rows)}"


def example_html(pictures: Sequence[tuple[str, Tensor]], words: str) -> str:
    """Pictures, (3, H, W) in [0, 1], with words below each and below all."""
    drawn = "".join(
        f'<figure><img src="{_data(image)}" alt="{escape(name)}">'
        f"<figcaption>{escape(name)}</figcaption></figure>"
        for name, image in pictures
    )
    return f"<h2>One example, attacked</h2>{drawn}<p>{escape(words)}</p>"


def _table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        parts = [
            f"<{tag}{' class=n' if place else ''}>{escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    head = line(header, "th")
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0">{table}</div>'


def _data(image: Tensor) -> str:
    file = io.BytesIO()
    Image.fromarray(to_uint8(image)).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
