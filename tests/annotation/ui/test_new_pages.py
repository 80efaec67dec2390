"""The page of a new study and what it asks the server, without a browser."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_results import NO_IMPORTS
from PIL import Image
from study_factory import CLASSES, GOOD, GUESSING, SURE, write_run, write_set

from annotation.design.candidates import RANDOM_LISTS
from annotation.spec import StudySpec
from annotation.study.labelling import get_study, list_studies
from annotation.study.protocols import protocol_versions
from annotation.study.study_file import read_text
from annotation.ui import StudyContext, new_pages, new_study, preview_pages


@pytest.fixture
def context(store, images, tmp_path):
    """An empty store; two sets of one data set, one of another, and what is no set at all."""
    sets = {
        model: write_set(tmp_path / "sets" / model, model=model, probabilities=SURE)
        for model in ("one", "two")
    }
    sets["other"] = write_set(tmp_path / "sets" / "other", model="other", dataset="faces")
    (tmp_path / "sets" / "broken").mkdir()
    sets["broken"] = tmp_path / "sets" / "broken"
    return StudyContext(
        store=store, images=images, find_sets=lambda: list(sets.items()), imports=NO_IMPORTS
    )


@pytest.fixture
def client(context):
    return client_of(context)


def client_of(context):
    app = FastAPI()
    app.include_router(new_pages.router(replace(context, account=lambda request: "eva")))
    app.include_router(preview_pages.router(context))
    return TestClient(app)


@pytest.fixture
def draft(context):
    """What the page sends once two sets are chosen."""
    names = [str(folder) for _, folder in context.find_sets()]
    return {
        "name": "Made </script>",
        "task": "recognition",
        "list_size": "4",
        "sets": names[:2],
        "people": 5,
        "wage": 12,
        "gold": "",
    }


def look(client, draft):
    return client.post("/studio/new/look", json=draft).json()


def test_every_setting_that_a_page_can_make_is_asked_for_once():
    asked = [
        one.name for step in new_study.steps().values() for group in step.values() for one in group
    ]
    assert len(set(asked)) == len(asked)
    assert set(vars(StudySpec(name="x", task="pair"))) - set(asked) == {"task", "simulated"}


def test_sets_are_cards_with_pictures(client):
    text = client.get("/studio/new").text
    assert text.count('class="st-card nw-set"') == 4
    assert "cannot be read" in text
    addresses = [part.split('"')[0] for part in text.split('img src="')[1:]]
    assert len(addresses) == 3
    picture = client.get(addresses[0])
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(picture.content)).size == (4 * 6 + 3 * 4, 6)
    assert client.get("/studio/new/strip/none").status_code == 404


def test_a_card_says_how_good_its_target_was_and_warns_of_one_at_chance(client, context):
    for (model, folder), target in zip(context.find_sets(), (GOOD, GUESSING), strict=False):
        write_run(folder, model=model, target=target)
    cards = client.get("/studio/new").text.split('class="st-card nw-set"')[1:]
    good, guessing, unknown, _ = cards
    assert "Target 71% right (chance 2%)" in good
    assert "Target 2% right: at chance (2%)" in guessing
    assert ["at chance</span>" in card for card in cards] == [False, True, False, False]
    assert "Target" not in unknown


def test_a_study_in_the_making_is_said_in_sentences(client, draft):
    told = look(client, draft)
    assert told["problems"] == {}
    said = {step: " ".join(lines) for step, lines in told["said"].items()}
    assert "2 sets: 8 reconstructions of 4 originals, data set symbols" in said["pictures"]
    assert "8 items × 5 votes = 40 votes" in said["people"]
    assert "At 12 an hour that costs about 0.49." in said["people"]
    assert "(chance 25.0%)" in said["people"]
    assert "comes with up to 4 words" in said["review"]
    never = "No blind repeat will come: one comes 50 votes after its item at least, and there are 8"
    assert never in said["review"]
    assert "5% blind repeats" not in said["review"]
    more = look(client, {**draft, "list_size": "20"})["said"]["review"]
    assert re.search(r"comes with up to (\d+) words", " ".join(more))[1] == str(len(CLASSES))
    soon = " ".join(look(client, {**draft, "repeat_lag": "3"})["said"]["review"])
    assert "5% blind repeats" in soon
    assert "No blind repeat" not in soon
    assert "An early end" not in said["people"]
    ruled = " ".join(look(client, {**draft, "quiet_looks": "3"})["said"]["people"])
    assert "An early end: In 200 random orders of 42,000 votes of real people, 3 quiet" in ruled
    assert told["unusual"] == [["Candidates per item", "4", "20"]]
    assert told["preview"]["study"]["question"] == "What do you see in the picture?"
    for item in told["preview"]["items"]:
        assert len(item["candidates"]) == 4
        (address,) = item["images"]
        assert client.get(address).status_code == 200
        assert client.get(address.replace("reconstruction", "run.json")).status_code == 404


def test_what_never_counts_takes_time_and_money_too(client, draft):
    trials = {"set_aside": "1", "catch_rate": "0.5", "practice": "2"}
    said = " ".join(look(client, {**draft, **trials})["said"]["people"])
    # Of six items with five votes each; half as many catch trials, and ten that are practice.
    assert "30 votes and about 25 answers that never count: about" in said
    assert "At 12 an hour that costs about 0.68." in said
    gold = {"gold_rate": "0.5", "gold": "model\timage_id\tanswer\none\timage-000\tCat"}
    said = " ".join(look(client, {**draft, **gold})["said"]["people"])
    assert "40 votes and about 5 answers that never count: about" in said


def test_that_lists_are_random_or_the_likeliest_is_said_by_the_question(
    client, draft, context, monkeypatch
):
    def by_the_question(**changes):
        return look(client, {**draft, **changes})["said"]["question"]

    unranked = [str(folder) for label, folder in context.find_sets() if label == "other"]
    random = f"{RANDOM_LISTS} (4 of 4 lists.)"
    assert random in by_the_question(sets=unranked)
    assert not any(RANDOM_LISTS in line for line in by_the_question())
    assert new_study.TOP_LISTS in by_the_question(distractors="top")
    assert new_study.TOP_LISTS not in by_the_question(distractors="balanced")
    monkeypatch.setattr(new_study, "MOST_DRAWN", 0)  # too many lists to draw meanwhile
    assert by_the_question(sets=unranked) == [RANDOM_LISTS]


@pytest.mark.parametrize("asked", ["look", "create"])
def test_what_people_are_asked_must_be_chosen(client, draft, asked):
    unsaid = {name: value for name, value in draft.items() if name != "task"}
    for sent in ({}, unsaid):
        told = client.post(f"/studio/new/{asked}", json=sent)
        assert told.status_code == 200
        assert told.json()["problems"]["question"] == ["Choose what people are asked."]


def test_too_few_people_are_told(client, draft):
    told = look(client, {**draft, "people": 3})
    assert told["enough"] is False
    assert "With fewer than 5 people" in " ".join(told["said"]["people"])


@pytest.mark.parametrize(
    ("wrong", "step", "fields"),
    [
        ({"list_size": "1"}, "question", ["list_size"]),
        ({"votes_per_item": "0"}, "people", ["votes_per_item"]),
        ({"practice": "2"}, "people", ["practice"]),
        ({"practice": "2", "catch_rate": "0.1"}, "people", ["practice"]),
        ({"set_aside": "9"}, "pictures", []),
        ({"sets": ["/etc"]}, "pictures", []),
        ({"completion_url": "http://example.org"}, "people", ["completion_url"]),
    ],
)
def test_a_problem_stands_by_the_step_and_the_field_it_belongs_to(
    client, draft, wrong, step, fields
):
    made = client.post("/studio/new/create", json={**draft, **wrong}).json()
    for told in (look(client, {**draft, **wrong}), made):
        assert list(told["problems"]) == [step]
        assert list(told["fields"].values()) == fields
        assert set(told["fields"]) <= set(told["problems"][step])


def test_what_a_jury_has_seen_since_is_known(client, draft, context):
    (_, folder), *_ = context.find_sets()
    seen = folder / "jury.parquet"
    content = seen.read_bytes()
    seen.unlink()
    simulated = {**draft, "sets": draft["sets"][:1], "simulated": "yes"}
    assert (
        "lacks the simulated annotators' answers"
        in look(client, simulated)["problems"]["pictures"][0]
    )
    seen.write_bytes(content)
    assert look(client, simulated)["problems"] == {}


def test_sets_of_different_data_sets_are_told_apart_before_anything_is_made(client, draft, context):
    every = [str(folder) for label, folder in context.find_sets() if label != "broken"]
    assert (
        "expected one data set" in look(client, {**draft, "sets": every})["problems"]["pictures"][0]
    )


def test_a_study_is_made_with_the_name_of_the_account(client, draft, store):
    told = client.post("/studio/new/create", json=draft).json()
    study = get_study(store, told["study"])
    assert (study.name, study.spec.list_size, study.n_items) == ("Made </script>", 4, 8)
    assert protocol_versions(store, study.id)[0].by == "eva"


def test_without_a_name_or_a_set_nothing_is_made(client, draft, store):
    refused = client.post("/studio/new/create", json={**draft, "name": " ", "sets": []}).json()
    assert set(refused["problems"]) == {"review", "pictures"}
    assert refused["fields"] == {refused["problems"]["review"][0]: "name"}
    assert list_studies(store) == []


def test_what_means_nothing_in_a_task_is_not_used(client, draft, store):
    told = client.post("/studio/new/create", json={**draft, "task": "pair", "decoy_rate": "0.5"})
    made = get_study(store, told.json()["study"])
    assert (made.spec.decoy_rate, made.spec.list_size) == (0.5, 20)


def test_gold_answers_are_checked_with_the_people(client, draft):
    wrong = {**draft, "gold_rate": "0.1", "gold": "model\timage_id\tanswer\nnobody\tx\tnone"}
    told = client.post("/studio/new/create", json=wrong).json()
    assert "nobody" in told["problems"]["people"][0]
    assert set(told["fields"].values()) == {"gold"}


def test_what_is_wrong_with_pictures_stands_by_them_wherever_they_lie(draft, context, tmp_path):
    old = copytree(tmp_path / "sets" / "one", tmp_path / "my old ones")
    next((old / "reconstructions").glob("*.png")).unlink()
    client = client_of(replace(context, find_sets=lambda: [("one", old)]))
    asked = {**draft, "sets": [str(old)]}
    told = client.post("/studio/new/create", json=asked).json()["problems"]
    assert list(told) == ["pictures"]
    wrong = {"gold_rate": "0.1", "gold": "model,answer\nnobody,none"}
    both = client.post("/studio/new/create", json={**asked, **wrong}).json()["problems"]
    assert both["pictures"] == told["pictures"]
    assert "image_id" in both["people"][0]


def test_a_draft_is_saved_and_read_again(client, draft):
    text = client.post("/studio/new/file", json=draft).text
    assert read_text(text).spec().list_size == 4
    back = client.post("/studio/new/read", json={"text": text}).json()
    assert (back["sets"], back["list_size"], back["people"]) == (draft["sets"], "4", 5)
    refused = client.post("/studio/new/read", json={"text": "sets: [gone]\nname: x"})
    assert (refused.status_code, "Not on this machine" in refused.json()["error"]) == (422, True)


def test_a_study_is_duplicated_into_a_draft(client, draft):
    made = client.post("/studio/new/create", json=draft).json()["study"]
    text = client.get("/studio/new", params={"duplicate": made}).text
    start = json.loads(text.split('id="new-data">')[1].split("</script>")[0])["start"]
    assert (start["name"], start["sets"], start["list_size"]) == (
        "Made </script> (copy)",
        draft["sets"],
        "4",
    )
    assert "Filled in from Made &lt;/script&gt;." in text


def test_a_duplicate_says_what_of_the_study_it_cannot_have(client, draft, context):
    gold = "model,image_id,answer\none,image-000,Cat"
    asked = {**draft, "password": "open sesame", "gold_rate": "0.1", "gold": gold}
    made = client.post("/studio/new/create", json=asked).json()["study"]
    text = client.get("/studio/new", params={"duplicate": made}).text
    assert "Give it a password of its own" in text
    assert "Add the answers of its gold items." in text
    _, said = new_pages.file_of(context, get_study(context.store, made))
    assert "password" in said


def test_a_duplicate_begins_with_the_very_sets_that_the_study_was_made_of(
    client, draft, context, tmp_path
):
    study = get_study(context.store, client.post("/studio/new/create", json=draft).json()["study"])
    elsewhere = tmp_path / "elsewhere"
    again = write_set(elsewhere / "again", model="one", noise=90)
    otherwise = write_set(elsewhere / "otherwise", model="two")
    write_run(otherwise, model="two", attack={"name": "gradinversion"})

    def file_of(*folders):
        sets = [(folder.name, folder) for folder in folders]
        file, said = new_pages.file_of(replace(context, find_sets=lambda: sets), study)
        return [Path(name).name for name in file.sets], said

    here = [folder for _, folder in context.find_sets()]
    assert file_of(again, otherwise, *here) == (["one", "two"], "")
    assert file_of(otherwise, *here[:1]) == (["one"], " Not on this machine any more: two.")
    copy = Path(copytree(here[0], elsewhere / "copy"))
    said = " Choose the set, as several may be it: one."
    assert file_of(copy, again, *here) == (["two"], said)


def test_a_file_says_all_that_is_not_as_usual_also_where_the_form_begins_otherwise(client, draft):
    pairs = {"text": "name: Pairs\ntask: pair"}
    assert client.post("/studio/new/read", json=pairs).json()["decoy_rate"] == "0.0"


def test_texts_of_a_study_are_read_into_the_form_as_they_are_sent(client, draft, store):
    words = {"recognition.question": "Was ist es?"}
    text = client.post("/studio/new/file", json={**draft, "texts": words}).text
    back = client.post("/studio/new/read", json={"text": text}).json()
    assert json.loads(back["texts"]) == words
    told = client.post("/studio/new/create", json={**draft, "texts": back["texts"]}).json()
    assert get_study(store, told["study"]).spec.texts == words
    wrong = look(client, {**draft, "texts": {"nothing": "x"}})
    assert "no texts called 'nothing'" in wrong["problems"]["question"][0]


def test_no_limit_is_given_as_0(client, draft, store):
    told = client.post("/studio/new/create", json={**draft, "max_views": "0"}).json()
    assert get_study(store, told["study"]).spec.max_views is None


def test_a_preview_has_the_items_of_the_study_and_no_way_to_vote(client, draft, context):
    study = client.post("/studio/new/create", json=draft).json()["study"]
    told = client.get("/studio/preview/items", params={"study": study}).json()
    assert len(told["items"]) == 8
    for item in told["items"]:
        assert client.get(item["images"][0]).headers["content-type"] == "image/png"
    assert "nothing is kept" in client.get("/studio/preview", params={"study": study}).text
    reading = [route.methods for route in preview_pages.router(context).routes]
    assert reading == [{"GET"}] * 3
    assert client.get(f"/studio/seen/{study}/{'0' * 64}").status_code == 404


def test_a_preview_without_a_name_is_of_the_study_in_hand_or_says_there_is_none(client, draft):
    empty = client.get("/studio/preview").text
    assert "There is no study yet." in empty
    assert 'data-kind="primary" href="/studio/new"' in empty
    assert "semsim-labeller" not in empty
    assert "semsim-labeller" in client.get("/studio/preview?draft").text
    study = client.post("/studio/new/create", json=draft).json()["study"]
    led = client.get("/studio/preview", follow_redirects=False)
    assert (led.status_code, led.headers["location"]) == (303, f"/studio/preview?study={study}")
    assert "semsim-labeller" in client.get("/studio/preview").text


@pytest.mark.parametrize("ask", ["one set", "its name", "an import"])
def test_another_page_leads_here_with_sets_chosen(client, draft, ask):
    one, other = draft["sets"]
    asked = {
        "one set": [("set", one), ("set", other)],
        "its name": [("set", "one"), ("set", "two")],
        "an import": [("sets", "sets"), ("task", "pair")],
    }[ask]
    text = client.get("/studio/new", params=asked).text
    start = json.loads(text.split('id="new-data">')[1].split("</script>")[0])["start"]
    assert set(draft["sets"]) <= set(start["sets"])
    assert start.get("task") == ("pair" if ask == "an import" else None)
    offered = re.findall(r'name="set" value="([^"]+)"', text)
    assert set(offered[: len(start["sets"])]) == set(start["sets"])  # seen without scrolling
    last = offered[-1]
    only = client.get("/studio/new", params=[("set", last)]).text
    assert re.search(r'name="set" value="([^"]+)"', only)[1] == last
    gone = client.get("/studio/new", params={"set": "gone"}).text
    assert "are not there any more" in gone
