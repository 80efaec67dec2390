"""A study is made in four steps, followed, previewed and deleted, in a real browser."""

import re

import pytest
from helpers import until
from playwright.sync_api import expect
from study_factory import answer_all

from annotation.errors import NotFoundError
from annotation.spec import Task
from annotation.study import labelling as studies
from annotation.study.sets import read_set
from annotation.study.study_file import read_text
from annotation.tasks.wording import USUAL

pytestmark = pytest.mark.e2e
SETS = {"convnet8": 4, "resnet20-4": 4}
START = "/studio/new"
TALLEST = 1.5 * 768  # pixels of a step


def height(page) -> int:
    return page.evaluate("document.documentElement.scrollHeight")


def told(page, words: str) -> None:
    """What was done is said on the page."""
    expect(page.locator("#studio-toasts")).to_contain_text(words)


def choose(page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=name).check()


def test_a_study_is_made_in_four_steps_and_followed(page, server, store) -> None:
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose at least one set")
    choose(page, "convnet8", "resnet20-4")
    expect(page.locator("#in-short")).to_contain_text("2 sets: 8 reconstructions of 4 originals")
    assert height(page) <= TALLEST
    page.get_by_role("button", name="Next").click()
    screen = page.frame_locator(".nw-screen iframe")
    expect(screen.locator(".sl-question")).to_have_text("What do you see in the picture?")
    expect(screen.locator(".sl-pictures img, .sl-pictures canvas").first).to_be_visible()
    page.get_by_role("radio", name="Pair").check()
    expect(screen.locator(".sl-question")).to_have_text("Do both pictures show the same subject?")
    page.get_by_label("Words of the question").fill("Zeigen beide dasselbe?")
    expect(screen.locator(".sl-question")).to_have_text("Zeigen beide dasselbe?")
    page.get_by_label("Title for annotators").fill("Symbols in noise")
    expect(screen.locator("h1")).to_have_text("Symbols in noise")
    assert height(page) <= TALLEST
    page.get_by_role("button", name="Next").click()
    page.get_by_label("People you expect").fill("4")
    page.get_by_label("Wage per hour").fill("12")
    means = page.locator('[data-said="people"]')
    expect(means).to_contain_text("With fewer than 5 people no item gets all its votes")
    expect(means).to_contain_text("At 12 an hour that costs")
    expect(means).to_contain_text("Each person meets the same original 4 times.")
    expect(means).to_contain_text("An earlier view helps the next (carry-over)")
    page.get_by_label("Most views of one original").fill("1")
    expect(means).to_contain_text("but a decoy shows a reconstruction of another")
    page.get_by_label("Most views of one original").fill("")
    page.get_by_label("People you expect").fill("5")
    assert height(page) <= TALLEST
    page.get_by_role("button", name="Next").click()
    expect(page.locator('[data-said="review"]')).to_contain_text("they read “Symbols in noise”")
    page.get_by_label("Name", exact=True).fill("First <b>study</b>")
    assert height(page) <= TALLEST
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    kept = read_text(download.value.path().read_text())
    assert (kept.spec().name, kept.spec().decoy_rate) == ("First <b>study</b>", 0.5)
    assert kept.spec().texts == {"pair.question": "Zeigen beide dasselbe?"}
    page.get_by_role("button", name="Create study").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("First <b>study</b>")
    told(page, "Created: First <b>study</b>")
    (study,) = studies.list_studies(store)
    assert page.url.endswith(f"/studio/overview?study={study.id}")
    link = page.locator("#link")
    expect(link).to_have_attribute("href", f"{server.url}/join/{study.token}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the link").click()
    told(page, "Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{server.url}/join/{study.token}"
    page.get_by_role("button", name="Pause").click()
    told(page, "Paused: people keep their place.")
    expect(page.locator(".ov-top")).to_contain_text("paused")
    until(lambda: studies.get_study(store, study.id).status == "paused")
    page.get_by_role("button", name="Start").click()
    told(page, "The study runs.")
    expect(page.locator(".ov-top")).to_contain_text("running")
    for answer, status in (("Back", "running"), ("Close it", "closed")):
        page.get_by_role("button", name="Close", exact=True).click()
        dialog = page.get_by_role("dialog", name="Close the study?")
        dialog.get_by_role("button", name=answer).click()
        expect(dialog).to_have_count(0)
        until(lambda status=status: studies.get_study(store, study.id).status == status)
    told(page, "Closed.")
    page.get_by_role("button", name="Reopen").click()
    expect(page.locator(".ov-top")).to_contain_text("running")

    # Nobody touches the page; it notices by itself that somebody has joined.
    studies.join(store, study.token, "Ada & <i>Eve</i>")
    expect(page.locator(".ov-people")).to_contain_text("Ada & <i>Eve</i>")


def test_what_is_in_the_making_outlives_a_reload_without_its_password(page) -> None:
    choose(page, "convnet8")
    page.get_by_role("button", name="2 Question").click()
    page.get_by_role("radio", name="Pair").check()
    page.locator("#question-words").fill("The same?")
    page.locator("[data-setting=password]").evaluate("(field) => { field.value = 'secret'; }")
    page.locator("#people").evaluate(
        """(field) => { field.value = 9;
        field.dispatchEvent(new Event('input', { bubbles: true })); }"""
    )
    page.reload()
    expect(page.get_by_role("radio", name="Pair")).to_be_checked()
    expect(page.locator("#question-words")).to_have_value("The same?")
    expect(page.locator("#people")).to_have_value("9")
    expect(page.locator("[data-setting=password]")).to_have_value("")
    assert "secret" not in page.evaluate("JSON.stringify({ ...sessionStorage })")
    page.get_by_role("button", name="1 Pictures").click()
    expect(page.get_by_role("checkbox", name="convnet8")).to_be_checked()
    page.goto(page.url.partition("#")[0] + "?")  # somebody begins anew
    expect(page.get_by_role("checkbox", name="convnet8")).not_to_be_checked()
    page.goto(page.url.partition("#")[0])  # what is offered is not lost by looking at it
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("checkbox", name="convnet8")).to_be_checked()
    expect(page.get_by_role("button", name="Continue")).to_be_hidden()


def test_back_goes_one_step_back_and_the_focus_is_at_the_head_of_the_step(page) -> None:
    choose(page, "convnet8")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("section[data-step=question]")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio").first).to_be_focused()
    page.locator("#question-words").fill("The same?")
    page.get_by_role("button", name="Next").click()
    page.go_back()
    expect(page.locator("section[data-step=question]")).to_be_visible()
    expect(page.locator("#question-words")).to_have_value("The same?")
    page.go_back()
    expect(page.get_by_role("checkbox", name="convnet8")).to_be_checked()
    page.go_forward()
    expect(page.locator("#question-words")).to_have_value("The same?")


def test_a_skip_link_leads_past_the_side_bar(page) -> None:
    expect(page.locator("#studio-frame a")).not_to_have_count(0)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_field_that_is_refused_is_marked_and_the_page_goes_to_it(page) -> None:
    choose(page, "convnet8")
    page.get_by_role("button", name="3 People").click()
    field = page.locator("#set-votes_per_item")
    field.fill("0")
    expect(field).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="4 Review").click()
    page.get_by_role("button", name="Create study").click()
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description("Votes per item must be at least 1; got 0.")
    field.fill("3")
    expect(page.locator(".nw-wrong, [data-setting][aria-invalid]")).to_have_count(0)


def test_words_are_given_row_by_row_and_changed_later(page, server, store) -> None:
    choose(page, "convnet8")
    page.get_by_role("button", name="2 Question").click()
    page.get_by_text("More: Words").click()
    texts, classes = (page.locator(f'[data-of="{name}"]') for name in ("texts", "class_names"))
    texts.get_by_role("button", name="Add").click()
    texts.get_by_label("The usual text").select_option("join.start")
    expect(texts.get_by_label("Your words")).to_have_attribute("placeholder", USUAL["join.start"])
    texts.get_by_label("Your words").fill('Los "jetzt"')
    for number, (name, shown) in enumerate((("anchor", "X"), ("anchor", "Anker"))):
        classes.get_by_role("button", name="Add").click()
        classes.get_by_label("Name of the class").nth(number).fill(name)
        classes.get_by_label("Shown as").nth(number).fill(shown)
    expect(classes.locator("[aria-invalid=true]")).to_have_count(2)
    classes.get_by_role("button", name="Take this row away").first.click()
    expect(classes.locator("[aria-invalid=true]")).to_have_count(0)
    page.get_by_role("button", name="4 Review").click()
    page.get_by_label("Name", exact=True).fill("German")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    page.get_by_role("button", name="Create study").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("German")
    (study,) = (one for one in studies.list_studies(store) if one.name == "German")
    assert study.spec.texts == {"join.start": 'Los "jetzt"'}
    assert study.spec.class_names == {"anchor": "Anker"}

    page.locator("summary", has_text="Protocol").click()
    page.get_by_label("Change a setting").select_option("texts")
    amend = page.locator("#given")
    expect(amend.get_by_label("The usual text")).to_have_value("join.start")
    amend.get_by_label("Your words").fill("Anfangen")
    page.get_by_label("Why").fill("Shorter")
    page.get_by_role("button", name="Save as a new version").click()
    told(page, "Saved as version 2.")
    assert studies.get_study(store, study.id).spec.texts == {"join.start": "Anfangen"}

    page.goto(f"{server.url}/studio/new")
    page.locator("#from-file").set_input_files(download.value.path())
    page.get_by_role("button", name="2 Question").click()
    page.get_by_text("More: Words").click()
    expect(texts.get_by_label("Your words")).to_have_value('Los "jetzt"')
    expect(classes.get_by_label("Name of the class")).to_have_value("anchor")


def test_a_setting_is_changed_in_a_field_of_its_kind(page, server, store, new_study) -> None:
    study = new_study(Task.RECOGNITION, "convnet8", name="Amended")
    page.goto(f"{server.url}/studio/overview?study={study.id}")
    saved = page.get_by_role("button", name="Save as a new version")

    def change(setting: str) -> None:
        page.locator("summary", has_text="Protocol").click()
        page.get_by_label("Change a setting").select_option(setting)
        page.get_by_label("Why").fill("A try")

    def spec():
        return studies.get_study(store, study.id).spec

    change("view")
    page.get_by_label("View", exact=True).select_option("Squares: pixels stay squares")
    saved.click()
    told(page, "Saved as version 2.")
    assert spec().view == "squares"
    change("check")
    page.get_by_label("Ask about the instructions").check()
    saved.click()
    told(page, "Saved as version 3.")
    assert spec().check
    change("image_scale")
    scale = page.locator("#given input")
    for wrong in ("99", ""):
        scale.fill(wrong)
        saved.click()
        assert scale.evaluate("field => !field.validity.valid && field === document.activeElement")
    scale.fill("8")
    saved.click()
    told(page, "Saved as version 4.")
    assert spec().image_scale == 8

    change("image_scale")
    page.get_by_label("Why").fill(" ")
    saved.click()
    expect(page.get_by_label("Why")).to_be_focused()
    page.get_by_label("Why").fill("Again")
    saved.click()
    expect(scale).to_be_focused()
    expect(scale).to_have_attribute("aria-invalid", "true")
    expect(scale).to_have_accessible_description(
        "Nothing would change: the study has these settings already."
    )
    scale.fill("9")
    saved.click()
    told(page, "Saved as version 5.")
    assert spec().image_scale == 9


def test_a_problem_stands_by_its_step_and_gold_items_are_pasted(page, server, store) -> None:
    choose(page, "convnet8")
    page.get_by_role("button", name="3 People").click()
    page.get_by_text("More: Attention checks").click()
    page.get_by_label("Gold items", exact=True).fill("0.1")
    (image, *_) = read_set(server.data / "sets" / "convnet8").images
    answers = page.get_by_label("Answers of gold items")
    answers.fill(f"model\timage_id\tanswer\nnobody\t{image.image_id}\tnone")
    page.get_by_role("button", name="4 Review").click()
    page.get_by_label("Name", exact=True).fill("With gold")
    page.get_by_role("button", name="Create study").click()
    expect(page.get_by_role("alert")).to_contain_text("Answers of gold items, line 2")
    expect(page.get_by_role("button", name="3 People")).to_have_attribute("aria-current", "step")
    answers.fill(f"model\timage_id\tanswer\nconvnet8\t{image.image_id}\tnone")
    page.get_by_role("button", name="4 Review").click()
    page.get_by_role("button", name="Create study").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("With gold")
    (study,) = (one for one in studies.list_studies(store) if one.name == "With gold")
    assert (study.spec.gold_rate, study.n_items) == (0.1, 3)


def test_answers_in_a_preview_are_never_votes(page, server, store, new_study) -> None:
    study = new_study(Task.RECOGNITION, "convnet8", name="Tried")
    sent = []
    page.on("request", lambda one: sent.append((one.method, one.url)))
    page.goto(f"{server.url}/studio/overview?study={study.id}")
    page.get_by_role("link", name="Open as annotator").click()
    expect(page.get_by_role("status").filter(has_text="nothing is kept")).to_be_visible()
    for left in range(3, -1, -1):
        expect(page.locator(".sl-pictures img, .sl-pictures canvas").first).to_be_visible()
        page.keyboard.press("1")
        expect(page.locator(".sl-count")).to_contain_text(re.compile(f"{4 - left} of 4|All"))
    assert {method for method, _ in sent} == {"GET"}
    assert not [url for _, url in sent if "/api/" in url]
    assert studies.progress(store, study.id).annotators == []


def test_a_study_is_renamed_and_deleted_by_typing_its_name_as_it_is_shown(
    page, server, store, new_study
) -> None:
    study = new_study(Task.PAIR, "convnet8", name="Here")
    page.goto(f"{server.url}/studio/overview?study={study.id}")
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Two  spaces")
    page.keyboard.press("Enter")
    told(page, "Renamed to Two spaces")
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("Two")
    expect(dialog.get_by_role("button", name="Delete it")).to_be_disabled()
    dialog.get_by_role("textbox").fill("Two spaces")
    dialog.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/studio/")
    told(page, "Deleted. The backup is ")
    with pytest.raises(NotFoundError):
        studies.get_study(store, study.id)


def test_a_list_stays_where_it_was_scrolled_when_more_people_come(
    page, server, store, new_study
) -> None:
    study = new_study()
    for n in range(15):
        studies.join(store, study.token, f"Person {n:02}")
    page.goto(f"{server.url}/studio/overview?study={study.id}")
    people = page.locator(".ov-people .st-scroll")
    assert people.evaluate("(list) => { list.scrollTop = 40; return list.scrollTop; }") == 40
    studies.join(store, study.token, "Zoe")
    expect(people).to_contain_text("Zoe")
    assert people.evaluate("(list) => list.scrollTop") == 40


def test_items_are_looked_through_by_keys(page, server, store, new_study) -> None:
    study = new_study(Task.RECOGNITION, "convnet8", name="Seen", votes_per_item=1)
    answer_all(store, studies.join(store, study.token, "Ada").annotator)
    page.goto(f"{server.url}/studio/items?study={study.id}")
    expect(page.get_by_role("status").first).to_contain_text("4 items: 4 not recognised.")
    page.get_by_label("Answered by").select_option("Ada")
    page.wait_for_url("**by=Ada*")
    expect(page.locator("tbody tr")).to_have_count(4)
    page.locator("tbody a").first.click()
    expect(page.locator(".it-pages")).to_contain_text("1 of 4")
    expect(page.get_by_role("img", name="Original")).to_be_visible()
    page.wait_for_load_state("domcontentloaded")  # keys are heard once the script has run
    page.keyboard.press("ArrowRight")
    expect(page.locator(".it-pages")).to_contain_text("2 of 4")
    page.wait_for_load_state("domcontentloaded")
    page.keyboard.press("Escape")
    expect(page.locator("tbody tr")).to_have_count(4)
    assert "by=Ada" in page.url


def test_a_study_starts_from_a_file_and_is_duplicated(page, server, store) -> None:
    page.get_by_role("button", name="2 Question").click()
    page.get_by_role("radio", name="Pair").check()  # what was filled in before goes
    page.get_by_role("button", name="1 Pictures").click()
    folder = server.data / "sets" / "convnet8"
    content = f"name: Filed\ntask: recognition\nlist_size: 7\npeople: 9\nsets: ['{folder}']\n"
    file = {"name": "study.yaml", "mimeType": "text/yaml", "buffer": content.encode()}
    page.locator("#from-file").set_input_files(file)
    told(page, "Filled in from study.yaml")
    expect(page.get_by_role("checkbox", name="convnet8")).to_be_checked()
    expect(page.locator("#in-short")).to_contain_text("1 set: 4 reconstructions")
    page.get_by_role("button", name="2 Question").click()
    expect(page.get_by_label("Candidates per item")).to_have_value("7")
    page.get_by_role("button", name="4 Review").click()
    expect(page.locator('[data-said="review"]')).to_contain_text("9 are expected")
    page.get_by_role("button", name="Create study").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Filed")
    page.locator("summary", has_text="More").click()
    page.get_by_role("link", name="Duplicate").click()
    expect(page.get_by_role("status").first).to_contain_text("Filled in from Filed.")
    expect(page.get_by_role("checkbox", name="convnet8")).to_be_checked()
    page.get_by_role("button", name="4 Review").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Filed (copy)")
    broken = {**file, "buffer": b"votes: 3"}
    page.locator("#from-file").set_input_files(broken)
    expect(page.get_by_role("alert")).to_contain_text("no setting 'votes'")
