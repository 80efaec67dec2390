"""Certificates for a trial: an authority of one's own, and a server's that it has signed.

A client trusts the authority, whose certificate it is given; the server's name is checked by it.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from semsim.base.errors import MissingExtraError, SettingsError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )
    from cryptography.x509.oid import NameOID
except ModuleNotFoundError as error:
    raise MissingExtraError("Certificates of federated servers", "attacks") from error

AUTHORITY, CERTIFICATE, KEY = "authority.crt", "server.crt", "server.key"
_HERE = ("localhost", "127.0.0.1", "::1")  # the server talks to itself, too


def write_certificates(folder: Path, hosts: Sequence[str], days: int = 365) -> None:
    """Write `AUTHORITY`, `CERTIFICATE` and `KEY` for a server that is reached as one of `hosts`.

    Args:
        hosts: Names or addresses. The authority's key is thrown away: another server needs another
            folder.

    Raises:
        SettingsError: Where the folder has some already.
    """
    there = [name for name in (AUTHORITY, CERTIFICATE, KEY) if (folder / name).exists()]
    if there:
        raise SettingsError(f"{folder} has {there[0]} already. Choose another folder.")
    root, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name("semsim trial authority"), _name(hosts[0] if hosts else _HERE[0])
    authority = (
        _builder(issuer, issuer, root.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root, SHA256())
    )
    names = [_general(host) for host in dict.fromkeys([*hosts, *_HERE])]
    certificate = (
        _builder(issuer, subject, own.public_key(), days)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(root, SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / AUTHORITY).write_bytes(authority.public_bytes(Encoding.PEM))
    (folder / CERTIFICATE).write_bytes(certificate.public_bytes(Encoding.PEM))
    path = folder / KEY
    path.touch(mode=0o600)
    path.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
