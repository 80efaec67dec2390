"""Figures as files and as parts of a page: the same figure gives the same bytes."""

import hashlib
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from semsim.base.errors import DataError, SettingsError
from semsim.base.storage.atomic import write_bytes, write_text
from semsim.base.storage.optional import matplotlib
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib takes these two settings from its global state only, so one figure is written at a
# time, and the state is put back.
_WRITING = threading.Lock()
_SALT = "semsim"
_RASTER_DPI = 200  # of clouds of points inside an SVG
_COMPRESSION = 3  # of PNGs: of the usual 6 the time is three halves, and the file 15% smaller
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


@contextmanager
def _writing(**settings: Any) -> Iterator[None]:
    """Draw and write in the block; names of models stand as they are, also with two $ in them."""
    always = {"svg.hashsalt": _SALT, "text.parse_math": False}
    with _WRITING, matplotlib().rc_context({**always, **settings}):
        yield


def svg(figure: Drawn, live: bool, width_mm: float = canvas.DOUBLE) -> str:
    """The figure as SVG.

    Args:
        live: For inlining in a page. Text stays text, takes the page's colour (`currentColor`) and
            stands on its background; no fixed size; ids are unique to the figure; points of models
            have `data-key` (data set, attack and model, a line each) and a tooltip. Otherwise a
            file on white, letters drawn as outlines so that it looks the same everywhere.
    """
    with _writing(**{"svg.fonttype": "none" if live else "path"}):
        written = _svg_of(figure.draw(width_mm), on_white=not live)
    return _live(written, figure) if live else written


def png(figure: Drawn, dpi: int = 300, width_mm: float = canvas.DOUBLE) -> bytes:
    """The figure on white as PNG with `dpi` dots an inch."""
    with _writing():
        return _png_of(figure.draw(width_mm), dpi)


def svg_and_png(figure: Drawn, width_mm: float = canvas.DOUBLE) -> tuple[str, bytes]:
    """Both files of a figure, laid out once: much less work than `svg` and `png` one by one."""
    with _writing(**{"svg.fonttype": "path"}):
        drawing = figure.draw(width_mm)
        text = _svg_of(drawing, on_white=True)
        drawing.set_layout_engine("none")  # everything stands where the SVG has it
        return text, _png_of(drawing, 300)


def write_both(figure: Drawn, path: Path, width_mm: float = canvas.DOUBLE) -> Path:
    """Write the figure as a PNG at `path` and an SVG beside it; returns `path`."""
    text, picture = svg_and_png(figure, width_mm)
    write_text(path.with_suffix(".svg"), text)
    write_bytes(path, picture)
    return path


def check_picture(path: Path, option: str) -> None:
    """Raise `SettingsError`, which names the `option`, unless `path` ends as a picture does."""
    if path.suffix not in (".png", ".svg"):
        raise SettingsError(f"{option} ends in .png or .svg; got {path.name!r}.")


def write_picture(
    figure: Drawn, path: Path, option: str, *, dpi: int = 300, width_mm: float = canvas.DOUBLE
) -> None:
    """Write the figure as the ending of `path` says, with the folders it lacks.

    Args:
        option: What asked for it, for errors: as `check_picture`, and `DataError` where `path`
            cannot be written.
    """
    check_picture(path, option)
    try:
        if path.suffix == ".png":
            write_bytes(path, png(figure, dpi, width_mm))
        else:
            write_text(path, svg(figure, False, width_mm))
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error}). Choose another {option}.") from error


# `Figure.savefig` draws everything once more before it writes, for layouts that are not ours.
def _svg_of(drawing: "Figure", on_white: bool) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    drawing.set_facecolor("white" if on_white else "none")
    drawing.set_dpi(_RASTER_DPI)
    FigureCanvasSVG(drawing).print_svg(file, metadata=_NO_METADATA)
    return file.getvalue()


def _png_of(drawing: "Figure", dpi: int) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawing.set_facecolor("white")
    drawing.set_dpi(dpi)
    drawn = FigureCanvasAgg(drawing)
    drawn.draw()
    file = io.BytesIO()
    picture = Image.fromarray(np.asarray(drawn.buffer_rgba())).convert("RGB")  # all of it opaque
    picture.save(file, format="png", dpi=(dpi, dpi), compress_level=_COMPRESSION)
    return file.getvalue()


def _live(written: str, figure: Drawn) -> str:
    body = written[written.index("<svg") :]
    # The style sheet matplotlib puts inside would reach every drawing of the page.
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = body.replace(canvas.INK, "currentColor")
    body = _name_points(body, figure)
    body = _unique_ids(body, figure.title)
    head = re.search(r'viewBox="[^"]*"', body)
    view = head.group() if head else ""
    opening = (
        f'<svg {view} role="img" aria-label="{escape(figure.title)}" class="semsim-figure" '
        'style="stroke-linejoin: round; stroke-linecap: butt" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, body, count=1).strip()


def _name_points(body: str, figure: Drawn) -> str:
    """Give each point of a model its key and its tooltip."""
    frame, tooltip = figure.frame, figure.tooltip

    def named(match: re.Match[str]) -> str:
        row = frame.iloc[int(match.group(1))]
        said = "" if tooltip is None else f"<title>{escape(tooltip(row))}</title>"
        # A line break survives in an attribute only as a character reference.
        key = escape(str(row["model_key"])).replace("\n", "&#10;")
        return f'<g id="{match.group(1)}-point" data-key="{key}">{said}'

    return re.sub(r'<g id="row-(\d+)">', named, body)


def _unique_ids(body: str, title: str) -> str:
    """Put a hash of drawing and title before every id, so that several can stand in one page."""
    prefix = f"f{hashlib.sha256((title + body).encode()).hexdigest()[:10]}-"
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'href="#', f'href="#{prefix}', body)
    return body.replace("url(#", f"url(#{prefix}")
