"""nginx with deploy/nginx.conf in front of two processes of the product on one PostgreSQL."""

import os
import re
import shutil
import socket
import subprocess
import uuid
from pathlib import Path

import httpx
import pytest
from helpers import skip_or_fail
from playwright.sync_api import expect
from studio import ROOT, Server, until
from studio import browser as chromium
from study_factory import CLASSES, fresh_database, write_set

from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.study.exports import export_labels
from annotation.study.labelling import progress

LONG = 120_000  # milliseconds: two busy cores
NAME, PASSWORD = "ada", "four words are good"
MODELS, ORIGINALS = 5, 10
PICTURES = MODELS * ORIGINALS
TLS = "/etc/ssl/{}/lab.example.org.{}"  # as the file names them


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployed")
    with fresh_database("postgresql", folder) as url, Store(url) as store:
        labels = [CLASSES[n % len(CLASSES)] for n in range(ORIGINALS)]
        given = [
            write_set(folder / f"net{n}", model=f"net{n}", labels=labels, noise=10 + 25 * n)
            for n in range(MODELS)
        ]
        spec = StudySpec(
            name="Fifty", task=Task.RECOGNITION, votes_per_item=1, min_rt_ms=0, repeat_rate=0
        )
        yield url, store, folder, create_study(store, spec, given, folder / "images")


@pytest.fixture(scope="module")
def servers(study):
    url, _, folder, _ = study
    options = ["--data-dir", str(folder), "--database", url, "--root-path", "/semsim"]
    command = [str(ROOT / "app.py"), *options, "--trusted-proxy", "127.0.0.1", "--port", "{port}"]
    two = [Server(folder, command), Server(folder, command)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMSIM_ADMIN", NAME)
        patch.setenv("SEMSIM_ADMIN_PASSWORD", PASSWORD)
        try:
            for one in two:
                one.start()
            yield two
        finally:
            for one in two:
                one.kill()


@pytest.fixture(scope="module")
def address(servers, tmp_path_factory):
    """Where nginx shows both, with a certificate of its own making."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        skip_or_fail("no nginx is installed")
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    made = [folder / "key.pem", folder / "certificate.pem"]
    told = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=lab.example.org",
        "-keyout",
    ]
    command = ["openssl", *told, str(made[0]), "-out", str(made[1])]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "nginx.conf").write_text(whole(folder, made, port, servers), encoding="utf-8")
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        yield f"https://127.0.0.1:{port}/semsim"
    finally:
        process.terminate()
        process.wait()


def whole(folder: Path, made: list[Path], port: int, servers: list[Server]) -> str:
    """deploy/nginx.conf with the ports and the certificate of this test, in what it lies in."""
    text = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    here = {
        TLS.format("private", "key"): str(made[0]),
        TLS.format("certs", "pem"): str(made[1]),
        "listen 443": f"listen 127.0.0.1:{port}",
        "127.0.0.1:7860": f"127.0.0.1:{servers[0].port}",
        "127.0.0.1:7861": f"127.0.0.1:{servers[1].port}",
    }
    for before, after in here.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    own = "".join(
        f"{one}_temp_path {folder / one};\n"
        for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = f"user {os.environ.get('USER', 'root')};\n" if os.geteuid() == 0 else ""
    begin = f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
    return f"{begin}events {{}}\nhttp {{\naccess_log off;\n{own}{text}}}\n"


def browser(address: str) -> httpx.Client:
    """Somebody who believes the certificate, as it was made a moment ago."""
    return httpx.Client(base_url=address, verify=False, timeout=120)


def headers(address: str) -> dict[str, str]:
    return {"origin": address.removesuffix("/semsim")}


def test_signing_in_leads_to_the_studio_below_the_path_with_a_safe_cookie(address):
    with browser(address) as ada:
        before = ada.get("/studio/", headers={"accept": "text/html"})
        assert (before.status_code, before.headers["location"][:14]) == (303, "/semsim/login?")
        given = {"name": NAME, "password": PASSWORD, "next": "/studio/overview"}
        reply = ada.post("/login", data=given, headers=headers(address))
        assert (reply.status_code, reply.headers["location"]) == (303, "/semsim/studio/overview")
        cookie = reply.headers["set-cookie"]
        assert "Path=/semsim/" in cookie
        assert "Secure" in cookie
        page = ada.get("/studio/overview")
        assert page.status_code == 200
        assert f"{address}/join/" in page.text
        drawn = ada.get("/studio/train", headers={"accept": "text/html"})
        assert f'"root":"{address}/studio"' in drawn.text
        assert ada.get("/metrics").status_code == 200


def test_fifty_pictures_are_labelled_and_both_processes_know_it(address, servers, study):
    _, store, folder, about = study
    truth = export_labels(store, about.id, folder / "images").set_index("item")
    with browser(address) as anna:
        assert anna.post(f"/join/{about.token}", data={"name": "Anna"}).status_code == 303
        n = 0
        while items := anna.get("/api/next?tab=t&n=10").json()["items"]:
            for item in items:
                picture = anna.get(item["images"][0].removeprefix("/semsim"))
                assert picture.headers["content-type"] == "image/png"
                vote = {"id": str(uuid.uuid4()), "item": item["item"], "tab": "t", "rt_ms": 900}
                shown = truth.loc[item["item"]]
                seen = shown["model"] <= f"net{n % MODELS}"  # of every original some and not others
                answer = shown["class_name"] if seen else "none"
                reply = anna.post("/api/vote", json={**vote, "answer": answer})
                assert reply.json()["status"] == "counted", reply.text
                n += 1
        assert n == PICTURES == progress(store, about.id).coverage[-1]
        told = "; ".join(f"{name}={value}" for name, value in anna.cookies.items())
    for one in servers:
        reply = httpx.get(f"{one.url}/semsim/api/study", headers={"cookie": told}, timeout=60)
        assert reply.json()["progress"]["done"] == PICTURES


def test_both_are_well_and_say_so_through_nginx(address, servers):
    for base in (address, *(f"{one.url}/semsim" for one in servers)):
        with browser(base) as anybody:
            assert anybody.get("/health").json()["status"] == "ok"
            assert anybody.get("/metrics").status_code == 403


def test_a_semsim_is_trained_and_compared_below_the_path(address, study):
    about = study[-1]
    with chromium() as opened:
        page = opened.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(LONG)
        page.goto(f"{address}/studio/train?study={about.id}")
        page.get_by_label("Name").fill(NAME)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(re.compile("/semsim/studio/train"))
        expect(page.locator("#learn-stock")).to_contain_text(f"{ORIGINALS} originals")
        page.locator("#learn-name input, #learn-name textarea").fill("deployed")
        page.locator("#learn-start").click()
        expect(page.locator("#learn-status [data-state=done]")).to_be_visible(timeout=LONG)
        page.goto(f"{address}/studio/compare?study={about.id}&tab=answer")
        expect(page.locator("#cmp-forest tbody")).to_contain_text("deployed", timeout=LONG)
        assert page.locator("#studio-frame").get_attribute("data-lost") is None
