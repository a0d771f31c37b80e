"""Who is who in the cluster: an authority, certificates, and files to log in with."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.kube.layout import API, API_SERVICE, GATEWAY, NODES

__all__ = ["create"]

_VALID = datetime.timedelta(days=365)
_PEM = serialization.Encoding.PEM


def create(folder: Path) -> None:
    """All keys and certificates of a new cluster."""
    folder.mkdir(mode=0o700, parents=True)
    authority = _Authority(folder)
    api_names = [GATEWAY, API_SERVICE, "127.0.0.1", "kubernetes", "kubernetes.default.svc"]
    authority.issue("apiserver", "kube-apiserver", names=api_names)
    authority.issue("apiserver-to-kubelet", "apiserver-to-kubelet", "system:masters")
    authority.log_in("admin", "admin", "system:masters")
    for program in ("controller-manager", "scheduler", "proxy"):
        authority.log_in(program, f"system:kube-{program}")
    for node in NODES:
        user = f"system:node:{node.name}"
        authority.log_in(f"kubelet-{node.name}", user, "system:nodes")
        names = [node.name, node.address]
        authority.issue(f"serving-{node.name}", user, "system:nodes", names)
    accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write(folder / "accounts.key", _private(accounts))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    _write(folder / "accounts.pub", accounts.public_key().public_bytes(_PEM, public))


class _Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("sojourn-test", "")
        public = self._key.public_key()
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _draft(self._name, self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._certificate = certificate.public_bytes(_PEM)
        _write(folder / "ca.crt", self._certificate)
        _write(folder / "ca.key", _private(self._key))

    def issue(
        self, file: str, user: str, group: str = "", names: list[str] | None = None
    ) -> tuple[bytes, bytes]:
        """A certificate with its key, for a client or a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        draft = (
            _draft(_name(user, group), self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(issuer, critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        )
        if names:
            alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
            draft = draft.add_extension(alternatives, critical=False)
        certificate = draft.sign(self._key, hashes.SHA256()).public_bytes(_PEM)
        _write(self._folder / f"{file}.crt", certificate)
        _write(self._folder / f"{file}.key", _private(key))
        return certificate, _private(key)

    def log_in(self, file: str, user: str, group: str = "") -> None:
        """A kubeconfig that needs no other file."""
        certificate, key = self.issue(file, user, group)
        cluster = {"server": API, "certificate-authority-data": _base64(self._certificate)}
        login = {
            "client-certificate-data": _base64(certificate),
            "client-key-data": _base64(key),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sojourn-test", "cluster": cluster}],
            "users": [{"name": user, "user": login}],
            "contexts": [{"name": "test", "context": {"cluster": "sojourn-test", "user": user}}],
            "current-context": "test",
        }
        _write(self._folder / f"{file}.kubeconfig", json.dumps(config, indent=2).encode())


def _draft(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
    )


def _name(user: str, group: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
