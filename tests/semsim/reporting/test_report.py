import base64
import io
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy
from made_analysis import SPECS, TESTED, made_analysis, with_targets
from made_study import make_labels
from made_tables import made_tables
from markupsafe import escape
from PIL import Image

from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.words import jury_words
from semsim.metrics import METRICS
from semsim.reporting.answer import answer_of
from semsim.reporting.figures import figure
from semsim.reporting.methods import Origin
from semsim.reporting.report import in_blocks, report_html
from semsim.reporting.tables import table, tables

SIMULATED = (
    "Simulated votes: not human data. The numbers below are no evidence about people. "
    + escape(jury_words())
)
EMBEDDED = "data:image/png;base64,"


class Page(HTMLParser):
    """Addresses, ids, tags and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.ids, self.tags, self.texts, self.pictures = [], [], [], [], []
        self._within = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self._within.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        names = ("src", "href", "xlink:href", "srcset", "action", "poster", "data")
        self.addresses += [found[name] for name in names if found.get(name)]
        if tag == "img":
            self.pictures.append(found)

    def handle_endtag(self, tag):
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data):
        if self._within[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def plain():
    return report_html(made_analysis())


@pytest.fixture
def with_images(tmp_path):
    """A made analysis whose images are on disk."""
    analysis = made_analysis(specs=SPECS[:1])
    labels = make_labels(tmp_path, models=("a", "b", "c", "d"), n_images=6)
    images = analysis.evidence.images.assign(
        original=labels["original"], reconstruction=labels["reconstruction"]
    )
    return replace(analysis, evidence=replace(analysis.evidence, images=images))


def test_nothing_outside_of_the_file_is_asked_for(plain):
    page = Page(plain)
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    styles = " ".join(re.findall(r"<style>.*?</style>|style=\"[^\"]*\"", plain, re.DOTALL))
    assert "@import" not in styles
    assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", plain))
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(page.tags)


def test_ids_are_unique_and_links_lead_somewhere(plain):
    page = Page(plain)
    assert len(set(page.ids)) == len(page.ids)
    links = {address[1:] for address in page.addresses if address.startswith("#")}
    assert links <= set(page.ids)
    assert {"study", "methods", "settings"} <= links


def test_figures_and_tables_are_there_with_their_captions(plain):
    page, analysis = Page(plain), made_analysis()
    drawn = [figure(analysis, name) for name in ("forest", "order", "auc", "matrix")]
    for one in drawn:
        assert one.stem in page.ids
        assert " ".join(one.caption.split()) in page.text
    for one in tables(analysis):
        if one.name not in ("table1", "matrix"):  # what the others and a figure say already
            assert f"table-{one.name}" in page.ids
            if one.name in ("rules", "backbones"):  # of which the report has ρ alone, and says so
                assert one.caption.replace("ρ and τ", "ρ").partition(".")[0] in page.text
                assert f"τ and the counts stand in tables/{one.name}.csv" in page.text
            else:
                assert one.caption in page.text
    assert page.tags.count("svg") == len(drawn) + len(analysis.specs)


def test_the_answer_comes_first_and_the_contents_lead_to_all_of_it(plain):
    page = Page(plain)
    assert page.text.index(answer_of(made_analysis()).text[:40]) < page.text.index("The study")
    sections = re.findall(r'<section id="(\w+)">', plain)
    assert re.findall(r'<li><a href="#(\w+)">', plain) == sections


def test_table_and_gallery_say_how_good_each_target_was():
    found = report_html(with_targets(made_analysis(2, 6)))
    (of_models,) = re.findall(r'<section id="models">.*?</section>', found, re.DOTALL)
    (of_pictures,) = re.findall(r'<section id="gallery">.*?</section>', found, re.DOTALL)
    for said in TESTED:
        assert f"<td>{said}</td>" in of_models
        assert f", target {said}<br>" in of_pictures


def test_every_value_of_a_wide_table_is_printed_once(plain):
    """In parts that fit on paper, no column is lost."""
    models = table(made_analysis(), "models")
    (shown,) = re.findall(r'<div id="table-models".*?</div>\s*</div>', plain, re.DOTALL)
    heads = [unescape(head) for head in re.findall(r'<th scope="col">(.*?)</th>', shown)]
    parts = [at for at, head in enumerate(heads) if head == "Model"]
    assert [head for head in heads if head != "Model"] == list(models.cells.columns[1:])
    assert len(parts) == len(in_blocks(models))


def test_names_from_data_are_escaped(plain):
    assert "made <study>" not in plain
    assert "made &lt;study&gt;" in plain
    assert "<Flat>" not in plain
    assert "<b>" not in plain


def test_simulated_votes_stand_on_top_and_in_the_title(plain):
    assert SIMULATED not in plain
    simulated = report_html(made_analysis(simulated=True, specs=SPECS[:1]))
    assert simulated.index(SIMULATED) < simulated.index("<nav")
    (title,) = re.findall("<title>(.*?)</title>", simulated[: simulated.index("<style")])
    assert title.startswith("Simulated votes!")
    assert "<h1>Simulated votes!" in simulated
    assert "People recognise it" not in simulated
    assert "people recognise<" not in simulated
    assert "<h4>Simulated annotators recognise it, it says private</h4>" in simulated
    assert "<h4>People recognise it, it says private</h4>" in plain


def test_notes_come_before_the_numbers(plain):
    assert plain.index("2 images have scores but no votes.") < plain.index("<section")


def test_without_pictures_it_says_so(plain):
    assert "images were not at hand" in plain
    assert not Page(plain).pictures


def test_pictures_are_inside_the_file_as_they_are(with_images):
    page = Page(report_html(with_images))
    assert page.pictures
    assert {picture["alt"] for picture in page.pictures} == {"original", "reconstruction"}
    first = base64.b64decode(page.pictures[0]["src"].removeprefix(EMBEDDED))
    path = with_images.evidence.images["original"][0]
    with open(path, "rb") as file:
        assert first == file.read()


def test_large_pictures_are_made_smaller_and_lost_ones_are_named(with_images, tmp_path):
    images = with_images.evidence.images.copy()
    big = tmp_path / "big.jpg"
    Image.new("RGB", (400, 200), "red").save(big)
    images.loc[0, "original"] = str(big)
    images.loc[0, "reconstruction"] = str(tmp_path / "gone.png")
    evidence = replace(with_images.evidence, images=images)
    text = report_html(replace(with_images, evidence=evidence))
    first = base64.b64decode(Page(text).pictures[0]["src"].removeprefix(EMBEDDED))
    assert Image.open(io.BytesIO(first)).size == (160, 80)
    assert "No reconstruction: " in text
    assert "gone.png" in text


def test_settings_weights_and_versions_are_all_there():
    origin = Origin(
        **{"protocol": "mean-response", "collection": "By post.", "weights": {"a.pth": "12ab"}},
        versions={"numpy": "9.9"},
    )
    text = report_html(made_analysis(specs=SPECS[:2]), origin)
    (shown,) = re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    record = json.loads(unescape(shown))
    assert record["analysis"] == {
        **{"headline": "majority", "bootstraps": 50, "permutations": 99, "seed": 3},
    }
    assert record["weights"] == {"a.pth": "12ab"}
    assert record["versions"] == {"numpy": "9.9"}
    assert record["protocol_headline"] == "mean-response"
    assert "departs from" in record["notes"][0]
    assert [metric["name"] for metric in record["metrics"]] == ["psnr", "mse"]
    assert "By post." in text
    assert "No sha256 of weight files" not in text


def test_versions_are_those_of_this_installation_unless_given(plain):
    assert f"&#34;scipy&#34;: &#34;{scipy.__version__}&#34;" in plain
    assert "No sha256 of weight files was given." in plain


def test_the_same_analysis_gives_the_same_report(plain):
    assert report_html(made_analysis()) == plain


def edges():
    """Votes and scores of a real table, with something missing, constant or infinite."""
    votes, scores = made_tables(n_models=3, n_images=3)
    scores = scores[scores["metric"] == "psnr"]
    infinite = scores.assign(value=np.inf)
    everybody = votes.assign(recognised=True)
    one = votes[votes["model"] == "net/0"]
    return {
        "as it should be": (votes, scores, "the 3 models"),
        "one model": (one, scores, "a ranking needs at least 3"),
        "all infinite": (votes, infinite, "metric: the same value for every model"),
        "all recognised": (everybody, scores, "the same value for every model"),
        "no scores": (votes, scores.iloc[:0], "No metric has scores."),
    }


@pytest.mark.parametrize("edge", edges())
def test_reports_of_what_analyse_makes_of_tables(edge):
    votes, scores, words = edges()[edge]
    specs = [METRICS["psnr"].spec]
    evidence = gather(votes, scores, specs)
    settings = AnalysisSettings(bootstraps=10, permutations=20)
    text = report_html(analyse(evidence, specs, settings))
    assert words in " ".join(unescape(text).split())


def test_a_study_without_scores_still_has_a_report(empty):
    page = Page(report_html(empty))
    assert "No metric has scores." in page.text
    assert "fewer than two annotators" in page.text


def test_a_picture_that_is_too_large_is_named_in_its_place(with_images, tmp_path, monkeypatch):
    images = with_images.evidence.images.copy()
    Image.new("RGB", (400, 200), "red").save(tmp_path / "big.png")
    images.loc[0, "original"] = str(tmp_path / "big.png")
    evidence = replace(with_images.evidence, images=images)
    monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", "0.05")
    text = report_html(replace(with_images, evidence=evidence))
    assert "big.png is too large: 400×200 is 0.08 megapixels" in text
