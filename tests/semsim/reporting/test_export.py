import io
import re
import threading
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import pytest
from made_analysis import made_analysis
from PIL import Image

from semsim.reporting import canvas
from semsim.reporting.export import png, svg, svg_and_png
from semsim.reporting.figures import figure, figures

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}"


@pytest.fixture(scope="module")
def live():
    """Every figure as a page shows it; to draw them takes seconds."""
    return {one.stem: svg(one, live=True) for one in figures(made_analysis())}


def not_of_a_page(drawing):
    """What in a drawing does not take its colours and size from the page around it, in words."""
    root = ElementTree.fromstring(drawing)
    given = {name: root.get(name) for name in ("width", "height", "role")}
    if not root.get("viewBox") or given != {"width": None, "height": None, "role": "img"}:
        yield f"its size or role: {given}"
    if canvas.INK in drawing or "currentColor" not in drawing:
        yield "the colour of its ink"
    if root.findall(f".//{SVG}style"):
        yield "a style, which would reach other drawings of the page"
    # Black would vanish on a dark page: texts without a colour of their own are black.
    for text in root.iter(f"{SVG}text"):
        if "fill: " not in text.get("style"):
            yield f"the colour of {ElementTree.tostring(text)}"


def test_live_drawings_take_their_colours_and_size_from_the_page(live):
    found = {stem: told for stem, one in live.items() if (told := [*not_of_a_page(one)])}
    assert found == {}


def test_ids_belong_to_one_drawing_and_every_reference_finds_its_own(live):
    ids = {stem: set(re.findall(r'\bid="([^"]+)"', one)) for stem, one in live.items()}
    used = {
        stem: {*re.findall(r'href="#([^"]+)"', one), *re.findall(r"url\(#([^)]+)\)", one)}
        for stem, one in live.items()
    }
    assert {stem: used[stem] - ids[stem] for stem in live if used[stem] - ids[stem]} == {}
    shared = [(one, other) for one, other in combinations(live, 2) if ids[one] & ids[other]]
    assert shared == []


def test_nothing_is_fetched(live):
    links = [
        (stem, link)
        for stem, one in live.items()
        for node in ElementTree.fromstring(one).iter()
        if (link := node.get(f"{XLINK}href"))
    ]
    assert [one for one in links if not one[1].startswith(("#", "data:image/png;base64,"))] == []


def test_the_title_is_read_out_and_escaped(live):
    root = ElementTree.fromstring(live["scatter-flat-x"])
    assert root.get("aria-label").startswith("<Flat> & co: ρ and τ undefined")


@pytest.mark.parametrize(("stem", "points"), [("scatter-mse", 4), ("stability-mse", 8)])
def test_points_name_their_model_to_the_page(live, stem, points):
    root = ElementTree.fromstring(live[stem])
    found = [node for node in root.iter() if node.get("data-key")]
    assert len(found) == points
    assert {node.get("data-key") for node in found} == {
        f"symbols\ninvgrad\nresnet/{i}" for i in range(4)
    }
    for node in found:
        title = node.find(f"{SVG}title").text
        assert title.startswith(f"resnet/{node.get('data-key')[-1]} <b>: ")
    assert "<title>resnet/0 &lt;b&gt;: " in live[stem]
    assert 'data-key="symbols&#10;invgrad&#10;resnet/0"' in live[stem]


def test_the_cloud_of_images_is_a_picture_and_not_thousands_of_marks(live):
    assert live["images-mse"].count("<image") == 1


def test_a_file_stands_on_white_without_a_date_and_with_outlined_letters():
    one = figure(made_analysis(), "forest")
    file = svg(one, live=False)
    root = ElementTree.fromstring(file)
    assert root.get("width").endswith("pt")
    assert not root.findall(f".//{SVG}text")
    assert "metadata" not in file
    assert "fill: #ffffff" in file
    assert "currentColor" not in file
    narrow = ElementTree.fromstring(svg(one, live=False, width_mm=89))
    assert float(narrow.get("width")[:-2]) == pytest.approx(89 / 25.4 * 72, abs=0.01)


def test_the_same_figure_gives_the_same_bytes_and_another_gives_others():
    first, second = (figure(made_analysis(), "scatter", "psnr") for _ in range(2))
    other = figure(made_analysis(5), "scatter", "psnr")
    for write in (
        lambda one: svg(one, True),
        lambda one: svg(one, False),
        lambda one: png(one, 80),
    ):
        assert write(first) == write(second)
        assert write(first) != write(other)


def test_a_png_has_the_size_that_was_asked_for_and_is_opaque():
    picture = Image.open(io.BytesIO(png(figure(made_analysis(), "auc"), dpi=100, width_mm=127)))
    assert picture.width == 500
    assert (picture.mode, picture.getpixel((0, 0))) == ("RGB", (255, 255, 255))


def test_figures_written_at_once_do_not_disturb_each_other_or_matplotlib():
    one = figure(made_analysis(), "forest")
    kinds = [True, False] * 2
    expected = {live: svg(one, live) for live in (True, False)}
    found = {}

    def write(i, live):
        found[i] = svg(one, live)

    before = dict(matplotlib.rcParams)
    threads = [threading.Thread(target=write, args=each) for each in enumerate(kinds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] == expected[live] for i, live in enumerate(kinds)] == [True] * 4
    assert dict(matplotlib.rcParams) == before


def test_both_files_at_once_are_the_figure(live):
    drawn = figure(made_analysis(), "forest")
    text, picture = svg_and_png(drawn)
    assert text == svg(drawn, live=False)
    alone = Image.open(io.BytesIO(png(drawn)))
    assert Image.open(io.BytesIO(picture)).size == alone.size
