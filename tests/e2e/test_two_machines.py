"""Two machines serve one study: one PostgreSQL, one bucket, a data folder each."""

import hashlib
import json
import uuid
import zipfile
from io import BytesIO

import httpx
import pytest
from fsspec.core import url_to_fs
from helpers import ROOT, limit
from moto.server import ThreadedMotoServer
from studio import Server
from study_factory import SURE, fresh_database, write_set
from typer.testing import CliRunner

from annotation.cli.doctor import checks
from annotation.cli.main import app
from annotation.cli.serving import ServerParser
from annotation.web import proxies

PLACE = "s3://pictures/studies"


@pytest.fixture(scope="module")
def s3():
    """A server that speaks S3, with a bucket; it goes away when it is told to."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "ada")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "four words are good")
        url_to_fs(PLACE)[0].mkdir("pictures")
        yield server
        server.stop()


@pytest.fixture(scope="module")
def machines(s3, tmp_path_factory):
    """Two servers, a study that the first machine has made, and their folders."""
    folder = tmp_path_factory.mktemp("two")
    given = write_set(folder / "set", model="net", probabilities=SURE)
    with fresh_database("postgresql", folder) as url:
        shared = ["--database", url, "--image-store", PLACE]
        asked = ["--setting", "min_rt_ms=0", "--votes-per-item", "1"]
        made = CliRunner().invoke(
            app,
            ["create", "Shared", "--set", str(given), *asked, *shared, "--data-dir", f"{folder}/a"],
        )
        assert made.exit_code == 0, made.output
        two = [
            Server(folder / name, [str(ROOT / "app.py"), "--local", "--port", "{port}", *place])
            for name in "ab"
            for place in [[*shared, "--data-dir", str(folder / name)]]
        ]
        try:
            for one in two:
                one.start()
            yield (
                two,
                json.loads(CliRunner().invoke(app, ["list", "--json", *shared[:2]]).stdout)[
                    "studies"
                ],
            )
        finally:
            for one in two:
                one.kill()


def test_what_one_machine_made_is_shown_voted_on_and_exported_by_the_other(machines):
    (first, second), (study,) = machines
    with httpx.Client(base_url=second.url, timeout=limit(120)) as anna:
        headers = {"origin": second.url}
        joined = anna.post(study["link"], data={"name": "Anna"}, headers=headers)
        assert joined.status_code == 303
        items = anna.get("/api/next?tab=t&n=9").json()["items"]
        assert len(items) == study["items"]
        for item in items:
            for address in item["images"]:
                assert anna.get(address).content[:4] == b"\x89PNG"
            vote = {"id": str(uuid.uuid4()), "item": item["item"], "tab": "t", "answer": "none"}
            vote["version"] = 1
            assert anna.post("/api/vote", json=vote, headers=headers).json()["status"] == "counted"
        packed = anna.get(f"/studio/download/{study['id']}/hf.zip")
    with zipfile.ZipFile(BytesIO(packed.content)) as archive:
        pictures = {one: archive.read(one) for one in archive.namelist() if one.endswith(".png")}
    assert len(pictures) == 8
    for name, content in pictures.items():
        assert hashlib.sha256(content).hexdigest() in name
    for one in (first, second):
        assert not (one.data / "images").exists()
        told = httpx.get(f"{one.url}/health", timeout=limit(60))
        assert (told.status_code, told.json()["pictures"]) == (200, "ok")
    votes = httpx.get(f"{first.url}/studio/download/{study['id']}/votes.jsonl", timeout=limit(60))
    assert len(votes.text.splitlines()) == study["items"]


def pictures_of(place, tmp_path):
    """What doctor says of pictures at a place."""
    parser = ServerParser("doctor", "")
    proxies.add_options(parser)
    asked = ["--local", "--data-dir", str(tmp_path), "--image-store", place]
    (row,) = (one for one in checks(parser.parse_args(asked)) if one.what == "pictures")
    return row


def test_doctor_looks_at_the_bucket_and_makes_nothing(s3, tmp_path):
    files, _ = url_to_fs(PLACE)
    before = files.find("pictures")
    row = pictures_of("s3://pictures/elsewhere", tmp_path)
    assert (row.state, row.found) == ("ok", "none yet at s3://pictures/elsewhere")
    assert files.find("pictures") == before
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_that_is_not_there_ends_the_start_in_words(s3, tmp_path):
    given = write_set(tmp_path / "set", probabilities=SURE)
    asked = ["create", "x", "--set", str(given), "--data-dir", str(tmp_path / "data")]
    done = CliRunner().invoke(app, [*asked, "--image-store", "s3://no-such-bucket/x"])
    assert done.exit_code == 2
    assert "The specified bucket does not exist. Set AWS_ACCESS_KEY_ID" in done.output
    assert "--image-store" in done.output
