import socket
import ssl
import stat
import threading

import pytest

from semsim.base.errors import SettingsError
from semsim.systems.federated.flower.certificates import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    write_certificates,
)


def shaken(folder, authority, name):
    """The TLS version that a server with these certificates and a client agree on."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    client = ssl.create_default_context(cafile=authority)
    here, there = socket.socketpair()

    def answer():
        try:
            server.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(here, server_hostname=name) as line:
            return line.version()
    finally:
        here.close()
        thread.join()


@pytest.mark.parametrize("name", ["server.example", "10.1.2.3", "localhost", "127.0.0.1"])
def test_a_client_with_the_authority_takes_the_server_by_its_names(tmp_path, name):
    write_certificates(tmp_path / "new", ["server.example", "10.1.2.3"])
    assert shaken(tmp_path / "new", tmp_path / "new" / AUTHORITY, name) == "TLSv1.3"


def test_another_name_or_authority_is_refused(tmp_path):
    for name in ("one", "other"):
        write_certificates(tmp_path / name, ["server.example"])
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(tmp_path / "one", tmp_path / "one" / AUTHORITY, "elsewhere.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shaken(tmp_path / "one", tmp_path / "other" / AUTHORITY, "server.example")


def test_the_key_is_for_its_owner_and_nothing_is_overwritten(tmp_path):
    write_certificates(tmp_path, [])
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600
    with pytest.raises(SettingsError, match=r"already\. Choose another"):
        write_certificates(tmp_path, [])
