"""An annotator asks for everything there is and learns nothing that would give an answer away.

One person goes through a whole study of the whole product and records every address, header and
body; then every address found in those is asked for as well. Nothing of it may tell which model,
attack or original a picture comes from, what it shows, which items are trials, or what others say.
"""

import io
import itertools
import json
import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from made_accounts import made_account
from PIL import Image
from studio import compose
from study_factory import CLASSES, SURE, picture, questions_for, write_set

from annotation.domain import Study
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.store.tables import SlotRow, SourceRow, StimulusRow, TrialRow
from annotation.study import labelling as studies
from annotation.study.builtin import ensure_demo
from annotation.study.create import create_study
from annotation.tasks import KINDS

MODELS = ("hushnet-alpha", "hushnet-beta")
OTHER = "Someone Particular"
MOST_ADDRESSES = 400
N_ORIGINALS = 12
# A page's settings, which lie in it as JSON, spell quotes out.
ADDRESS = re.compile(r"""(?:["'(]|\\u0027)(\.{0,2}/[^"'()<>\s\\{}$`]*)""")
PNG_CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
RANDOM = re.compile(r"^[0-9a-f]{32}$|^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass
class Visit:
    """One annotator's browser and everything it was told."""

    client: TestClient
    told: list[httpx.Response] = field(default_factory=list)
    items: list[dict] = field(default_factory=list)
    receipts: list[dict] = field(default_factory=list)
    progress: list[dict] = field(default_factory=list)  # as told after each answer

    def get(self, address: str) -> httpx.Response:
        return self._note(self.client.get(address))

    def post(self, address: str, **given: object) -> httpx.Response:
        return self._note(self.client.post(address, **given))

    def _note(self, response: httpx.Response) -> httpx.Response:
        self.told.append(response)
        return response


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("blinding")


@pytest.fixture(scope="module")
def store(folder):
    with Store(f"sqlite:///{folder / 'studies.db'}") as opened:
        made_account(opened, "Ada")
        sets = [write_set(folder / "sets" / "demo", model="one", probabilities=SURE)]
        ensure_demo(opened, sets, folder / "images")
        yield opened


@pytest.fixture(scope="module")
def client(store, folder):
    app = compose(store, folder, local=False)
    return lambda: TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture(scope="module", params=list(Task))
def study(request, store, folder) -> Study:
    labels = [CLASSES[i % len(CLASSES)] for i in range(N_ORIGINALS)]
    sets = [write_set(folder / "sets" / name, model=name, labels=labels) for name in MODELS]
    spec = StudySpec(
        name="hushhush versus baseline",
        task=request.param,
        votes_per_item=2,
        list_size=8,
        decoy_rate=0.5 if KINDS[request.param].decoys else 0.0,
        set_aside=4,
        practice=2,
        catch_rate=0.25,
        repeat_rate=0.25,
        repeat_lag=4,
        consent="Taking part is voluntary.",
        check=True,
    )
    return create_study(store, spec, sets, folder / "images")


@pytest.fixture(scope="module")
def visit(store, study, client) -> Visit:
    """Somebody has been here before; then one person does everything."""
    _take_part(store, study, Visit(client()), OTHER, most=4)
    seen = Visit(client())
    _take_part(store, study, seen, "Ada")
    _crawl(seen)
    return seen


def _take_part(store, study, seen, name, most=1000):
    seen.get(f"/join/{study.token}")
    seen.post(f"/join/{study.token}", data={"name": name})
    _begin(seen)
    _answer(seen, study.kind)
    _pass_check(store, seen)
    _answer(seen, study.kind, most)


def _begin(seen):
    for form in ({"step": "consent", "agree": "yes"}, {"step": "instructions"}):
        seen.get("/begin")
        seen.post("/begin", data=form)
    seen.get("/label")


def _pass_check(store, seen):
    me = studies.who(store, seen.client.cookies["semsim_session"])
    right = {one.name: one.right for one in questions_for(store, me)}
    seen.get("/begin")
    wrong = {one.name: one.options[0][0] for one in questions_for(store, me)}
    seen.post("/begin", data={"step": "check", "attempt": "0", **wrong})
    seen.post("/begin", data={"step": "check", "attempt": "1", **right})


def _answer(seen, kind, most=1000):
    """Answer what is offered until nothing is, and each time try what is not offered first."""
    while len(seen.items) < most and (items := seen.get("/api/next?tab=t&n=10").json()["items"]):
        for item in items:
            seen.items.append(item)
            for address in item["images"]:
                assert seen.get(address).status_code == 200
            answer = kind.offered(item["candidates"])[0]
            later = 500.0 + 10 * len(seen.receipts)  # so that each moves a median over all
            vote = {"id": str(uuid.uuid4()), "item": item["item"], "tab": "t", "rt_ms": later}
            vote["version"] = 1
            seen.post("/api/vote", json={**vote, "answer": "nonsense"})
            reply = seen.post("/api/vote", json={**vote, "answer": answer})
            assert reply.status_code == 200, reply.text
            seen.receipts.append({**reply.json(), "practice": item.get("practice", False)})
            seen.progress.append(seen.get("/api/study").json()["progress"])


def _crawl(seen):
    """Ask for every address that anything so far has named."""
    asked = {str(one.request.url.path) for one in seen.told}
    asked |= {"/sign-out"}
    for start in (
        "/",
        "/label/config",
        "/label/worker.js",
        "/label/gradio_api/info",
        "/openapi.json",
    ):
        _ask(seen, start, asked)
    position = 0
    while position < len(seen.told) and len(asked) < MOST_ADDRESSES:
        response = seen.told[position]
        position += 1
        named = [*ADDRESS.findall(_text(response)), response.headers.get("location", "")]
        for address in filter(None, named):
            _ask(seen, urljoin(str(response.request.url), address), asked)


def _ask(seen, address, asked):
    parts = urlsplit(address)
    if parts.netloc in ("", "127.0.0.1") and parts.path not in asked:
        asked.add(parts.path)
        if not re.search(r"gradio_api/(queue/data|heartbeat|stream)", parts.path):  # never end
            seen.get(parts.path + (f"?{parts.query}" if parts.query else ""))


def _text(response):
    kind = response.headers.get("content-type", "")
    return response.text if re.search("html|json|javascript|css|text|xml", kind) else ""


def _everything(response):
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"{response.request.url}\n{headers}\n{_text(response)}"


def test_the_visit_saw_what_there_is_to_see(visit, store, study):
    """Or the other tests would find nothing because nothing was asked."""
    me = studies.who(store, visit.client.cookies["semsim_session"]).id
    trials = store.read(lambda tx: tx.query(TrialRow).filter_by(annotator_id=me).all())
    assert {one.kind for one in trials} == {"practice", "catch", "repeat"}
    main = sum(not one["practice"] for one in visit.receipts)
    assert main == study.n_items + sum(one.kind != "practice" for one in trials)
    paths = {one.request.url.path for one in visit.told if one.status_code == 200}
    assert {"/begin", "/label", "/api/study", "/static/annotation/labeller.js"} <= paths


def test_nothing_names_a_model_an_attack_an_original_or_anybody_else(visit, store, study):
    stimuli, sources = store.read(
        lambda tx: (
            tx.query(StimulusRow).filter_by(study_id=study.id).all(),
            tx.query(SourceRow).filter_by(study_id=study.id).all(),
        )
    )
    digests = {one.sha256 for one in (*stimuli, *sources)}
    ids = {one.id for one in sources} | {one.image_id for one in sources}
    words = {*MODELS, "hushnet", "hushhush", "invgrad", "stratum", OTHER, study.dataset}
    words |= digests | {digest[:12] for digest in digests} | ids
    for response in visit.told:
        told = _everything(response).casefold()
        found = [word for word in words if word.casefold() in told]
        assert found == [], response.request.url


def test_a_class_is_named_only_in_a_list_of_candidates(visit, study):
    """The feedback of practice says the answer; that is what it is for."""
    for response in visit.told:
        if not response.request.url.path.startswith("/api/"):
            continue
        told = response.json() if "json" in response.headers.get("content-type", "") else {}
        told.pop("feedback", None)
        for item in told.get("items", []):
            listed = list(item.pop("candidates"))
            assert listed == sorted(listed, key=lambda name: name.replace("_", " ").casefold())
        if response.status_code == 422:
            continue  # lists the candidates again
        rest = json.dumps(told)
        assert not [name for name in CLASSES if f'"{name}"' in rest], response.request.url


def test_items_and_trials_look_alike(visit):
    main = [item for item in visit.items if not item.get("practice")]
    assert len({tuple(sorted(item)) for item in main}) == 1
    assert len({len(item["images"]) for item in main}) == 1
    receipts = [one for one in visit.receipts if not one["practice"]]
    assert {one["status"] for one in receipts} == {"counted"}
    assert len({tuple(sorted(one)) for one in receipts}) == 1


def test_progress_moves_alike_after_items_and_trials(visit):
    practice = sum(one["practice"] for one in visit.receipts)
    main = visit.progress[practice:]
    assert [one["done"] for one in main] == list(range(1, len(main) + 1))
    assert len({one["done"] + one["left"] for one in main}) == 1
    steps = np.diff([one["median_rt_ms"] for one in visit.progress])
    assert set(steps) == {5.0}


def test_names_of_items_and_pictures_are_random_and_never_used_again(visit):
    names = [item["item"] for item in visit.items]
    pictures = [one.removeprefix("/api/image/") for item in visit.items for one in item["images"]]
    assert len(set(names)) == len(names)
    assert len(set(pictures)) == len(pictures)
    assert all(RANDOM.match(name) for name in (*names, *pictures))
    # Nothing is counted up or copied from the clock: no two begin alike.
    assert len({name[:8] for name in (*names, *pictures)}) == len(names) + len(pictures)


def test_pictures_carry_pixels_and_nothing_else(visit):
    images = [one for one in visit.told if one.headers.get("content-type") == "image/png"]
    assert len(images) >= len(visit.items)
    alike = {
        tuple(
            (name, value)
            for name, value in one.headers.items()
            if name not in ("content-length", "date")
        )
        for one in images
    }
    assert len(alike) == 1
    assert not {name for name, _ in alike.pop()} & {"etag", "last-modified", "content-disposition"}
    for one in images:
        assert _chunks(one.content) <= PNG_CHUNKS
        assert Image.open(io.BytesIO(one.content)).info == {}


def _chunks(content):
    kinds, place = set(), 8
    while place < len(content):
        kinds.add(content[place + 4 : place + 8])
        place += 12 + int.from_bytes(content[place : place + 4], "big")
    return kinds


def test_order_says_nothing_about_the_model(visit, store, study):
    """An annotator meets the models mixed, not one after the other."""
    of = store.read(
        lambda tx: dict(tx.query(StimulusRow.id, StimulusRow.model).filter_by(study_id=study.id))
    )
    seen = [of[item["item"]] for item in visit.items if item["item"] in of]
    changes = sum(a != b for a, b in itertools.pairwise(seen))
    assert set(seen) == set(MODELS)
    assert changes > len(seen) / 5


def test_what_is_not_theirs_stays_shut(visit, store, study, client):
    """Pictures of items they never had, other people's pages, the researchers' pages."""
    stranger = client()
    stranger.post(f"/join/{study.token}", data={"name": "Bo"})
    for form in ({"step": "consent", "agree": "yes"}, {"step": "instructions"}):
        stranger.post("/begin", data=form)
    for item in visit.items[-3:]:
        for address in item["images"]:
            assert stranger.get(address).status_code in (403, 404)
    held = store.read(lambda tx: tx.query(SlotRow).filter(SlotRow.study_id == study.id).first())
    for address in (
        "/studio/",
        "/studio/people/",
        "/studio/results/",
        f"/studio/download/{study.id}/votes.csv",
        "/studio/gradio_api/info",
        "/studio/compare-files/x",
        "/admin",
        f"/api/image/{held.stimulus_id}",
        "/label/gradio_api/file=/etc/hostname",
    ):
        assert visit.client.get(address).status_code in (303, 401, 403, 404), address


def test_the_pictures_are_those_of_the_study(visit, folder):
    """Or the tests of their metadata would be about something else."""
    clear = {picture(index).tobytes() for index in range(N_ORIGINALS)}
    shown = [one for one in visit.told if one.headers.get("content-type") == "image/png"]
    pixels = {Image.open(io.BytesIO(one.content)).convert("RGB").tobytes() for one in shown}
    assert pixels & clear  # practice begins with a clear one
    assert pixels - clear
