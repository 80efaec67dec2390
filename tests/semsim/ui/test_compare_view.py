import base64
import re

import pandas as pd
import pytest
from made_study import MODELS

from semsim.metrics import METRICS
from semsim.reporting import canvas, figures, tables
from semsim.reporting.gallery import gallery
from semsim.ui import compare_view
from semsim.ui.compare_data import View, fresh

VIEW = View(study="1")


@pytest.fixture
def comparison(made_context):
    return lambda **made: fresh(made_context(**{"n_images": 3, **made}), VIEW)


@pytest.fixture(scope="module")
def plain(small_context):
    """The comparison that most tests only look at."""
    return fresh(small_context, VIEW)


@pytest.fixture
def notice(made_context):
    def make(view=VIEW, **made):
        context = made_context(**{"n_images": 3, **made})
        found = fresh(context, view)
        return compare_view.notice_html(found)

    return make


def test_simulated_votes_are_marked_once_and_human_ones_are_not(notice):
    assert notice().count("imulated votes") == 1
    assert "imulated" not in notice(simulated=False)


def test_a_study_without_votes_says_what_to_do(notice, comparison):
    said = notice(simulated=False, votes=0)
    assert "Nobody has voted" in said
    assert 'href="./"' in said
    shown = compare_view.gallery_html(comparison(votes=0), "symbols\n000", METRICS["mse"].spec)
    assert "no votes yet" in shown


def test_fewer_than_ten_models_and_another_rule_are_warned_of(notice):
    said = notice(View(study="1", rule="mean-response"))
    assert "fewer than 10" in said
    assert "mean-response" in said
    many = tuple(f"m{i}/x" for i in range(10))
    assert "fewer than 10" not in notice(models=many, n_images=2)


def test_what_metrics_say_of_themselves_is_told_before_their_numbers(notice):
    assert "3 of 3 reconstructions equal their original" in notice()


def test_a_figure_has_its_caption_and_its_files(plain):
    shown = compare_view.figure_html(figures.figure(plain.analysis, "scatter", "mse"), VIEW)
    assert shown.count("<svg") == 1
    assert shown.count("data-key=") == len(MODELS)
    for ending in ("png", "svg", "csv"):
        assert (
            f"/studio/compare-files/scatter.{ending}?study=1&amp;reference=clean&amp;rule=majority"
            in shown
        )
    assert "currentColor" in shown


def test_a_table_has_its_caption_and_its_files(plain):
    shown = compare_view.table_html(tables.table(plain.analysis, "agreement"), VIEW)
    assert shown.count("<tr>") == 4  # heading and three metrics
    assert re.findall(r"agreement\.(\w+)\?", shown) == ["csv", "tex", "md"]


def test_unavailable_metrics_name_their_file_and_refused_ones_their_reason(comparison):
    found = comparison(scored=("mse", "ms-ssim"))
    shown = compare_view.unavailable_html(found)
    assert "inception" in shown
    assert "MS-SSIM (every model)" in shown


@pytest.mark.parametrize("metric", ["mse", "psnr"])
def test_the_gallery_has_the_original_then_the_most_leaking_first(plain, metric):
    spec = METRICS[metric].spec
    shown = compare_view.gallery_html(plain, "symbols\n001", spec)
    names = re.findall(r"<b>(.*?)</b>", shown)
    assert names == ["Original", *MODELS]  # made so that every later model leaks less
    assert shown.count("<img") == 7
    assert "5 of 5 recognised" in shown
    assert compare_view.gallery_html(plain, None, spec) == ""
    assert compare_view.gallery_html(plain, "symbols\n999", spec) == ""


def test_a_metric_of_sets_sorts_by_its_models(comparison):
    found = comparison(scored=("mse", "fd:recogniser"))
    if "fd:recogniser" not in {spec.name for spec in found.analysis.specs}:
        spec = METRICS["mse"].spec
    else:
        spec = METRICS["fd:recogniser"].spec
    rows = compare_view.sorted_by_metric(found, found.images, spec)
    assert rows["score"].is_monotonic_increasing


def test_images_are_the_files_themselves(comparison, image_bytes, tmp_path):
    shown = compare_view.gallery_html(comparison(), "symbols\n000", METRICS["mse"].spec)
    sent = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', shown)[1])
    assert sent == image_bytes("originals/000.png")
    assert compare_view.image_source(str(tmp_path / "gone.png")) == ""


def test_the_images_of_a_model_are_all_there(plain):
    shown = compare_view.model_images_html(plain, "symbols\ninvgrad\nconv/crop")
    assert shown.count("<figure") == 3
    assert shown.count("<img") == 6
    assert shown.count("1 of 5 recognised") == 3
    assert compare_view.model_images_html(plain, None) == ""


def test_a_pair_has_every_metric_and_what_people_said(plain):
    row = int(plain.images.index[plain.images["model"] == "resnet/none"][0])
    shown = compare_view.pair_html(plain, row)
    assert shown.count("<img") == 2
    for text in ("MSE ↓ 0.000", "PSNR (dB) ↑ ∞", "5 of 5 recognised"):
        assert text in shown


def test_the_disagreement_gallery_shows_pairs(comparison):
    def swap(labels):  # people recognise what the metric calls worst, and nothing else
        worst = labels["model"] == MODELS[-1]
        return labels.assign(n_recognised=worst.map({True: 5, False: 0}))

    found = comparison(change=swap)
    picked = gallery(found.analysis, METRICS["mse"].spec)
    shown = compare_view.disagreement_html(found, "People only", picked.people_only)
    assert shown.count("<figure") == len(picked.people_only) > 0
    assert "5 of 5 recognised" in shown
    assert "No such image" in compare_view.disagreement_html(found, "None", ())


@pytest.mark.parametrize(
    ("votes", "recognised", "share", "words"),
    [
        (5, 4, 0.8, 'cmp-yes">4 of 5 recognised'),
        (5, 1, 0.2, 'cmp-no">1 of 5 recognised'),
        (2, 1, 0.5, 'cmp-open">1 of 2 recognised'),
        (0, 0, float("nan"), "no votes yet"),
    ],
)
def test_verdicts(votes, recognised, share, words):
    row = pd.Series({"n_votes": votes, "n_recognised": recognised, "share": share})
    assert words in compare_view.verdict_html(row)


def test_what_leaked_is_warm_and_what_did_not_is_cool():
    red, green, blue = (int(canvas.LEAKED[at : at + 2], 16) for at in (1, 3, 5))
    assert red > green > blue
    red, green, blue = (int(canvas.PRIVATE[at : at + 2], 16) for at in (1, 3, 5))
    assert red < green < blue
    for kind, colour in (("yes", canvas.LEAKED), ("no", canvas.PRIVATE)):
        assert f".cmp-{kind} {{background: {colour};" in compare_view.STYLE


def test_every_card_of_a_model_says_how_good_its_target_is(comparison):
    def tested(labels):
        return labels.assign(target_accuracy=0.02, target_chance=0.02, target_at_chance=True)

    found, metric = comparison(change=tested), METRICS["mse"].spec
    shown = compare_view.gallery_html(found, "symbols\n000", metric)
    assert shown.count("target 2% right: at chance (2%)") == len(MODELS)
    assert "target 2% right: at chance (2%)" in compare_view.pair_html(found, 0)
    assert "2% right: at chance (2%)" in compare_view.table_html(
        tables.table(found.analysis, "models"), VIEW
    )
    assert "target not kept" in compare_view.pair_html(comparison(), 0)


def test_names_cannot_bring_html(comparison, made_context):
    evil = "<script>alert(1)</script>"

    def poison(labels):
        return labels.assign(model=labels["model"] + evil, class_name=evil)

    found = comparison(change=poison)
    key = f"symbols\ninvgrad\n{MODELS[0]}{evil}"
    for shown in (
        compare_view.figure_html(figures.figure(found.analysis, "scatter", "mse"), VIEW),
        compare_view.table_html(tables.table(found.analysis, "models"), VIEW),
        compare_view.gallery_html(found, "symbols\n000", METRICS["mse"].spec),
        compare_view.model_images_html(found, key),
        compare_view.pair_html(found, 0),
        compare_view.files_html(View(study=evil)),
    ):
        assert shown
        assert "<script" not in shown
