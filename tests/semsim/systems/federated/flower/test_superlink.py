"""A training over three processes and TLS, as the page types it, and a client that dies."""

import os
import re
import shlex
import socket
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import copies
import pytest
import torch
from helpers import ROOT, limit, until
from programs import skip_without
from safetensors.torch import load_file

from semsim.base.errors import SettingsError
from semsim.systems.federated.comparison import load
from semsim.systems.federated.flower import superlink
from semsim.systems.federated.flower.meeting import Guest
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import FederatedSettings, Pbpfl

PAGE = (ROOT / "docs/how-to/federated.md").read_text(encoding="utf-8")
TYPED = re.search(
    r"^```text\n(semsim-studio federated certificates.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)
PATIENCE = limit(500)  # seconds, on a machine that does much else
# What the page trains, in one process and in a round less: each message takes a process of Flower.
SETTINGS = FederatedSettings(
    scheme="pbpfl", clients=2, rounds=2, masks=Pbpfl(noise_scope="round", zero_sum=True)
)


class Machines:
    """The page's lines, each in a session of its own; example addresses become this machine's."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.running = {}

    def words(self, line, *more):
        line = re.sub(r"(0\.0\.0\.0|server\.example):8080", f"localhost:{self.port}", line)
        return [str(ROOT / "app.py"), *shlex.split(line)[1:], *more]

    def begin(self, name, line, *more):
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running[name] = copies.begin(
                self.words(line, *more),
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
                out=log,
            )

    def die(self, name):
        """What happens to all processes of a machine whose plug is pulled."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def said(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self):
        for name in list(self.running):
            self.die(name)


@pytest.fixture
def machines(tmp_path, port):
    if superlink.flower_folder() is None:
        skip_without("Flower")
    found = Machines(tmp_path, port)
    yield found
    found.end()


@pytest.mark.timeout(2 * PATIENCE)
def test_the_commands_of_the_page_train_and_a_client_that_died_comes_back(machines):
    make, serve, first, second = TYPED.group(1).splitlines()
    machines.begin("certificates", make)
    assert machines.running["certificates"].wait(timeout=limit(60)) == 0, machines.said(
        "certificates"
    )
    machines.begin("server", serve, "--secret-seed", "0", "--rounds", "2")
    machines.begin("first", first)
    machines.begin("second", second)
    log = machines.folder / "data/runs/client-1/flower/flower-supernode.log"
    ends = time.monotonic() + PATIENCE

    def has_work():
        """Whether it was greeted, and then got a model to work on."""
        assert machines.running["server"].poll() is None, machines.said("server")
        return log.exists() and log.read_text(errors="replace").count("Received successfully") > 1

    until(has_work, 500, lambda: machines.said("server"))
    machines.die("second")
    machines.begin("again", second)
    for name in ("server", "first", "again"):
        left = max(1.0, ends + PATIENCE - time.monotonic())
        assert machines.running[name].wait(timeout=left) == 0, machines.said(name)
    assert re.search("Client 1 is (lost|there, in the place)", machines.said("server"))
    expected = train(SETTINGS, load("digits").data)
    found = load_file(machines.folder / "data/runs/together/model.safetensors")
    for name, value in expected.model.state_dict().items():
        assert torch.allclose(found[name], value, rtol=1e-12, atol=1e-12), name
    released = load_file(machines.folder / "data/runs/client-1/model.safetensors")
    for name, value in expected.released.state_dict().items():
        assert torch.allclose(released[name], value, rtol=1e-9, atol=1e-9), name


def test_without_flower_the_error_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.setattr(superlink, "flower_folder", lambda: None)
    guest = Guest(0, lambda _: load("digits").data)
    with pytest.raises(SettingsError, match="make flower"):
        superlink.join(guest, "localhost:1", None, tmp_path)


def test_what_tls_needs_is_asked_for_before_anything_starts(tmp_path):
    guest = Guest(0, lambda _: load("digits").data)
    with pytest.raises(SettingsError, match="There is no certificate"):
        superlink.join(guest, "localhost:1", tmp_path / "authority.crt", tmp_path / "logs")
    with pytest.raises(SettingsError, match=r"has no authority\.crt.*federated certificates"):
        superlink.serve(
            lambda _: pytest.fail("a meeting"), "localhost:1", tmp_path, tmp_path / "logs"
        )
    assert not (tmp_path / "logs").exists()


def test_the_relay_is_called_the_same_at_both_ends():
    """`apps` cannot be imported here: Flower is in an environment of its own."""
    other = (ROOT / "semsim/systems/federated/flower/apps.py").read_text()
    assert f'RELAY = "{superlink.RELAY}"' in other


def test_a_call_that_breaks_off_keeps_no_other_from_being_taken(tmp_path, monkeypatch):
    """Flower's own programs are short-lived, and one may be killed while it says who it is."""
    monkeypatch.setattr(superlink, "flower_folder", lambda: tmp_path)
    monkeypatch.setattr(superlink.signal, "signal", lambda *_: None)
    with superlink._Flower(tmp_path) as running:
        address = running.listener.address
        key = bytes.fromhex(running.environment[superlink.RELAY].rpartition("|")[2])
        with socket.socket(socket.AF_UNIX) as broken:
            broken.connect(address)
        with pytest.raises(AuthenticationError):
            Client(address, authkey=b"another")
        with Client(address, authkey=key) as line:
            line.send("here")
            assert running.calls.get(timeout=limit(30)).recv() == "here"
