import base64
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_study import MODELS, make_labels

from semsim.metrics import METRICS, Resources
from semsim.scoring import pair_sets_of_labels, score_sets
from semsim.ui import StudyChoice, compare_view
from semsim.ui.compare_data import compare

SPECS = [METRICS[name].spec for name in ("mse", "psnr", "fd:recogniser")]


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


def comparison(tmp_path, *, simulated=True, change=lambda labels: labels, **made):
    labels = change(make_labels(tmp_path / "images", n_images=3, **made))
    resources = Resources(checkpoints=tmp_path, classifiers=())
    names = [spec.name for spec in SPECS]
    book = score_sets(pair_sets_of_labels(labels), names, resources, tmp_path / "scores")
    return compare(StudyChoice("1", "Made", simulated), labels, book, SPECS)


def texts(html):
    """The cells of a table, row by row, without tags."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_simulated_votes_are_marked_and_human_ones_are_not(tmp_path):
    assert "not human data" in compare_view.notice_html(comparison(tmp_path))
    assert compare_view.notice_html(comparison(tmp_path, simulated=False)) == ""


def test_a_study_without_votes_says_what_to_do(tmp_path):
    found = comparison(tmp_path, simulated=False, votes=0)
    notice = compare_view.notice_html(found)
    assert "Nobody has voted" in notice
    assert 'href="./"' in notice
    assert "people: 6 models without a value" not in compare_view.agreement_html(found)
    assert "no votes yet" in compare_view.gallery_html(found, "symbols\n000", SPECS[0])


def test_votes_without_a_majority_are_said_to_be_so(tmp_path):
    def undecided(labels):
        return labels.assign(recognisable=pd.array([pd.NA] * len(labels), dtype="boolean"))

    notice = compare_view.notice_html(comparison(tmp_path, simulated=False, change=undecided))
    assert "no reconstruction has a majority yet" in notice


def test_remarks_stand_beside_their_numbers(tmp_path):
    found = replace(comparison(tmp_path), remarks={"mse": "in-sample <b>"})
    rows = {row[0]: row for row in texts(compare_view.agreement_html(found))}
    assert rows["MSE"][-1] == "in-sample &lt;b&gt;"
    assert rows["PSNR"][-1] == ""


def test_agreement_shows_absolute_and_signed_values_and_the_interval(tmp_path):
    found = comparison(tmp_path)
    header, *rows = texts(compare_view.agreement_html(found))
    assert header[:7] == ["Metric", "|ρ|", "|τ|", "ρ", "τ", "95 % interval of ρ", "models"]
    by_name = {row[0]: row[1:] for row in rows}
    assert set(by_name) == {"MSE", "PSNR"}
    rho = found.agreement.set_index("metric").loc["mse", "rho"]
    assert by_name["MSE"][:3:2] == [compare_view.number(rho)] * 2
    assert by_name["MSE"][5] == "6"


def test_fewer_than_ten_models_are_warned_of(tmp_path):
    assert "Only 6 models" in compare_view.few_models_html(comparison(tmp_path))
    many = comparison(tmp_path / "many", models=tuple(f"m{i}" for i in range(10)))
    assert compare_view.few_models_html(many) == ""


def test_an_undefined_correlation_is_a_reason_and_dashes(tmp_path):
    found = comparison(tmp_path, models=MODELS[:2])
    row = texts(compare_view.agreement_html(found))[1]
    assert row[1:6] == ["–"] * 5
    assert row[7] == "undefined: 2 models; a ranking needs at least 3"


def test_models_have_their_share_counts_and_means(tmp_path):
    found = comparison(tmp_path)
    header, *rows = texts(compare_view.models_html(found))
    assert header == ["Model", "People recognise", "Mean response", "MSE ↓", "PSNR (dB) ↑"]
    assert rows[0][:3] == ["resnet/none", "1.00 (3 of 3)", "1.000"]
    assert rows[0][3:] == ["0.000", "∞"]  # reconstructed without a fault
    assert rows[-1][1].startswith("0.00 (0 of 3")
    assert "3 of 3 reconstructions equal their original" in compare_view.models_html(found)


def test_unavailable_metrics_name_their_file(tmp_path):
    html = compare_view.unavailable_html(comparison(tmp_path))
    assert "Fréchet distance (recogniser)" in html
    assert "recogniser.safetensors is missing" in html


@pytest.mark.parametrize(("spec", "first"), [(SPECS[0], "resnet/none"), (SPECS[1], "resnet/none")])
def test_the_gallery_has_the_original_then_the_most_leaking_first(tmp_path, spec, first):
    found = comparison(tmp_path)
    html = compare_view.gallery_html(found, "symbols\n001", spec)
    names = re.findall(r"<b>(.*?)</b>", html)
    assert names[:2] == ["Original", first]
    assert names[1:] == list(MODELS)  # made so that every later model leaks less
    assert html.count("<img") == 7
    assert "5 of 5 recognised" in html
    assert compare_view.gallery_html(found, None, spec) == ""
    assert compare_view.gallery_html(found, "symbols\n999", spec) == ""


def test_images_are_the_files_themselves(tmp_path):
    found = comparison(tmp_path)
    html = compare_view.gallery_html(found, "symbols\n000", SPECS[0])
    sent = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', html)[1])
    assert sent == (tmp_path / "images" / "originals" / "000.png").read_bytes()
    assert compare_view.image_source(str(tmp_path / "gone.png")) == ""


def test_the_images_of_a_model_are_all_there(tmp_path):
    found = comparison(tmp_path)
    html = compare_view.model_images_html(found, "symbols\ninvgrad\nconv/crop")
    assert html.count("<figure") == 3
    assert html.count("<img") == 6
    assert html.count("1 of 5 recognised") == 3
    assert compare_view.model_images_html(found, None) == ""


@pytest.mark.parametrize(
    ("votes", "recognised", "verdict", "words"),
    [
        (5, 4, True, 'cmp-yes">4 of 5 recognised'),
        (5, 1, False, 'cmp-no">1 of 5 recognised'),
        (2, 1, pd.NA, "1 of 2 recognised, undecided"),
        (0, 0, pd.NA, "no votes yet"),
    ],
)
def test_verdicts(votes, recognised, verdict, words):
    row = pd.Series({"n_votes": votes, "n_recognised": recognised, "recognisable": verdict})
    assert words in compare_view.verdict_html(row)


def test_names_cannot_bring_html(tmp_path):
    evil = "<script>alert(1)</script>"

    def poison(labels):
        return labels.assign(model=labels["model"] + evil, class_name=evil)

    found = comparison(tmp_path, change=poison)
    key = f"symbols\ninvgrad\n{MODELS[0]}{evil}"
    for html in (
        compare_view.models_html(found),
        compare_view.agreement_html(found),
        compare_view.gallery_html(found, "symbols\n000", SPECS[0]),
        compare_view.model_images_html(found, key),
    ):
        assert html
        assert "<script" not in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.nan, "–"),
        (np.inf, "∞"),
        (-np.inf, "−∞"),
        (0.12345, "0.123"),
        (-0.5, "−0.500"),
        (0.00012345, "0.000123"),
        (12345.6, "1.23e+04"),
        (0.0, "0.000"),
    ],
)
def test_numbers_for_tables(value, text):
    assert compare_view.number(value) == text
