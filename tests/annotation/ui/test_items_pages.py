"""The items of a study: the table with its filters, and what was said of one."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from study_factory import START, answer_all, answer_to, joined, let_answer, of_convnet8

from annotation.study import labelling
from annotation.study.exports import read_study
from annotation.study.simulate import simulate
from annotation.ui import items_pages
from annotation.ui.items_pages import Filters, items_table, narrowed


@pytest.fixture
def client(context):
    app = FastAPI()
    app.include_router(items_pages.router(context))
    return TestClient(app)


@pytest.fixture
def answered(store, images, make_study):
    """Two of two people recognise one model and none the other; Cleo finds nothing in any."""
    study = make_study(votes_per_item=3)
    let_answer(store, images, study, of_convnet8, names=("Anna", "Ben <b>"))
    return let_answer(store, images, study, lambda one: "none", names=("Cleo",))


def narrowed_by(data, **filters):
    return narrowed(items_table(data), data.votes, Filters(**filters))


def test_a_row_tells_votes_verdict_and_what_was_said(answered):
    table = items_table(answered).set_index(["model", "image_id"])
    seen, unseen = table.loc[("convnet8", "image-000")], table.loc[("resnet20-4", "image-000")]
    assert (seen["n_recognised"], seen["n_votes"], seen["verdict"]) == (2, 3, "recognised")
    assert (unseen["verdict"], unseen["answers"]) == ("not recognised", [("none", 3)])
    assert seen["answers"] == [("Cat", 2), ("none", 1)]
    assert len(seen["shown"]) == 64


def test_every_filter_narrows(answered):
    assert len(narrowed_by(answered)) == 8
    assert set(narrowed_by(answered, model="convnet8")["model"]) == {"convnet8"}
    assert set(narrowed_by(answered, class_name="Cat")["class_name"]) == {"Cat"}
    assert set(narrowed_by(answered, verdict="recognised")["model"]) == {"convnet8"}
    assert set(narrowed_by(answered, split="yes")["model"]) == {"convnet8"}
    assert len(narrowed_by(answered, kind="decoy")) == 0
    assert set(narrowed_by(answered, by="Cleo")["own"]) == {"none"}
    assert len(narrowed_by(answered, by="Nobody")) == 0


def test_where_names_of_originals_decide_rows_go_by_them(store, images, make_study):
    names = {"label_originals": True, "headline": "as-original-named"}
    study = make_study(votes_per_item=3, **names)
    for person in joined(store, study, "Anna", "Ben", "Cleo"):
        while answer_all(store, person, "cow"):
            pass
    table = items_table(read_study(store, study.id, images))
    shown = table[table["kind"] == "reconstruction"]
    assert set(shown["verdict"]) == {"recognised"}
    assert shown["n_recognised"].tolist() == [3] * 8
    assert not shown["split"].any()


def said_where_names_decide(store, images, make_study, said, **settings):
    """A study by the names of originals, of whose originals all say `said[0]`, else `said[1]`."""
    names = {"label_originals": True, "headline": "as-original-named"}
    study = make_study(votes_per_item=3, **names, **settings)
    kinds = read_study(store, study.id, images).stimuli.set_index("item")["kind"]
    for person in joined(store, study, "Anna", "Ben", "Cy"):
        while items := labelling.next_items(store, person, "tab", 100, START):
            for one in items:
                word = said[kinds.get(one.item) != "original"]
                labelling.vote(store, person, answer_to(one.item, word), START)
    return read_study(store, study.id, images)


def test_originals_that_everybody_names_wrongly_are_not_recognised(
    client, store, images, make_study
):
    data = said_where_names_decide(store, images, make_study, ("cow", "cow"))
    table = items_table(data)
    own = table[table["kind"] == "original"].set_index("class_name")
    assert own["n_recognised"].to_dict() == {"Cat": 0, "cow": 3, "star": 0, "sun": 0}
    text = client.get(f"/studio/items/{own.loc['sun', 'item']}").text
    assert "0 of 3 votes recognise it." in text
    assert text.count("<td>no</td>") == 3


def test_nobody_can_recognise_what_has_no_name(client, store, images, make_study):
    data = said_where_names_decide(store, images, make_study, ("none", "cow"))
    table = items_table(data)
    shown = table[table["kind"] == "reconstruction"]
    assert shown["n_recognised"].isna().all()
    assert set(shown["verdict"]) == {"undecided"}
    text = client.get(f"/studio/items/{shown['item'].iloc[0]}").text
    assert "3 votes; its original has no name to recognise it by." in text
    assert "<td>no</td>" not in text
    assert "– of 3" in client.get("/studio/items", params={"kind": "reconstruction"}).text


def test_answers_to_trials_go_by_their_class_where_names_decide(store, images, make_study):
    data = said_where_names_decide(
        store, images, make_study, ("cow", "cow"), catch_rate=0.5, set_aside=2
    )
    trials = data.votes[data.votes["kind"] == "catch"]
    assert len(trials)
    for item, rows in trials.groupby("item"):
        told = [one["recognised"] for one in items_pages.votes_of(data, item)]
        assert told == (rows["class_name"] == "cow").tolist()


def test_without_votes_nothing_is_decided(store, study, images):
    table = items_table(read_study(store, study.id, images))
    assert set(table["verdict"]) == {"no vote"}
    assert not table["split"].any()


def test_a_vote_that_is_missing_leaves_an_item_open(store, images, make_study):
    study = make_study(votes_per_item=3)
    data = let_answer(store, images, study, of_convnet8, names=("Anna",))
    assert set(items_table(data)["verdict"]) == {"undecided"}


def test_what_is_no_reconstruction_has_no_verdict_that_is_open(store, images, make_study):
    study = make_study(task="pair", votes_per_item=3, decoy_rate=0.5)
    data = let_answer(store, images, study, lambda one: "same")
    table = items_table(data)
    told = table.groupby("kind")["verdict"].unique()
    assert {kind: list(found) for kind, found in told.items()} == {
        "decoy": ["not judged"],
        "reconstruction": ["recognised"],
    }
    lead = items_pages.lead(table, table, Filters())
    assert lead == "12 items: 8 recognised, 4 not judged."


def test_the_page_shows_rows_and_keeps_the_filters_on_its_way(client, answered):
    text = client.get("/studio/items", params={"model": "convnet8", "by": "Ben <b>"}).text
    assert "4 items of 8: 4 recognised." in text
    assert text.count("<tr>") == 1 + 4
    assert "Answer of Ben &lt;b&gt;" in text
    assert "model=convnet8&amp;by=Ben+%3Cb%3E" in text
    assert "No item matches these filters." in client.get("/studio/items", params={"by": "x"}).text


def test_long_tables_have_pages(client, answered, monkeypatch):
    monkeypatch.setattr(items_pages, "ROWS", 3)
    last = client.get("/studio/items", params={"page": "3"}).text
    assert "Page 3 of 3" in last
    assert 'rel="next"' not in last
    assert client.get("/studio/items", params={"page": "99"}).text == last
    assert 'rel="prev"' not in client.get("/studio/items", params={"page": "no"}).text


def test_the_page_of_an_item_says_who_said_what(client, answered):
    table = items_table(answered)
    (item,) = table[(table["model"] == "convnet8") & (table["class_name"] == "cow")]["item"]
    text = client.get(f"/studio/items/{item}", params={"split": "yes", "by": "Cleo"}).text
    assert "2 of 3 votes recognise it." in text
    assert text.count("1.5 s") == 3
    assert 'aria-current="true"><td>Cleo</td>' in text
    assert "2 of 4" in text
    assert text.count('rel="prev"') == text.count('rel="next"') == 1
    assert client.get("/studio/items/none").status_code == 404


def test_a_single_vote_is_one(client, store, make_study):
    answer_all(store, joined(store, make_study(votes_per_item=1), "Ada")[0])
    item = client.get("/studio/items").text.split("/studio/items/")[1].split("?")[0]
    assert " of 1 vote recognises it." in client.get(f"/studio/items/{item}").text


def test_simulated_votes_are_said_to_be_and_give_no_verdict_of_people(client, store, make_study):
    study = make_study(simulated=True, votes_per_item=3)
    simulate(store, study.id, 3)
    text = client.get("/studio/items").text
    assert "The votes are simulated: they are no evidence about people." in text
    assert "st-leaked" not in text
    item = text.split("/studio/items/")[1].split("?")[0]
    assert 'data-kind="simulated"' in client.get(f"/studio/items/{item}").text


def test_a_trial_is_marked_and_does_not_count(client, store, images, make_study):
    study = make_study(votes_per_item=1, repeat_rate=0.5, repeat_lag=1)
    (anna,) = joined(store, study, "Anna")
    while answer_all(store, anna):
        pass
    data = read_study(store, study.id, images)
    repeated = data.votes[data.votes["kind"] == "repeat"]
    assert len(repeated) > 0
    item = repeated["item"].iloc[0]
    assert 'data-kind="trial">repeat' in client.get(f"/studio/items/{item}").text
    table = items_table(data)
    assert table.set_index("item").loc[item, "n_votes"] == 1


def test_the_table_is_made_anew_only_when_something_has_happened(store, study, images):
    kept = items_pages.Kept(store, images)
    assert kept.of(study.id)[1] is kept.of(study.id)[1]
    before = kept.of(study.id)[1]
    labelling.join(store, study.token, "Anna")
    assert kept.of(study.id)[1] is not before


def test_without_a_study_the_page_says_what_to_do(client):
    assert 'href="/studio/new"' in client.get("/studio/items").text
