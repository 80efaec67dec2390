"""The start page: its cases, where a workspace stands, and the studies with their pictures."""

import io
import re
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from made_ballots import random_votes
from made_results import NO_IMPORTS, write_import
from PIL import Image
from study_factory import answer_all, joined, small_study

from annotation.images import path_of
from annotation.study import imported
from annotation.study.labelling import some_pictures
from annotation.ui import StudyContext, home, preview_pages
from annotation.ui.mount import web_app
from annotation.web.frame import FrameContext

CASE = {
    "way": "people alone recognise <it>",
    "original": "data:image/png;base64,AAAA",
    "reconstruction": "data:image/png;base64,BBBB",
    "target": "",
    "people": "recognised by 3 of 5 simulated",
    "metrics": [
        ["PSNR", "9.55", "higher is closer"],
        ["SemSim (demo)", "1.95", "lower is closer"],
    ],
}
TOLD = {"title": "Four cases: simulated annotators", "caption": "Left; the rule.", "cases": [CASE]}
LIVE = SimpleNamespace(words="Training one", share=0.41, left="", address="/studio/train")


@pytest.fixture
def visit(store, tmp_path):
    def visit(cases=None, people=None, semsims=(), running=(), sets=(), imports=NO_IMPORTS):
        context = StudyContext(
            store=store,
            images=tmp_path / "images",
            find_sets=lambda: [(name, tmp_path) for name in sets],
            imports=imports,
            note=lambda: "A word of the server.",
        )
        lab = home.Lab(
            cases=lambda: cases or {**TOLD, "cases": []},
            people=lambda: people or {"rows": []},
            semsims=lambda: list(semsims),
            running=lambda: list(running),
        )
        routes = (home.router(context, lab), preview_pages.router(context))
        app = web_app(FrameContext(store=store), tmp_path / "images", *routes)
        return TestClient(app, base_url="http://127.0.0.1")

    return visit


def test_an_empty_workspace_says_where_to_begin(visit):
    text = visit().get("/studio/").text
    assert "No study yet" in text
    assert "0 reconstruction sets" in text
    assert 'data-kind="primary" href="/studio/reconstruct"' in text
    assert "Left: original" not in text  # no cases, and nothing said of them
    assert "A word of the server." in text


ROW = {"title": "PSNR", "rho": 0.5, "low": -0.25, "high": 0.75}
PEOPLE = {
    **{"title": "218 people", "study": "recurrent", "cite": "Cite <them>.", "models": 16},
    "rows": [ROW, {**ROW, "title": "Few", "rho": -0.1, "low": None, "high": None}],
    "ceiling": {"rho": 0.91, "low": 0.7, "high": 1.0},
}


def test_the_first_answer_is_of_people(visit):
    text = visit(people=PEOPLE).get("/studio/").text
    assert "218 people" in text
    assert 'href="/studio/compare?study=import:recurrent"' in text
    assert "−0.25 to 0.75" in text
    assert "left: 0.0%; width: 80.0%" in text
    assert '<b style="left: 60.0%">' in text
    assert "−0.10" in text
    assert "Human ceiling" in text
    assert "Cite &lt;them&gt;." in text
    unknown = {**PEOPLE, "ceiling": dict.fromkeys(("rho", "low", "high"))}
    assert "Human ceiling" not in visit(people=unknown).get("/studio/").text
    assert "A study with people" not in visit().get("/studio/").text


def test_a_case_says_what_people_and_metrics_said_and_on_which_side_it_is(visit):
    few = {**CASE, "people": "recognised by 2 of 5"}
    many = {**CASE, "people": "recognised by 3 of 5"}
    told = {**TOLD, "title": "Four cases: annotators", "cases": [few, many]}
    text = visit(told).get("/studio/").text
    assert 'class="st-private">2 of 5</span>' in text
    assert 'class="st-leaked">3 of 5</span>' in text
    assert "Warm: recognised" in text
    assert "<dt>PSNR, higher is closer</dt><dd>9.55</dd>" in text
    assert "<dt>SemSim (demo), lower is closer</dt><dd>1.95</dd>" in text
    assert "&lt;it&gt;" in text
    assert "imulated" not in text


def test_what_programs_said_of_a_case_is_no_verdict(visit):
    text = visit(TOLD).get("/studio/").text
    assert 'class="st-open">3 of 5</span>' in text
    assert not any(word in text for word in ("st-leaked", "st-private", "Warm", "Cool"))
    assert "Simulated annotators recognise it" in text
    assert "From the demo study (simulated votes)." in text


def test_studies_from_elsewhere_stand_beside_the_others(visit, make_study, tmp_path):
    imports = write_import(tmp_path / "imports", random_votes())
    text = visit(imports=imports).get("/studio/").text
    ((study, (name, _)),) = imported.choices(imports).items()
    assert f'href="/studio/compare?study={quote(study)}"' in text
    assert f"<strong>{name}</strong>" in text
    assert "Votes from elsewhere" in text
    assert "No study yet" not in text


def test_the_steps_say_where_the_study_stands_and_what_runs(visit, store, make_study):
    study = make_study()
    page = visit(semsims=["first", "second"], running=[LIVE], sets=["a", "b"])
    text = page.get("/studio/").text
    assert "2 reconstruction sets" in text
    assert "Training one: 41%" in text
    assert f'data-kind="primary" href="/studio/preview?study={study.id}"' in text
    answer_all(store, joined(store, study, "Ada")[0], n=3)
    text = visit(semsims=["first", "second"], sets=["a"]).get("/studio/").text
    assert f"3 of {study.n_items * study.spec.votes_per_item:,} votes" in text
    assert "2 SemSims: first, second" in text
    assert 'data-kind="primary" href="/studio/compare?tab=answer"' in text


def test_votes_of_programs_are_said_to_be(visit, make_study):
    make_study(simulated=True)
    assert re.search(r"<p>0 of [\d,]+ simulated votes</p>", visit().get("/studio/").text)


def test_lists_of_studies_say_who_made_them(visit, store, tmp_path):
    small_study(store.by("Ada"), tmp_path, name="Leaves")
    page = visit()
    assert " · by Ada</span>" in page.get("/studio/").text
    assert ">Leaves, by Ada</option>" in page.get("/studio/frame").text


@pytest.mark.parametrize(("n", "said"), [(2, "1 older study"), (3, "2 older studies")])
def test_studies_beyond_those_shown_are_counted(visit, make_study, monkeypatch, n, said):
    monkeypatch.setattr(home, "SHOWN", 1)
    for name in range(n):
        make_study(name=f"Study {name}")
    assert f"side bar has {said}." in visit().get("/studio/").text


def test_a_study_shows_some_of_its_own_pictures_small(visit, store, tmp_path, make_study):
    study, page = make_study(), visit()
    first, *_ = some_pictures(store, study.id, home.THUMBNAILS)
    address = f"/studio/seen/{study.id}/{first}"
    assert f'src="{address}?small=1"' in page.get("/studio/").text
    Image.new("RGB", (900, 300), "red").save(path_of(tmp_path / "images", first))
    answer = page.get(f"{address}?small=1")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (128, 43)
    assert Image.open(io.BytesIO(page.get(address).content)).size == (900, 300)
    for other in (f"{study.id}/{'0' * 64}", f"none/{first}"):
        assert page.get(f"/studio/seen/{other}").status_code == 404
