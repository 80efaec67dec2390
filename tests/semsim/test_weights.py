import hashlib
import http.server
import json
import os
import pwd
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from made_weights import make_classifier, make_semsim
from safetensors.torch import load_file

from semsim.base.errors import UnknownNameError, WeightsError
from semsim.learning.pretrain import PretrainSettings, save_start
from semsim.targets.checkpoint import TargetState, write_state
from semsim.targets.model import load_target
from semsim.weights import (
    CHECKPOINTS,
    FORMAT,
    download,
    locate,
    read_facts,
    read_manifest,
    search_folders,
    sha256_of,
    weight_file,
    write_tensors,
)

CONTENT = b"these are the weights" * 100


def manifest(folder: Path, url: str = "http://127.0.0.1:9/net.pth", **changes) -> Path:
    """A checkpoints folder whose manifest names one file, `net.pth`, holding CONTENT."""
    entry = {
        "file": "net.pth",
        "url": url,
        "source": "a test",
        "licence": "none",
        "used_by": "nothing",
        "bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        **changes,
    }
    entry = {key: value for key, value in entry.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"format": FORMAT, "files": {"net": entry}}))
    return folder


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def served(tmp_path):
    """A folder and the address of a web server on it."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/net.pth"
    server.shutdown()
    server.server_close()


def test_the_products_manifest_knows_every_file_completely():
    for name, entry in read_manifest().items():
        assert entry.name == name
        assert len(entry.sha256) == 64
        assert entry.bytes > 1_000_000
        assert entry.url.startswith("https://")
        # both publishers put the first 8 digits of the sha256 into the file's name
        assert entry.sha256[:8] in entry.file


def test_a_folder_without_a_manifest_gets_the_products_own(tmp_path):
    assert read_manifest(tmp_path) == read_manifest(CHECKPOINTS)


def test_a_genuine_file_is_found_in_checkpoints_first_then_in_torch_home(tmp_path):
    folder = manifest(tmp_path / "checkpoints")
    first, second = search_folders(folder)
    assert second == tmp_path / "torch-home" / "hub" / "checkpoints"
    second.mkdir(parents=True)
    (second / "net.pth").write_bytes(CONTENT)
    assert locate("net", folder) == second / "net.pth"
    (first / "net.pth").write_bytes(CONTENT)
    assert locate("net", folder) == first / "net.pth"


def test_a_missing_file_says_which_where_from_and_how(tmp_path):
    folder = manifest(tmp_path)
    with pytest.raises(WeightsError) as caught:
        locate("net", folder)
    text = str(caught.value)
    for part in ("net.pth is missing", str(folder), "hub", "http://127.0.0.1:9/net.pth"):
        assert part in text
    assert "semsim-studio weights net --download" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CONTENT[:-1], "cut short: 2099 of 2100 bytes"),
        (b"x" + CONTENT[1:], "another file: its sha256 is"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    ],
)
def test_each_way_of_being_wrong_has_its_own_words(tmp_path, content, words):
    folder = manifest(tmp_path)
    (folder / "net.pth").write_bytes(content)
    with pytest.raises(WeightsError, match=words):
        locate("net", folder)


def test_a_prefix_of_the_hash_is_checked_where_the_whole_is_unknown(tmp_path):
    digest = hashlib.sha256(CONTENT).hexdigest()
    folder = manifest(tmp_path, sha256=None, sha256_prefix=digest[:8], bytes=None)
    (folder / "net.pth").write_bytes(CONTENT)
    assert locate("net", folder).name == "net.pth"
    (folder / "net.pth").write_bytes(CONTENT + b".")
    with pytest.raises(WeightsError, match=f"expected {digest[:8]}…"):
        locate("net", folder)


def test_a_changed_file_is_hashed_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    before = sha256_of(path)
    path.write_bytes(b"three")
    assert sha256_of(path) == hashlib.sha256(b"three").hexdigest() != before


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": None},
        {"sha256": "abc"},
        {"file": "../net.pth"},
        {"colour": "red"},
        {"url": None},
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused(tmp_path, changes):
    with pytest.raises(WeightsError, match="manifest"):
        read_manifest(manifest(tmp_path, **changes))


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(UnknownNameError, match="Known: net"):
        weight_file("nets", manifest(tmp_path))


def test_download_fetches_checks_and_reports(tmp_path, served):
    source, url = served
    (source / "net.pth").write_bytes(CONTENT)
    folder = manifest(tmp_path / "checkpoints", url=url)
    reports = []
    assert download("net", folder, reports.append) == folder / "net.pth"
    assert (folder / "net.pth").read_bytes() == CONTENT
    assert (reports[-1].done, reports[-1].total) == (len(CONTENT), len(CONTENT))
    assert sorted(p.name for p in folder.iterdir()) == ["manifest.json", "net.pth"]


def test_a_genuine_file_is_not_fetched_again(tmp_path):
    folder = manifest(tmp_path)  # its address answers nobody
    (folder / "net.pth").write_bytes(CONTENT)
    assert download("net", folder) == folder / "net.pth"


def test_download_keeps_nothing_that_is_not_the_file(tmp_path, served):
    source, url = served
    (source / "net.pth").write_bytes(b"<html>please log in</html>")
    folder = manifest(tmp_path / "checkpoints", url=url)
    with pytest.raises(WeightsError, match="Nothing was kept"):
        download("net", folder)
    assert [p.name for p in folder.iterdir()] == ["manifest.json"]


def test_download_without_a_network_says_what_to_do(tmp_path):
    folder = manifest(tmp_path)
    with pytest.raises(WeightsError, match="could not be fetched") as caught:
        download("net", folder)
    assert str(folder / "net.pth") in str(caught.value)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_weights_may_be_read_by_whom_a_card_may_be_read(umask, tmp_path):
    """The umask alone decides, for each kind of weight file that is made here."""
    before = os.umask(umask)
    try:
        (tmp_path / "mine.card.md").write_text("a card")
        model = make_classifier(tmp_path / "target.safetensors")
        save_start(model, tmp_path / "start.safetensors", PretrainSettings(), {})
        make_semsim(tmp_path / "mine.safetensors")
        state = TargetState(epoch=1, lr=0.1, rng=torch.get_rng_state(), model={}, momentum={})
        write_state(tmp_path / "target.part", state, "x")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(modes, 0o666 & ~umask)
    assert len(modes) == 5
    assert torch.equal(load_target(tmp_path / "target.safetensors").head.weight, model.head.weight)


def test_the_same_content_makes_the_same_file(tmp_path):
    tensors = {"b": torch.arange(3.0), "a": torch.ones(2, 2, dtype=torch.int64)}
    facts = {name: f"ö {name}" for name in "kfacbe"}
    paths = [tmp_path / f"{number}.safetensors" for number in range(4)]
    for path in paths:
        write_tensors(path, tensors, "made/1", facts)
    assert len({sha256_of(path) for path in paths}) == 1
    assert read_facts(paths[0], "made/1") == facts
    again = load_file(paths[0])
    assert all(torch.equal(again[name], value) for name, value in tensors.items())


def test_what_a_network_has_twice_is_written_under_both_names(tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    tensors = {"first": shared, "again": shared, "part": shared[1], "none": torch.zeros(0)}
    write_tensors(tmp_path / "tied.safetensors", tensors, "made/1", {})
    found = load_file(tmp_path / "tied.safetensors")
    assert all(torch.equal(found[name], value) for name, value in tensors.items())


def test_a_user_whom_the_system_does_not_know_is_told_where_weights_were_looked_for(monkeypatch):
    for name in ("HOME", "TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as the system of nobody it knows
    assert search_folders()[1].parts[-2:] == ("hub", "checkpoints")
