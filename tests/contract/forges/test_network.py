"""Forges behind proxies, and with certificates that nobody else trusts."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sojourn import runners
from sojourn.core.errors import InvalidInput, Transient
from sojourn.forges import network
from tests.contract.forges.bench import Bench
from tests.contract.forges.kits import FORGES
from tests.simforge.server import SimForge, served

_DAY = datetime.timedelta(days=1)


@pytest.fixture(autouse=True)
def usual_way() -> Iterator[None]:
    """What a launch configured is forgotten."""
    yield
    network._openers.clear()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of an authority that is its own server, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forge")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(True, 0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return paths


@pytest.fixture
def forge(certificate: tuple[Path, Path], request: pytest.FixtureRequest) -> Iterator[SimForge]:
    """One driver is enough: all call by the same functions."""
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(*certificate)
    private = request.node.get_closest_marker("private") is not None
    with served(FORGES["github"](), tls=secured if private else None) as made:
        made.driver = "github"
        yield made


@pytest.mark.private
def test_a_certificate_of_a_private_authority(
    bench: Bench, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Transient, match="set --ca-file if its certificate is from a private CA"):
        bench.launch()
    bench.launch(ca_file=str(certificate[0]), idle_timeout=2, token_on_machine=True)
    job = bench.job("curl --version >/dev/null; test -s $SSL_CERT_FILE && echo trusted")
    assert "trusted" in bench.finished(job).log
    bench.ended(bench.launched[0])
    assert bench.forge.work.runners == {}


def test_a_file_without_certificates(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing\n")
    with pytest.raises(InvalidInput, match="has no PEM certificate"):
        bench.launch(ca_file=str(tmp_path / "empty.pem"))
    assert runners.list() == []


def test_a_forge_behind_a_proxy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forge itself is the proxy: its name is known to nobody else."""
    monkeypatch.setenv("http_proxy", bench.forge.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    address = bench.forge.repo.replace(bench.forge.url, "http://forge.invalid")
    through = {"http_proxy": bench.forge.url}
    given = {"idle_timeout": 2, "token_on_machine": True, "environment": through}
    bench.launch(repo=address, **given)
    assert "done" in bench.finished(bench.job()).log
    bench.ended(bench.launched[0])
    assert bench.forge.work.runners == {}
