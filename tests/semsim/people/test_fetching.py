"""Fetching from a server of our own: whole, cut off and gone on with, wrong, and none there."""

import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from semsim.base.errors import DataError
from semsim.people.fetching import RemoteFile, archive_of, fetch_all, raw_file

CONTENT = bytes(range(256)) * 20


@pytest.fixture
def server():
    """Files by path; what each request asked for; whether parts are sent."""

    class Handler(BaseHTTPRequestHandler):
        files: ClassVar[dict[str, bytes]] = {}
        asked: ClassVar[list[str]] = []
        parts = True

        def do_GET(self):
            content, wanted = self.files.get(self.path), self.headers.get("Range")
            self.asked.append(wanted or "")
            if content is None:
                self.send_error(404)
                return
            begun = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.parts else 0
            if begun and begun >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if begun else 200)
            self.send_header("Content-Length", str(len(content) - begun))
            self.end_headers()
            self.wfile.write(content[begun:])

        def log_message(self, *words):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield Handler, f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def file_at(address, **more):
    return RemoteFile(address=f"{address}/one.csv", name="one.csv", **more)


def test_a_folder_appears_with_all_files_and_is_not_fetched_again(server, tmp_path):
    handler, address = server
    handler.files = {"/one.csv": CONTENT}
    reports = []
    folder = fetch_all([file_at(address)], tmp_path / "x", reports.append)
    assert (folder / "one.csv").read_bytes() == CONTENT
    assert (reports[-1].done, reports[-1].total) == (len(CONTENT), len(CONTENT))
    n = len(handler.asked)
    assert fetch_all([file_at(address)], tmp_path / "x") == folder
    assert len(handler.asked) == n
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("sends_parts", [True, False])
@pytest.mark.parametrize("so_far", [100, len(CONTENT)])
def test_what_was_cut_off_is_gone_on_with(server, tmp_path, sends_parts, so_far):
    handler, address = server
    handler.files, handler.parts, handler.asked = {"/one.csv": CONTENT}, sends_parts, []
    (tmp_path / "x.parts").mkdir()
    (tmp_path / "x.parts/one.csv").write_bytes(CONTENT[:so_far])
    folder = fetch_all([file_at(address)], tmp_path / "x")
    assert (folder / "one.csv").read_bytes() == CONTENT
    assert handler.asked == [f"bytes={so_far}-"]


@pytest.mark.parametrize("state", ["", "fedcba9", None])
def test_a_zip_of_another_state_is_not_kept(server, tmp_path, state):
    handler, address = server
    handler.files = {"/made.zip": zipped(tmp_path, state) if state is not None else b"log in"}
    wanted = RemoteFile(address=f"{address}/made.zip", name="made.zip", commit="abc")
    with pytest.raises(DataError, match="is not the state abc"):
        fetch_all([wanted], tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert list((tmp_path / "x.parts").iterdir()) == []


def test_without_a_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="--from FOLDER"):
        fetch_all([file_at("http://127.0.0.1:9")], tmp_path / "x")


def zipped(folder, state):
    """A repository as git packs it: the commit is the comment of the zip."""
    path = folder / "made.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.comment = state.encode()
        made.writestr("repository-1/table.csv", "a,b\n1,2\n")
    return path.read_bytes()


def test_a_zip_of_the_pinned_state_is_unpacked(server, tmp_path):
    handler, address = server
    handler.files = {"/made.zip": zipped(tmp_path, "abcdef0")}
    wanted = RemoteFile(address=f"{address}/made.zip", name="made.zip", commit="abc")
    folder = fetch_all([wanted], tmp_path / "x")
    assert (folder / "repository-1/table.csv").read_text() == "a,b\n1,2\n"


def test_addresses_name_the_state():
    (one,) = archive_of("who/what", "abc")
    assert (one.address, one.commit) == ("https://github.com/who/what/archive/abc.zip", "abc")
    two = raw_file("who/what", "abc", "data/one.csv")
    assert two.address == "https://raw.githubusercontent.com/who/what/abc/data/one.csv"
    assert two.name == "one.csv"
