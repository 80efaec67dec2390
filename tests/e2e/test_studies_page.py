"""The Studies page in a real browser against a real server."""

import io

import pandas as pd
import pytest
from playwright.sync_api import expect
from studio import until

from annotation.spec import Task
from annotation.study import labelling as studies
from annotation.study.sets import read_set

pytestmark = pytest.mark.e2e
SLOW = 30_000  # milliseconds; two busy cores
SETS = {"convnet8": 4, "resnet20-4": 4}
START = "/studio/"


def test_a_study_is_made_followed_and_paused(page, server, store) -> None:
    expect(page.locator("#studies-table")).to_contain_text("No study yet")
    page.get_by_role("button", name="New study").click()
    page.get_by_role("button", name="Create study").click()
    expect(page.locator("#new-problems")).to_contain_text("A study needs a name")
    page.get_by_role("checkbox", name="convnet8").check()
    page.get_by_role("checkbox", name="resnet20-4").check()
    expect(page.locator("#new-preview")).to_contain_text("8 items. With 5 votes each that is 40")
    page.get_by_label("Name", exact=True).fill("First <b>study</b>")
    page.get_by_role("button", name="Create study").click()
    expect(page.locator("#study-head")).to_contain_text("First <b>study</b>")
    expect(page.locator("#study-people")).to_contain_text("Nobody has joined yet")
    expect(page.locator("#study-coverage .js-plotly-plot")).to_be_visible()
    expect(page.locator("#new-problems")).to_be_empty()

    (study,) = studies.list_studies(store)
    link = page.locator("#study-link").get_by_role("textbox")
    expect(link).to_have_value(f"{server.url}/join/{study.token}")

    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#study-head")).to_contain_text("paused")
    until(lambda: studies.get_study(store, study.id).status == "paused")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#study-head")).to_contain_text("running")

    # Nobody touches the page; it notices by itself that somebody has joined.
    studies.join(store, study.token, "Ada & <i>Eve</i>")
    expect(page.locator("#study-people")).to_contain_text("Ada & <i>Eve</i>")


def test_gold_items_are_pasted(page, server, store) -> None:
    page.get_by_role("button", name="New study").click()
    page.get_by_role("checkbox", name="convnet8").check()
    page.get_by_label("Name", exact=True).fill("With gold")
    page.get_by_role("button", name="Quality control").click()
    page.get_by_role("spinbutton", name="Gold items").fill("0.1")
    (image, *_) = read_set(server.data / "sets" / "convnet8").images
    answers, create = page.get_by_label("Answers of gold items"), page.locator("#new-create")
    answers.fill(f"model\timage_id\tanswer\nnobody\t{image.image_id}\tnone")
    with page.expect_response("**/queue/data*") as told:
        create.click()
    expect(page.locator("#new-problems")).to_contain_text("Answers of gold items, line 2")
    told.value.finished()  # as long as it goes on the page takes no second press
    answers.fill(f"model\timage_id\tanswer\nconvnet8\t{image.image_id}\tnone")
    create.click()
    expect(page.locator("#study-head")).to_contain_text("With gold")
    (study,) = (one for one in studies.list_studies(store) if one.name == "With gold")
    assert (study.spec.gold_rate, study.n_items) == (0.1, 3)


def test_a_study_is_chosen_and_its_votes_taken_out(page, new_study) -> None:
    for name in ("Older", "Newer"):
        new_study(Task.PAIR, "convnet8", name=name)
    page.reload()
    page.get_by_role("button", name="Older").click()
    expect(page.locator("#study-head h2")).to_have_text("Older")
    with page.expect_download() as download:
        page.get_by_role("link", name="Majority labels (Parquet)").click()
    labels = pd.read_parquet(io.BytesIO(download.value.path().read_bytes()))
    assert download.value.suggested_filename == "older-labels.parquet"
    assert list(labels["study"]) == ["Older"] * 4


def test_the_page_fits_a_phone(phone) -> None:
    expect(phone.locator("#studies-table")).not_to_be_empty()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
