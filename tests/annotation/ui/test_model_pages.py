"""A model on the pages of a study: begun and cancelled on Overview, beside people on Results."""

import pytest
from chat_server import KEY, Said, first_word, serving
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import until
from study_factory import let_answer, of_convnet8

from annotation.study import vlm
from annotation.study.exports import export_votes
from annotation.study.labelling import get_study
from annotation.ui import overview_pages, results

MODEL = "toy-vl"


@pytest.fixture
def client(context, monkeypatch):
    monkeypatch.setattr(vlm, "SIDE", 24)
    app = FastAPI()
    app.include_router(overview_pages.router(context))
    app.include_router(results.router(context))
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def made(make_study):
    return make_study("by a model", voter=MODEL, votes_per_item=3, seed=5)


def now_of(client, study):
    return client.get(f"/studio/overview?study={study.id}").text


def test_a_run_is_begun_and_followed_on_the_page(client, store, made, monkeypatch):
    with serving(first_word) as server:
        monkeypatch.setenv("SEMSIM_VLM_URL", server.url)
        monkeypatch.setenv("SEMSIM_VLM_KEY", KEY)
        assert "Let it answer" in now_of(client, made)
        asked = {"annotators": "2", "calls": "", "money": "", "price_in": ""}
        reply = client.post(f"/studio/overview/{made.id}/model", json=asked)
        assert reply.status_code == 200, reply.text
        until(lambda: "16 of 16 votes" in now_of(client, made), 20)
        until(lambda: "Let it answer" in now_of(client, made), 20)
    page = now_of(client, made)
    assert f"votes of {MODEL}" in page
    assert f"by 2 draws of {MODEL}" in page
    assert KEY not in page
    assert server.url not in page


def test_a_run_is_cancelled_and_only_one_goes_on(client, made, monkeypatch):
    with serving(lambda a: Said(status=429, headers={"Retry-After": "300"})) as server:
        monkeypatch.setenv("SEMSIM_VLM_URL", server.url)
        monkeypatch.setenv("SEMSIM_VLM_KEY", KEY)
        begin = f"/studio/overview/{made.id}/model"
        assert client.post(begin, json={}).status_code == 200
        until(lambda: server.asked, 10)
        assert "Cancel" in now_of(client, made)
        assert client.post(begin, json={}).status_code >= 400
        client.post(f"/studio/overview/{made.id}/cancel", json={})
        until(lambda: "it was cancelled" in now_of(client, made), 10)
        assert len(server.asked) == 1


def test_the_address_is_the_server_s_alone(client, made, monkeypatch):
    monkeypatch.delenv("SEMSIM_VLM_URL", raising=False)
    with serving(first_word) as server:
        asked = {"base_url": server.url, "address": server.url}
        reply = client.post(f"/studio/overview/{made.id}/model", json=asked)
    assert reply.status_code >= 400
    assert not server.asked


@pytest.mark.parametrize(
    "asked", [{"calls": "0"}, {"calls": "x"}, {"money": "-1"}, {"money": "nan"}, {"money": "1"},
              {"annotators": "4"}]
)  # fmt: skip
def test_a_field_that_cannot_be_is_refused(client, made, monkeypatch, asked):
    monkeypatch.setenv("SEMSIM_VLM_URL", "http://127.0.0.1:9/v1")
    reply = client.post(f"/studio/overview/{made.id}/model", json=asked)
    assert reply.status_code >= 400
    assert "Let it answer" in now_of(client, made)


def test_a_study_of_people_has_no_such_card(client, make_study):
    assert "Let it answer" not in now_of(client, make_study("people"))
    assert "Let it answer" not in now_of(client, make_study("jury", simulated=True))


def test_results_show_the_model_beside_people_of_the_same_pictures(
    client, store, context, make_study, made
):
    page = client.get(f"/studio/results?study={made.id}&tab=beside").text
    assert "have the same pictures yet" in page
    people = make_study("of people", votes_per_item=3, seed=5)
    let_answer(store, context.images, people, of_convnet8)
    with serving(first_word) as server:
        endpoint = vlm.Endpoint(address=server.url, model=MODEL, key=KEY)
        vlm.Run(store=store, study=made, images=context.images, endpoint=endpoint, n_annotators=3)()
    for study in (people, made):
        page = client.get(f"/studio/results?study={study.id}&tab=beside").text
        assert f"{MODEL} beside of people" in page
        assert "fewer than 10 shared items" in page
        table = client.get(f"/studio/results/{study.id}/beside.csv").text
        assert f"model:{MODEL}" in table
    shares = client.get(f"/studio/results?study={made.id}").text
    assert f"the vision-language model {MODEL}, not from people" in shares
    csv = client.get(f"/studio/results/{made.id}/rates.csv").text
    assert f"model:{MODEL}" in csv.splitlines()[1]
    assert not export_votes(store, people.id)["simulated"].any()
    assert get_study(store, people.id).spec.voters == "people"
