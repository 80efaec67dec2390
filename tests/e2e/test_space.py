"""The folder of `make space`, started as a Space: user 1000, no arguments, TLS in front."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from helpers import ROOT, until
from made_demo import demo_in
from playwright.sync_api import expect
from programs import needed
from studio import START_SECONDS, answers, launched

from annotation.store import Store
from annotation.study.builtin import PEOPLE
from annotation.study.labelling import list_studies, progress
from e2e.fronts import STICKY, nginx
from semsim.base.storage.ports import reserved_port

pytestmark = pytest.mark.e2e
# Root is user 1000 in a namespace of its own, as others cannot always read root's interpreter.
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
PASSWORD = "four words are good"
SITE = "https://huggingface.co/spaces/lab/studio"
ONE_PROCESS = {
    STICKY: "",
    "    server 127.0.0.1:7861;\n": "",
    "    location = /semsim { return 301 https://$http_host/semsim/; }\n": "",
    "location /semsim/ {": "location / {",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The folder, and one in place of /data with the built-in studies alone."""
    top = tmp_path_factory.mktemp("space")
    laid = top / "app"
    subprocess.run([needed("make"), "-s", "space", f"DIR={laid}"], cwd=ROOT, check=True)
    demo_in(top / "kept/data")
    return laid, top / "kept"


def around(space, **more):
    """Return the environment of a Space."""
    usual = {"PATH": os.environ["PATH"], "HOME": str(space[1].parent), "LANG": "C.UTF-8"}
    return {**usual, "SPACE_HOST": "lab-studio.hf.space", "SEMSIM_HOME": str(space[1]), **more}


@contextmanager
def started(space, log, **more):
    with log.open("wb") as told:
        given = {"cwd": space[0], "env": around(space, **more)}
        running = subprocess.Popen(
            [*AS_USER, sys.executable, "space.py"],
            stdout=told,
            stderr=told,
            stdin=subprocess.DEVNULL,
            **given,
        )
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


def test_the_folder_is_a_space_as_it_lies_there(space):
    laid, _ = space
    front = (laid / "README.md").read_text().split("---")[1]
    facts = dict(line.split(": ") for line in front.strip().splitlines())
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (laid / "requirements.txt").read_text(), re.M))
    assert facts["sdk"] == "gradio"
    assert facts["sdk_version"] == pins["gradio"]
    assert facts["python_version"] == '"3.11"'
    assert (laid / facts["app_file"]).is_file()
    assert pins["torch"].endswith("+cpu")
    assert pins["torchvision"].endswith("+cpu")
    assert not list(laid.rglob("__pycache__"))
    large = [path for path in laid.rglob("*") if path.is_file() and path.stat().st_size > 10**7]
    assert large == []  # more than the service takes without large file storage


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "There is no administrator. Open Settings of this Space and add the secret SEMSIM_AD"),
        ({"SEMSIM_HOME": "/proc/none"}, "/proc/none cannot be written, so votes would be lost."),
    ],
)
def test_what_is_not_set_is_refused_in_a_sentence(space, tmp_path, more, words):
    new = {"SEMSIM_HOME": str(tmp_path)}  # where nobody has an account
    with started(space, tmp_path / "log", **new | more) as running:
        assert running.wait(START_SECONDS) != 0
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith(words)


def test_by_itself_it_listens_on_all_addresses_at_7860(space, tmp_path):
    """The same start with a program in place of the studio's, which prints what it is asked."""
    shutil.copy(space[0] / "space.py", tmp_path)
    (tmp_path / "app.py").write_text("import sys\ndef main(): print(*sys.argv[1:])\n")
    given = {**os.environ, **around(space, SEMSIM_ADMIN_PASSWORD=PASSWORD)}
    done = subprocess.run(
        [sys.executable, "space.py"],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("serve --host 0.0.0.0 --port 7860 --trusted-proxy 0.0.0.0/0 ")


@pytest.fixture(scope="module")
def served(space, tmp_path_factory):
    """The public address of a Space that has started."""
    folder = tmp_path_factory.mktemp("front")
    with reserved_port() as port, nginx(folder, [port], ONE_PROCESS) as shown:
        address = shown.removesuffix("/semsim")
        more = {"SPACE_HOST": urlsplit(address).netloc, "PORT": str(port)}
        with started(space, folder / "log", SEMSIM_ADMIN_PASSWORD=PASSWORD, **more):
            until(lambda: answers(f"http://127.0.0.1:{port}"), START_SECONDS)
            yield address


@pytest.fixture(scope="module")
def chromium(chromium):
    """One that lets a page of the internet frame this machine, which no Space is on."""
    with launched(chromium.browser_type, "--disable-features=LocalNetworkAccessChecks") as opened:
        yield opened


@pytest.fixture(scope="module")
def study(served, space):
    """The built-in study of people, and where its votes are."""
    with Store(f"sqlite:///{space[1] / 'data/studies.db'}") as store:
        until(lambda: PEOPLE in {one.name for one in list_studies(store)}, 120)
        (made,) = (one for one in list_studies(store) if one.name == PEOPLE)
        yield made, store


@contextmanager
def framed(chromium, address, site=SITE):
    """`address` in a frame of a page of `site`."""
    with chromium.new_context(ignore_https_errors=True) as context:
        page = context.new_page()
        shown = f'<!doctype html><iframe width=1200 height=700 src="{address}"></iframe>'
        page.route(f"{site}**", lambda one: one.fulfill(body=shown, content_type="text/html"))
        page.goto(site)
        yield page.frame_locator("iframe"), page


def test_the_studio_is_there_in_the_frame_of_the_site(chromium, served, study):
    with framed(chromium, f"{served}/studio/overview?study={study[0].id}") as (frame, _):
        frame.get_by_label("Name").fill("admin")
        frame.get_by_label("Password").fill(PASSWORD)
        frame.get_by_role("button", name="Sign in").click()
        link = f"{served}/join/{study[0].token}"  # the public address, which others open
        expect(frame.locator("#link")).to_have_attribute("href", link)


def test_the_link_of_an_annotator_works_in_the_frame_and_votes_are_kept(chromium, served, study):
    made, store = study
    before = progress(store, made.id).coverage
    with framed(chromium, f"{served}/join/{made.token}") as (frame, _):
        frame.get_by_label("Your name").fill("Nora")
        frame.get_by_role("button", name="Start").click()
        frame.get_by_role("button", name="Go on").click()
        for practice in (True, True, False):
            expect(frame.locator(".sl-pictures img").first).to_be_visible()
            frame.locator(".sl-answers button:visible").first.click(delay=400)
            if practice:
                expect(frame.get_by_text("Press Enter")).to_be_visible()
                frame.locator("body").press("Enter")
        until(lambda: progress(store, made.id).coverage != before)


def test_no_other_site_frames_it(chromium, served):
    with framed(chromium, f"{served}/signed-out", "https://other.example/") as (_, page):
        (inside,) = page.main_frame.child_frames
        until(lambda: inside.url.startswith("chrome-error:"))
