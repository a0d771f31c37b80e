"""An authority of the tests' own, and a certificate for the names that Azure's services have.

Who may use a service does not belong here, see `entra`.
"""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.tls import server_context

LOGIN = "login.microsoftonline.com"
MANAGEMENT = "management.azure.com"
BLOBS = ".blob.core.windows.net"
DIAGNOSTICS = f"simulateddiagnostics{BLOBS}"  # where Azure keeps what machines print
_NAMES = (LOGIN, MANAGEMENT, f"*{BLOBS}")
_SYSTEM = Path("/etc/ssl/certs/ca-certificates.crt")
_DAY = datetime.timedelta(days=1)


class Authority:
    """A context manager: its files are gone afterwards."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sojourn-az-")
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = _name("Simulated Azure")
        authority = _builder(issuer, key, issuer, key.public_key())
        authority = authority.add_extension(x509.BasicConstraints(True, 0), critical=True)
        authority = authority.add_extension(_usage(signs=True), critical=True)
        self.certificate = _pem(authority.sign(key, hashes.SHA256()))
        self._leaf, self._leaf_key = _leaf(issuer, key)

    def __enter__(self) -> Authority:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @property
    def bundle(self) -> Path:
        """A file that clients trust: this authority and those of the system."""
        path = Path(self._folder.name, "authorities.pem")
        if not path.exists():
            usual = _SYSTEM.read_bytes() if _SYSTEM.exists() else b""
            path.write_bytes(self.certificate + usual)
        return path

    def context(self) -> ssl.SSLContext:
        """What a server needs to be trusted as any of Azure's services."""
        path = Path(self._folder.name, "server.pem")
        path.write_bytes(self._leaf + self._leaf_key)
        context = server_context(path)
        path.unlink()
        return context


def _leaf(issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> tuple[bytes, bytes]:
    own = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName(each) for each in _NAMES])
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = _builder(_name(MANAGEMENT), own, issuer, key.public_key())
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(server, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
    secret = own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return _pem(builder.sign(key, hashes.SHA256())), secret


def _builder(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
        # Python wants both to be named, from 3.13 on.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
