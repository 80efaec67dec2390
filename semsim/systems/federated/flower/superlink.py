"""A training between machines over Flower (`flwr`), which is an optional extra with its own folder.

Flower's SuperLink runs beside the server, a SuperNode beside each client; between them goes TLS.
Flower only carries bytes here (`apps`): what is sent, computed and recovered is said by
`Meeting` and `Guest`, in this process.
"""

import importlib.util
import os
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SettingsError
from semsim.base.storage.places import checkout, files_of
from semsim.base.storage.ports import reserved_port
from semsim.systems.federated.flower.certificates import AUTHORITY, CERTIFICATE, KEY
from semsim.systems.federated.flower.meeting import Guest, Meeting, MeetingResult, Wire

RELAY = "SEMSIM_FLOWER_RELAY"  # as in `apps`, which only Flower's python can import
FLOWER = "SEMSIM_FLOWER"  # the folder of an environment with Flower
_BREATH = 0.1  # seconds until the next call is awaited after one that broke off
_LINGER = 10.0  # seconds in which a client's last answer can leave
_STARTING = 120.0  # seconds in which Flower's processes have to answer
_CONNECTION = "server"


def flower_folder() -> Path | None:
    """The environment that Flower is in: the one `FLOWER` names, this one, or that of the Makefile.

    None where there is none.
    """
    named = os.environ.get(FLOWER)
    if named:
        return Path(named)
    if importlib.util.find_spec("flwr") is not None:
        return Path(sys.prefix)
    own = Path(sys.prefix) / "flower"
    return own if (own / "bin" / "flower-superlink").exists() else None


def serve(
    make: Callable[[Wire], Meeting], address: str, certificates: Path | None, logs: Path
) -> MeetingResult:
    """Hold a meeting at `address` ("host:port") with whoever joins it.

    Args:
        make: The meeting over a wire.
        certificates: A folder as `write_certificates` makes it; None encrypts nothing.
        logs: A folder for what Flower says.

    Raises:
        SettingsError: Where Flower or a certificate is missing.
        DataError: Where the training cannot go on.
    """
    tls = _server_tls(certificates)
    with _Flower(logs) as flower, reserved_port() as control, reserved_port() as inner:
        flower.start(
            "flower-superlink",
            *("--fleet-api-address", address),
            *("--control-api-address", f"127.0.0.1:{control}"),
            *("--serverappio-api-address", f"127.0.0.1:{inner}"),
            "--disable-runtime-dependency-installation",
            *tls,
        )
        flower.wait_for(control)
        flower.submit(control, certificates)
        with flower.connection() as line:
            trained = make(_Relayed(line, flower)).held()
            line.send(None)
    return trained


def join(
    guest: Guest, address: str, authority: Path | None, logs: Path, *, patience: float = 3600.0
) -> bytes:
    """Take part in the meeting at `address` to its end; returns the released model (safetensors).

    Args:
        authority: The certificate that the server's has to be signed by; None takes an unencrypted
            server.
        patience: Seconds without a word from the server after which this ends. Raises what `serve`
            raises.
    """
    if authority is not None and not authority.is_file():
        raise SettingsError(f"There is no certificate {authority}; the server's {AUTHORITY} is it.")
    tls = ["--insecure"] if authority is None else ["--root-certificates", str(authority.resolve())]
    with _Flower(logs) as flower, reserved_port() as inner:
        flower.start(
            "flower-supernode",
            *("--superlink", address),
            *("--clientappio-api-address", f"127.0.0.1:{inner}"),
            *tls,
        )
        while guest.released is None:
            with flower.connection(patience) as line:
                line.send(guest.answer(*line.recv()))
            if guest.failure is not None:
                flower.linger()
                raise guest.failure
        flower.linger()
    return guest.released


class _Flower:
    """Flower's processes, which end with this, and the socket at which their apps call."""

    def __init__(self, logs: Path) -> None:
        folder = flower_folder()
        if folder is None:
            raise SettingsError(
                "Training between machines needs Flower, which is not installed: make flower sets "
                f"it up; or name the folder of an environment that has it in {FLOWER}. Training in "
                "one process needs nothing."
            )
        self.bin = folder / "bin"
        self.logs = logs
        self.home = tempfile.TemporaryDirectory(prefix="semsim-flower-")
        self.running: list[tuple[subprocess.Popen[bytes], Path]] = []
        key = secrets.token_bytes(32)
        self.listener = Listener(authkey=key)
        self.closed = threading.Event()
        self.calls: queue.Queue[Connection] = queue.Queue()
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(self.bin), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(_search()),
            "FLWR_HOME": self.home.name,
            "FLWR_TELEMETRY_ENABLED": "0",  # else Flower reports its use
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            RELAY: f"{self.listener.address}|{key.hex()}",
        }

    def __enter__(self) -> "_Flower":
        self.logs.mkdir(parents=True, exist_ok=True)
        threading.Thread(target=self._listen, daemon=True).start()
        if threading.current_thread() is threading.main_thread():  # else they would be left behind
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def __exit__(self, *_: object) -> None:
        for process, _log in self.running:
            process.terminate()
        for process, _log in self.running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.closed.set()
        self.listener.close()
        self.home.cleanup()

    def start(self, program: str, *arguments: str) -> None:
        """Start one of Flower's programs, which logs to a file of its name."""
        log = self.logs / f"{program}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(self.bin / program), *arguments],
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.running.append((process, log))

    def submit(self, control: int, certificates: Path | None) -> None:
        """Have the SuperLink at port `control` run `apps`."""
        home = Path(self.home.name)
        (home / "app").mkdir()
        shutil.copyfile(
            files_of("semsim.systems.federated.flower") / "app.toml",
            home / "app" / "pyproject.toml",
        )
        secured = "insecure = true"
        if certificates is not None:
            secured = f"root-certificates = '{(certificates / AUTHORITY).resolve()}'"
        (home / "config.toml").write_text(
            f"[superlink.{_CONNECTION}]\naddress = 'localhost:{control}'\n{secured}\n",
            encoding="utf-8",
        )
        done = subprocess.run(
            [str(self.bin / "flwr"), "run", str(home / "app"), _CONNECTION],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_STARTING,
        )
        if done.returncode:
            raise DataError(f"Flower did not take the training: {done.stdout}{done.stderr}")

    def wait_for(self, port: int) -> None:
        """Return once something answers at `port` of this machine."""
        ends = time.monotonic() + _STARTING
        while time.monotonic() < ends:
            self.check()
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    return
            except OSError:
                time.sleep(0.2)
        raise DataError(f"Flower did not start within {_STARTING:g} seconds; see {self.logs}.")

    @contextmanager
    def connection(self, patience: float = _STARTING) -> Iterator[Connection]:
        """The next call of one of Flower's apps."""
        ends = time.monotonic() + patience
        while True:
            self.check()
            try:
                line = self.calls.get(timeout=0.5)
                break
            except queue.Empty:
                if time.monotonic() > ends:
                    raise DataError(
                        f"Nothing was heard for {patience:g} seconds; Flower's side of it is in "
                        f"{self.logs}."
                    ) from None
        with line:
            yield line

    def check(self) -> None:
        """`DataError` where one of the processes has ended."""
        for process, log in self.running:
            if process.poll() is not None:
                said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise DataError(f"Flower has ended ({log}): {said}")

    def linger(self) -> None:
        """Give the last answer time to leave, or the server to hang up."""
        ends = time.monotonic() + _LINGER
        while time.monotonic() < ends and all(one.poll() is None for one, _ in self.running):
            time.sleep(0.2)

    def _listen(self) -> None:
        while True:
            try:
                self.calls.put(self.listener.accept())
            except (OSError, EOFError, AuthenticationError):
                # Somebody who called is gone before a word was said: others will call.
                if self.closed.wait(_BREATH):
                    return


@dataclass
class _Relayed:
    """`Wire` by what `apps.serve` does with Flower's grid."""

    line: Connection
    flower: _Flower
    refused: int = 0

    def nodes(self) -> list[int]:
        found: list[int] = self._ask("nodes")
        return found

    def push(self, node: int, kind: str, fields: Mapping[str, Any]) -> str:
        message: str | None = self._ask("push", node, kind, dict(fields))
        self.refused += not message
        return message or f"{_REFUSED}{self.refused}"  # that node has just gone

    def pull(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any] | None]:
        refused = [message for message in ids if message.startswith(_REFUSED)]
        rest = [message for message in ids if message not in refused]
        found: dict[str, Mapping[str, Any] | None] = self._ask("pull", rest) if rest else {}
        return {**dict.fromkeys(refused), **found}

    def _ask(self, *words: Any) -> Any:
        try:
            self.line.send(words)
            return self.line.recv()
        except (EOFError, OSError) as error:
            self.flower.check()
            raise DataError(f"Flower has hung up; see {self.flower.logs}.") from error


_REFUSED = "refused "


def _server_tls(certificates: Path | None) -> list[str]:
    if certificates is None:
        return ["--insecure"]
    found = []
    for option, name in (
        ("--ssl-ca-certfile", AUTHORITY),
        ("--ssl-certfile", CERTIFICATE),
        ("--ssl-keyfile", KEY),
    ):
        path = (certificates / name).resolve()
        if not path.is_file():
            raise SettingsError(
                f"{certificates} has no {name}. semsim-studio federated certificates makes a "
                "folder with all files."
            )
        found += [option, str(path)]
    return found


def _search() -> list[str]:
    """Return the paths where Flower's python finds `apps`; an installed product's has it anyhow."""
    ours = checkout()
    return [one for one in (str(ours) if ours else "", os.environ.get("PYTHONPATH", "")) if one]
