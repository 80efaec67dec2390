"""Web servers in front of processes of the product, with the files of `deploy/`."""

import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from helpers import ROOT, limit, until
from programs import needed

from semsim.base.storage.ports import reserved_port
from semsim.systems.federated.flower.certificates import CERTIFICATE, KEY, write_certificates

NAME = "lab.example.org"  # as the files call this machine
STICKY = "    hash $cookie_semsim_account$cookie_semsim_session consistent;\n"


@contextmanager
def nginx(
    folder: Path, ports: Sequence[int], other: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """The studio's address behind nginx with deploy/nginx.conf, but for what is `other` in it.

    ports: of the processes. The certificate is of its own making.
    """
    write_certificates(folder / "tls", [NAME], days=2)
    own = "".join(
        f"{one}_temp_path {folder / one};\n"
        for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = f"user {os.environ.get('USER', 'root')};\n" if os.geteuid() == 0 else ""
    begin = f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
    config = folder / "nginx.conf"
    command = [needed("nginx"), "-p", str(folder), "-c", str(config)]
    with reserved_port() as port:
        here = {
            f"/etc/ssl/private/{NAME}.key": str(folder / "tls" / KEY),
            f"/etc/ssl/certs/{NAME}.pem": str(folder / "tls" / CERTIFICATE),
            "listen 443": f"listen 127.0.0.1:{port}",
            **other,
        }
        text = rewritten("nginx.conf", here, ports)
        config.write_text(f"{begin}{beside()}http {{\naccess_log off;\n{own}{text}}}\n")
        with _running(command, folder, port):
            yield f"https://127.0.0.1:{port}/semsim"


def beside() -> str:
    """Return the lines that deploy/nginx.conf asks for in nginx's own file."""
    text = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    return "".join(f"{line}\n" for line in re.findall(r"^# ([a-z_ {]+ \d+;.*)$", text, re.M))


@contextmanager
def caddy(folder: Path, ports: Sequence[int]) -> Iterator[str]:
    """The same behind Caddy with deploy/Caddyfile and a certificate that Caddy signs itself."""
    config = folder / "Caddyfile"
    command = [needed("Caddy"), "run", "--config", str(config)]
    options = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tservers {"
    with reserved_port() as port:
        here = {
            f"{NAME} {{\n": f"https://127.0.0.1:{port} {{\n\ttls internal\n",
            "{\n\tservers {": options,
        }
        config.write_text(rewritten("Caddyfile", here, ports), encoding="utf-8")
        with _running(command, folder, port):
            yield f"https://127.0.0.1:{port}/semsim"


def rewritten(name: str, here: Mapping[str, str], ports: Sequence[int]) -> str:
    """A file of `deploy/` with what is otherwise here; each of it stands there once."""
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    there = {f"127.0.0.1:{7860 + n}": f"127.0.0.1:{port}" for n, port in enumerate(ports)}
    for before, after in {**here, **there}.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def _shakes_hands(port: int) -> bool:
    """Whether TLS is spoken there: Caddy listens before it has signed its certificate."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limit(5)) as plain:
            anybody.wrap_socket(plain, server_hostname="127.0.0.1").close()
    except OSError:
        return False
    return True


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "told.log").open("wb") as told:
        around = {**os.environ, "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        process = subprocess.Popen(command, stdout=told, stderr=told, cwd=folder, env=around)
    try:
        until(lambda: _shakes_hands(port))
        yield
    finally:
        process.terminate()
        process.wait()
