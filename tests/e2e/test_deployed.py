"""deploy/ in front of two processes on one PostgreSQL, which are started as docs/ has it."""

import re
import uuid
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from helpers import limit, until
from playwright.sync_api import expect
from programs import POSTGRES, needed
from studio import START_SECONDS, answers, environment, fill_training, typing
from study_factory import CLASSES, write_set
from test_docs import DEPLOYED, copied

from annotation.spec import Task
from annotation.store import Store
from annotation.study.builtin import PEOPLE
from annotation.study.exports import export_labels
from annotation.study.labelling import list_studies, progress
from e2e.fronts import STICKY, caddy, nginx
from e2e.rules import broken_in_any_look
from semsim.base.storage.ports import reserved_port

pytestmark = pytest.mark.e2e
NAME, PASSWORD = "ada", "four words are good"
MODELS, ORIGINALS = 5, 10
PICTURES = MODELS * ORIGINALS
PORTS = ("7860", "7861")  # of the page


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What a lab has before it starts: the product, and five sets of pictures."""
    folder = tmp_path_factory.mktemp("checkout")
    copied(folder, "semsim", "annotation", "data/demo")
    environment(folder)
    labels = [CLASSES[n % len(CLASSES)] for n in range(ORIGINALS)]
    for n in range(MODELS):
        place = folder / "data/runs" / f"net{n}"
        write_set(place, model=f"net{n}", labels=labels, noise=10 + 25 * n)
    return folder


@pytest.fixture(scope="module")
def ports():
    with ExitStack() as held:
        yield [held.enter_context(reserved_port()) for _ in PORTS]


@pytest.fixture(scope="module")
def servers(checkout, ports, tmp_path_factory):
    """Ports of both processes and the address of their database, all as the page has it typed."""
    needed("createdb"), needed("a PostgreSQL server")
    given, name = urlsplit(POSTGRES), f"t{uuid.uuid4().hex}"
    libpq = {"PGHOST": given.hostname, "PGPORT": given.port, "PGUSER": given.username}
    libpq |= {"PGPASSWORD": given.password}
    here = {"…": f"'{PASSWORD}'", "localhost/": f"{given.hostname}/", "studies": name}
    lines = DEPLOYED
    for before, after in [*here.items(), *zip(PORTS, map(str, ports), strict=True)]:
        assert before in lines
        lines = lines.replace(before, after)
    first, *starts = lines.splitlines()
    log = tmp_path_factory.mktemp("logs")
    around = {name: str(value) for name, value in libpq.items() if value}
    server = POSTGRES.replace("+psycopg", "")
    try:
        with typing(checkout, **around) as begin:
            made = begin(first, log / "createdb")
            assert made.wait(limit(60)) == 0, (log / "createdb").read_text()
            for line, port in zip(starts, ports, strict=True):
                begin(line, log / str(port))
                until(lambda port=port: answers(f"http://127.0.0.1:{port}"), START_SECONDS)
            yield ports, POSTGRES.replace(given.path, f"/{name}")
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def store(servers):
    with Store(servers[1]) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(servers, tmp_path_factory):
    """Where nginx shows both."""
    with nginx(tmp_path_factory.mktemp("nginx"), servers[0]) as shown:
        yield shown


@pytest.fixture(scope="module", params=[nginx, caddy])
def either(request, servers, tmp_path_factory):
    """Where nginx shows both, and where Caddy does."""
    with request.param(tmp_path_factory.mktemp("front"), servers[0]) as shown:
        yield shown


@pytest.fixture(scope="module")
def study(address, store, signed_in):
    """Made on the page, by somebody who signs in."""
    with signed_in(address, "/studio/new") as page:
        for n in range(MODELS):
            page.get_by_role("checkbox", name=f"net{n}").check()
        expect(page.locator("#in-short")).to_contain_text(f"{MODELS} sets: {PICTURES} recon")
        following = page.get_by_role("button", name="Next")
        following.click()
        expect(page.get_by_role("radio", name="Recognition")).to_be_checked()
        screen = page.frame_locator(".nw-screen iframe")
        expect(screen.locator(".sl-pictures img, .sl-pictures canvas").first).to_be_visible()
        following.click()
        page.get_by_label("Votes per item (K)").fill("1")
        page.get_by_text("More: Attention checks").click()
        page.locator("#set-repeat_rate").fill("0")
        following.click()
        page.get_by_label("Name", exact=True).fill("Fifty")
        page.get_by_role("button", name="Create study").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Fifty")
        (made,) = (one for one in list_studies(store) if one.name == "Fifty")
        assert page.url == f"{address}/studio/overview?study={made.id}"
        link = page.locator("#link")
        expect(link).to_have_attribute("href", f"{address}/join/{made.token}")
    return made


@pytest.fixture(scope="module")
def signed_in(chromium):
    """Open a page of the studio as ada, who has to sign in first."""

    @contextmanager
    def opened(address, path):
        with chromium.new_context(ignore_https_errors=True) as context:
            page = context.new_page()
            page.goto(f"{address}{path}")
            sign_in(page)
            expect(page).to_have_url(re.compile(re.escape(f"{address}{path}")))
            yield page

    return opened


def sign_in(page):
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def browser(address: str) -> httpx.Client:
    """Somebody who believes the certificate, as it was made a moment ago."""
    return httpx.Client(base_url=address, verify=False, timeout=limit(120))


def told(person: httpx.Client) -> dict[str, str]:
    """Who they are, for one of the processes by itself."""
    return {"cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items())}


def vote_on(item, answer):
    vote = {"id": str(uuid.uuid4()), "item": item["item"], "tab": "t", "rt_ms": 900}
    return {**vote, "answer": answer, "version": 1}


def test_signing_in_leads_to_the_studio_below_the_path_with_a_safe_cookie(either):
    with browser(either) as ada:
        before = ada.get("/studio/", headers={"accept": "text/html"})
        assert (before.status_code, before.headers["location"][:14]) == (303, "/semsim/login?")
        given = {"name": NAME, "password": PASSWORD, "next": "/studio/overview"}
        headers = {"origin": either.removesuffix("/semsim")}
        reply = ada.post("/login", data=given, headers=headers)
        assert (reply.status_code, reply.headers["location"]) == (303, "/semsim/studio/overview")
        cookie = reply.headers["set-cookie"]
        assert "Path=/semsim/" in cookie
        assert "Secure" in cookie
        drawn = ada.get("/studio/train", headers={"accept": "text/html"})
        assert f'"root":"{either}/studio"' in drawn.text
        assert ada.get("/metrics").status_code == 200


def test_somebody_joins_sees_the_label_page_and_votes(either, store):
    until(lambda: PEOPLE in {one.name for one in list_studies(store)}, 120)
    (demo,) = (one for one in list_studies(store) if one.name == PEOPLE)
    with browser(either) as berta:
        name = f"Berta {uuid.uuid4().hex[:8]}"
        reply = berta.post(f"/join/{demo.token}", data={"name": name})
        assert (reply.status_code, reply.headers["location"]) == (303, "/semsim/begin")
        who = re.search(r'name="who" value="([^"]+)"', berta.get("/begin").text)[1]
        berta.post("/begin", data={"who": who, "step": "instructions"})
        assert berta.get("/begin").headers["location"] == "/semsim/label"
        assert "/semsim/static/annotation/" in berta.get("/label").text
        (item,) = berta.get("/api/next?tab=t&n=1").json()["items"]
        picture = berta.get(item["images"][0].removeprefix("/semsim"))
        assert picture.headers["content-type"] == "image/png"
        reply = berta.post("/api/vote", json=vote_on(item, "none"))
        assert reply.json()["feedback"] in item["candidates"], reply.text  # it is practice


def test_the_study_is_as_its_form_says(study):
    spec = study.spec
    assert (spec.task, spec.votes_per_item, spec.repeat_rate) == (Task.RECOGNITION, 1, 0)
    assert study.n_items == PICTURES


def test_fifty_pictures_are_labelled_and_both_processes_know_it(
    address, servers, study, store, checkout
):
    truth = export_labels(store, study.id, checkout / "data/images").set_index("item")
    with browser(address) as anna:
        assert anna.post(f"/join/{study.token}", data={"name": "Anna"}).status_code == 303
        n = 0
        while items := anna.get("/api/next?tab=t&n=10").json()["items"]:
            for item in items:
                picture = anna.get(item["images"][0].removeprefix("/semsim"))
                assert picture.headers["content-type"] == "image/png"
                shown = truth.loc[item["item"]]
                seen = shown["model"] <= f"net{n % MODELS}"  # of every original some and not others
                answer = shown["class_name"] if seen else "none"
                reply = anna.post("/api/vote", json=vote_on(item, answer))
                assert reply.json()["status"] == "counted", reply.text
                n += 1
        assert n == PICTURES == progress(store, study.id).coverage[-1]
        for port in servers[0]:
            here = f"http://127.0.0.1:{port}/semsim/api/study"
            reply = httpx.get(here, headers=told(anna), timeout=limit(60))
            assert reply.json()["progress"]["done"] == PICTURES


def test_both_are_well_and_say_so_through_the_web_server(either, servers):
    for base in (either, *(f"http://127.0.0.1:{port}/semsim" for port in servers[0])):
        with browser(base) as anybody:
            assert anybody.get("/health").json()["status"] == "ok"
            assert anybody.get("/metrics").status_code == 403


def test_without_stickiness_a_page_says_so_and_loses_no_event(servers, tmp_path, signed_in):
    with (
        nginx(tmp_path, servers[0], {STICKY: ""}) as address,
        signed_in(address, "/studio/audit") as page,
    ):
        said = page.locator("#studio-other")
        expect(said).to_contain_text("“Stickiness” in deploy/nginx.conf")
        drawn_by = page.locator("meta[name=studio-process]").get_attribute("content")
        with page.expect_response(  # by the right one, after which the words stay
            lambda one: "/studio/frame?" in one.url and one.headers["x-studio-process"] == drawn_by
        ):
            said.evaluate("one => { one.dataset.first = 'yes'; }")
        statuses = []
        while {200, 409} - {*statuses}:
            assert len(statuses) < 20
            with page.expect_response("**/gradio_api/run/**") as answer:
                page.locator("#audit-show").click()
            statuses.append(answer.value.status)
            if statuses[-1] == 409:
                words = answer.value.json()["error"]
                assert "deploy/nginx.conf" in words
                expect(said).to_contain_text(words)
        expect(said).to_have_attribute("data-first", "yes")
        said.get_by_role("button", name="Reload").click()
        expect(page.locator("#studio-frame")).to_be_visible()


def test_who_is_signed_out_is_told_so_and_goes_back_to_no_page(address, signed_in):
    with signed_in(address, "/studio/audit") as page:
        show = page.locator("#audit-show")
        expect(show).to_be_visible()
        page.context.clear_cookies()
        show.click()
        said = page.locator("#studio-signed-out")
        expect(said).to_contain_text("You are signed out: nothing was done.")
        assert broken_in_any_look(page, "#studio-toasts") == []
        with page.context.expect_page() as opened:
            said.get_by_role("link", name="Sign in").click()
        sign_in(opened.value)
        expect(opened.value).to_have_url(f"{address}/studio/")
        show.click()
        expect(said).to_have_count(0)
        page.goto(f"{address}/studio/audit")  # another process may answer the new session
        expect(show).to_be_visible()
        page.get_by_role("button", name="Menu").click()  # the window is a telephone's since
        page.get_by_role("button", name="Sign out").click()
        signing_in = page.get_by_role("heading", name="Sign in")
        expect(signing_in).to_be_visible()
        page.go_back()
        expect(signing_in).to_be_visible()


def test_a_semsim_is_trained_and_compared_below_the_path(address, study, store, signed_in):
    assert progress(store, study.id).coverage[-1] == PICTURES
    with signed_in(address, f"/studio/train?study={study.id}") as page:
        expect(page.locator("#learn-stock")).to_contain_text(f"{ORIGINALS} originals")
        fill_training(page, "deployed")
        # Twenty further trainings would show nothing of the path.
        page.get_by_role(
            "radio", name="Initial weights and the calibrated baseline", exact=True
        ).check()
        page.locator("#learn-start").click()
        expect(page.locator("#learn-status [data-state=done]")).to_be_visible()
        page.goto(f"{address}/studio/compare?study={study.id}&tab=answer")
        expect(page.locator("#cmp-forest")).to_contain_text("deployed")
        expect(page.locator("#studio-other")).to_have_count(0)
