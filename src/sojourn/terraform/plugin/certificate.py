"""The certificate of the plugin, which Terraform insists on.

Making one takes a third of the time in which the provider starts, and Terraform starts it three
times for one command. So it is kept for some days, in the cache of the user:

    CACHE/sojourn/terraform/certificate.pem     the key and its certificate, for this user only

It protects nothing that the folder of the socket does not: whoever can read it can be the user.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sojourn.core.userfolders import cache_home

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Certificate", "certificate"]

_KEPT = 10 * 24 * 3600.0  # seconds
# An apply may wait for a long time between two calls; connections stay, but may be new.
_VALID = 60 * 24 * 3600.0
_PARTS = re.compile(rb"(-----BEGIN PRIVATE KEY.*?KEY-----\n)(-----BEGIN CERT.*?CATE-----\n)", re.S)


class Certificate(NamedTuple):
    """A key and its certificate."""

    key: bytes
    chain: bytes

    @property
    def handshake(self) -> str:
        """The certificate as the handshake wants it."""
        return b"".join(self.chain.splitlines()[1:-1]).rstrip(b"=").decode()


def certificate() -> Certificate:
    """The one that is kept, or a new one; where none can be kept, each run has its own."""
    path = cache_home() / "sojourn" / "terraform" / "certificate.pem"
    kept = _read(path)
    if kept:
        return kept
    made = _made()
    with suppress(OSError):
        _write(path, made.key + made.chain)
    return made


def _read(path: Path) -> Certificate | None:
    """One that is this user's alone, young and whole."""
    try:
        with open(path, "rb") as file:
            info = os.fstat(file.fileno())
            content = file.read(1 << 16)
    except OSError:
        return None
    ours = info.st_uid == os.geteuid() and not stat.S_IMODE(info.st_mode) & 0o077
    young = 0 <= time.time() - info.st_mtime < _KEPT
    parts = _PARTS.fullmatch(content)
    return Certificate(parts[1], parts[2]) if ours and young and parts else None


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _made() -> Certificate:
    """A self-signed certificate."""
    # Imported here: it takes long, and mostly there is one.
    from datetime import datetime, timedelta, timezone

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(seconds=_VALID))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        made.public_bytes(serialization.Encoding.PEM),
    )
