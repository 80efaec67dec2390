import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made_federated import SETTINGS, made_data
from safetensors.torch import load_file

from semsim.defences.pbpfl_settings import Pbpfl
from semsim.errors import SettingsError
from semsim.federated.flower import is_installed, serve
from semsim.federated.rounds import train
from semsim.federated.settings import FederatedSettings

TESTS = Path(__file__).resolve().parents[2]
ROOT = TESTS.parent
HOW = (
    "Flower needs older packages than the requirements, so it gets an environment of its own: "
    "make flower, or name another python in SEMSIM_FLOWER_PYTHON"
)


def flower_python() -> str | None:
    """A python that can import Flower: this one, the one named, or the one in .venv/flower."""
    if is_installed():
        return sys.executable
    own = ROOT / ".venv" / "flower" / "bin" / "python"
    found = os.environ.get("SEMSIM_FLOWER_PYTHON", str(own) if own.exists() else "")
    return found or None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.skipif(flower_python() is None, reason=HOW)
def test_processes_on_a_network_train_the_same_weights(tmp_path):
    python = flower_python()
    assert python is not None
    address, path = f"127.0.0.1:{free_port()}", tmp_path / "weights.safetensors"
    search = os.pathsep.join([str(ROOT), str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1"}
    script = str(Path(__file__).with_name("flower_process.py"))
    logs = {role: tmp_path / f"{role}.log" for role in ("server", "0", "1")}
    processes = [
        subprocess.Popen(
            [python, script, address, role, str(path)],
            env=environment,
            stderr=log.open("w"),
        )
        for role, log in logs.items()
    ]
    try:  # clients first: where one has died the server would wait for long
        for process, log in reversed(list(zip(processes, logs.values(), strict=True))):
            assert process.wait(timeout=150) == 0, log.read_text()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    expected = train(SETTINGS, made_data()).model.state_dict()
    found = load_file(path)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-12, atol=1e-12), name


@pytest.mark.skipif(is_installed(), reason="Flower is installed")
def test_without_flower_the_error_says_what_to_install():
    with pytest.raises(SettingsError, match="Install `flwr`"):
        serve(SETTINGS, made_data(), "127.0.0.1:1")


def test_zero_sum_masks_are_refused_over_the_network():
    hidden = FederatedSettings(
        scheme="pbpfl", masks=Pbpfl(noise_scope="round", zero_sum=True), clients=2
    )
    with pytest.raises(SettingsError, match="agree on secrets"):
        serve(hidden, made_data(), "127.0.0.1:1")
