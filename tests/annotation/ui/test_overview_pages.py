"""The overview of a study and what can be done there, without a browser."""

import re
import shutil
from dataclasses import replace
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from study_factory import GOOD, GUESSING, answer_all, joined, write_run, write_set

from annotation.design.candidates import RANDOM_LISTS
from annotation.domain import StudyStatus
from annotation.errors import StudyError
from annotation.spec import SETTINGS, StudySpec, Task
from annotation.study.create import create_study
from annotation.study.exports import facts_of_lists
from annotation.study.labelling import get_study, list_studies
from annotation.study.protocols import AMENDABLE, problems_of, protocol_versions
from annotation.study.study_file import read_text
from annotation.ui import overview_pages
from annotation.web.downloads import DOWNLOADS


def client_of(context):
    app = FastAPI()
    app.include_router(overview_pages.router(replace(context, account=lambda request: "eva")))
    return TestClient(app)


@pytest.fixture
def client(context):
    return client_of(context)


def overview(client, study):
    return client.get("/studio/overview", params={"study": study.id}).text


def test_without_a_study_the_page_says_how_to_get_one(client):
    text = client.get("/studio/overview").text
    assert 'href="/studio/new"' in text
    assert 'href="/studio/pictures"' in text


def test_what_is_going_on_is_said_with_and_without_a_study(context, make_study):
    app = FastAPI()
    noted = replace(context, note=lambda: "Being <made>.")
    app.include_router(overview_pages.router(noted))
    told = [TestClient(app).get("/studio/overview").text]
    make_study()
    told.append(TestClient(app).get("/studio/overview").text)
    assert all("Being &lt;made&gt;." in text for text in told)


def test_the_link_is_a_link_and_the_preview_another(client, study):
    text = overview(client, study)
    assert f'href="http://testserver/join/{study.token}"' in text
    assert f'href="/studio/preview?study={study.id}"' in text
    assert "Nobody has joined yet; 16 votes are wanted." in text


def test_a_link_that_opens_here_alone_says_so_and_what_lets_others_in(client, study):
    asked = {"params": {"study": study.id}}
    for host, told in (("127.0.0.1:7860", ""), ("localhost:8110", " PORT=8110"), ("lab", None)):
        text = (
            TestClient(client.app, base_url=f"http://{host}").get("/studio/overview", **asked).text
        )
        assert f'href="http://{host}/join/{study.token}"' in text
        assert (f"<code>make run HOST=0.0.0.0{told}</code>" in text) == (told is not None)
        for words in (
            "Only this computer can open this link.</strong> To let others in",
            'data-done="Copied. Only this computer can open it."',
        ):
            assert (words in text) == (told is not None)
        assert ("Everybody with the link can take part." in text) == (told is None)


def test_a_study_of_another_account_says_whose_before_it_is_ended(context, store):
    """Of eva, who asks, of ada, and of no account."""
    client, (_, folder) = client_of(context), context.find_sets()[0]
    for maker, asks in (("ada", "ada made this study. "), ("eva", ""), (None, "")):
        made = create_study(
            store.by(maker), StudySpec(name="s", task="pair"), [folder], context.images
        )
        text = overview(client, made)
        assert f'data-whose="{asks}"' in text
        assert (f"UTC by {maker}" in text) == (maker is not None)


def test_how_far_it_is_stands_in_a_sentence_and_by_item(client, store, study):
    answer_all(store, *joined(store, study, "Anna & Ben"))
    text = client.get("/studio/overview", params={"study": study.id}).text
    assert "8 of 16 votes are there (50%), by 1 person; last activity" in text
    assert "Anna &amp; Ben" in text
    joined(store, study, "Cleo")
    text = client.get("/studio/overview", params={"study": study.id}).text
    assert "by 1 person (2 have joined); last activity" in text
    rows = overview_pages.coverage(replace_coverage(0, 8, 0))
    assert rows == [("no vote yet", 0, 0), ("1 vote", 8, 100), ("2 votes", 0, 0)]


def replace_coverage(*items):
    from annotation.domain import StudyProgress

    return StudyProgress(n_items=sum(items), coverage=list(items), annotators=[])


def test_that_lists_are_random_stands_by_the_protocol(client, store, images, tmp_path):
    unranked = write_set(tmp_path / "unranked")
    study = create_study(
        store, StudySpec(name="s", task="recognition", list_size=4), [unranked], images
    )
    said = facts_of_lists(store, study.id).said
    assert said[0].startswith(RANDOM_LISTS)
    text = unescape(overview(client, study))
    assert all(sentence in text for sentence in said)


def test_how_good_each_target_model_was_stands_by_its_name(client, store, images, tmp_path):
    for model, target in (("one", GOOD), ("two", GUESSING), ("three", None)):
        write_run(write_set(tmp_path / model, model=model), model=model, target=target)
    spec = StudySpec(name="s", task="recognition", list_size=4)
    folders = [tmp_path / model for model in ("one", "two", "three")]
    text = unescape(overview(client, create_study(store, spec, folders, images)))
    said = re.findall(r'<li>(one|two|three) <span class="st-note">([^<]*)</span></li>', text)
    assert dict(said) == {
        "one": "71% right (chance 2%)",
        "two": "2% right: at chance (2%)",
        "three": "not kept",
    }
    assert "1 target model at chance" in text


def test_every_file_is_in_the_menu_with_a_sentence(client, study):
    text = overview(client, study)
    for file, one in DOWNLOADS.items():
        assert f'href="/studio/download/{study.id}/{file}"' in text
        assert one.sentence in text
        assert one.sentence.endswith(".")


def test_a_study_is_paused_closed_and_reopened(client, store, study):
    for status in (StudyStatus.PAUSED, StudyStatus.CLOSED, StudyStatus.RUNNING):
        told = client.post(f"/studio/overview/{study.id}/status", json={"status": status})
        assert (told.status_code, get_study(store, study.id).status) == (200, status)
    refused = client.post(f"/studio/overview/{study.id}/status", json={"status": "deleted"})
    assert (refused.status_code, get_study(store, study.id).status) == (422, StudyStatus.RUNNING)


def test_a_study_is_renamed(client, store, study):
    client.post(f"/studio/overview/{study.id}/rename", json={"name": "Other"})
    assert get_study(store, study.id).name == "Other"


def test_a_study_is_deleted_by_its_name_only(client, store, study, tmp_path):
    address = f"/studio/overview/{study.id}/delete"
    refused = client.post(address, json={"name": "no"})
    assert (refused.status_code, len(list_studies(store))) == (422, 1)
    told = client.post(address, json={"name": study.name}).json()
    assert (tmp_path / "backups" / told["backup"]).is_file()
    assert list_studies(store) == []
    assert client.post(address, json={"name": study.name}).status_code == 404


def test_a_setting_changes_with_a_reason_and_the_account(client, store, study):
    address = f"/studio/overview/{study.id}/amend"
    changed = {"setting": "min_lag", "value": "3", "why": ""}
    assert client.post(address, json=changed).status_code == 422
    assert client.post(address, json={**changed, "setting": ""}).status_code == 422
    told = client.post(address, json={**changed, "why": "too close"}).json()
    last = protocol_versions(store, study.id)[-1]
    assert (told["version"], last.by, last.why, last.spec.min_lag) == (2, "eva", "too close", 3)
    assert "min_lag = 3" in overview(client, study)


def drawn(text):
    """The field of each setting that may change, by name: its HTML."""
    return dict(re.findall(r'<template data-field="(\w+)">(.*?)</template>', text, re.S))


def test_each_setting_that_may_change_has_a_field_of_its_own_kind(client, study):
    text = overview(client, study)
    fields = drawn(text)
    assert set(fields) == AMENDABLE
    assert set(re.findall(r'<option value="(\w+)">', text.partition("<template")[0])) == AMENDABLE
    for name, inside in fields.items():
        assert f'data-setting="{name}"' in inside
    assert re.findall(r'<option value="([\w-]+)"( selected)?>', fields["view"]) == [
        ("smooth-and-small", " selected"),
        ("smooth", ""),
        ("squares", ""),
    ]
    scale, check = fields["image_scale"], fields["check"]
    assert re.search(r'type="number" [^>]*value="0" min="0" max="64" step="1" required>', scale)
    assert "required" not in fields["max_views"]  # empty is no limit
    assert 'type="checkbox"' in check
    assert "checked" not in check
    assert "<textarea" in fields["consent"]


def test_a_field_begins_with_what_its_setting_is_now(client, store, study):
    address = f"/studio/overview/{study.id}/amend"
    for name, value in (("view", "squares"), ("check", True), ("max_views", "3")):
        sent = {"setting": name, "value": value, "why": "a try"}
        assert client.post(address, json=sent).status_code == 200
    spec = get_study(store, study.id).spec
    assert (spec.view, spec.check, spec.max_views) == ("squares", True, 3)
    fields = drawn(overview(client, study))
    assert '<option value="squares" selected>' in fields["view"]
    assert " checked" in fields["check"]
    assert 'value="3"' in fields["max_views"]
    for name, value, says in (
        ("view", "round", "must be one of squares, smooth, smooth-and-small"),
        ("image_scale", "65", "must be at most 64"),
        ("min_lag", "", "must be a whole number"),
        ("check", "maybe", "is yes or no"),
    ):
        refused = client.post(address, json={"setting": name, "value": value, "why": "a try"})
        assert refused.status_code == 422
        assert says in refused.json()["error"]


def can_be(**settings):
    """Whether a new study can have these settings."""
    usual = {"name": "s", "task": "recognition", "set_aside": 4}  # catch trials need some
    try:
        return problems_of(StudySpec(**usual | settings)) == []
    except StudyError:
        return False


def test_a_field_takes_what_a_study_can_have_and_no_more():
    numbers = [one for one in SETTINGS.values() if one.widget == "number"]
    for one in (one for one in numbers if one.name in AMENDABLE and not one.empty):
        least, most, step = one.bounds
        kind = float if step < 1 else int
        for end in (least, most) if most is not None else (least,):
            assert can_be(**{one.name: kind(end)})
        for beyond in (least - step, None if most is None else most + step):
            if beyond is not None:
                assert not can_be(**{one.name: kind(beyond)})


def test_the_settings_are_a_file(client, study):
    file = client.get(f"/studio/overview/{study.id}/file")
    assert file.headers["content-disposition"].endswith('.yaml"')
    assert read_text(file.text).spec() == study.spec


def test_the_file_names_the_sets_that_are_still_here(client, context, images):
    sets = [folder for _, folder in context.find_sets()]
    spec = StudySpec(name="One", task=Task.RECOGNITION)
    study = create_study(context.store, spec, sets, images)
    file = read_text(client.get(f"/studio/overview/{study.id}/file").text)
    assert file.sets == tuple(map(str, sets))


def test_the_file_says_which_set_it_cannot_name(client, context, images, tmp_path):
    sets = [folder for _, folder in context.find_sets()]
    study = create_study(context.store, StudySpec(name="Two", task=Task.RECOGNITION), sets, images)
    shutil.copytree(sets[0], tmp_path / "again")
    found = [*context.find_sets(), ("again", tmp_path / "again")]
    twice = client_of(replace(context, find_sets=lambda: found))
    text = twice.get(f"/studio/overview/{study.id}/file").text
    assert text.splitlines()[-1].startswith("# ")
    assert "several may be it" in text
    assert read_text(text).sets == tuple(map(str, sets[1:]))


def test_a_simulated_study_has_no_link(client, make_study):
    text = overview(client, make_study(simulated=True))
    assert "/join/" not in text
    assert "People cannot join" in text
