"""Forges behind proxies, and with certificates that nobody else trusts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn import runners
from sojourn.core.errors import InvalidInput, Transient
from sojourn.forges import network
from tests.contract.forges.bench import Bench
from tests.contract.forges.kits import FORGES
from tests.simforge.server import SimForge, served
from tests.simforge.tls import Certificate, make_certificate

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def usual_way() -> Iterator[None]:
    """What a launch configured is forgotten."""
    yield
    network._openers.clear()
    network._trusted.clear()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def forge(certificate: Certificate, request: pytest.FixtureRequest) -> Iterator[SimForge]:
    """One driver is enough: all call by the same functions."""
    private = request.node.get_closest_marker("private") is not None
    with served(FORGES["github"](), tls=certificate.secured() if private else None) as made:
        made.driver = "github"
        yield made


@pytest.mark.private
def test_a_certificate_of_a_private_authority(
    bench: Bench, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Transient, match=r"set ca_file \(--ca-file\) or SSL_CERT_FILE"):
        bench.launch()
    bench.launch(ca_file=str(certificate.file), idle_timeout=2, token_on_machine=True)
    job = bench.job("curl --version >/dev/null; test -s $SSL_CERT_FILE && echo trusted")
    assert "trusted" in bench.finished(job).log
    bench.ended(bench.launched[0])
    assert bench.forge.work.runners == {}


@pytest.mark.private
def test_another_program_removes_it_with_the_same_certificates(
    bench: Bench, certificate: Certificate
) -> None:
    runner = bench.launch(ca_file=certificate.file.read_text())
    usual = network._openers, network._trusted
    for each in usual:
        each.clear()
    runner.remove(token=bench.forge.token, ca_file=str(certificate.file))
    assert bench.forge.work.runners == {}


def test_a_file_without_certificates(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing\n")
    with pytest.raises(InvalidInput, match="has no valid PEM certificate"):
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
    assert any("anybody on the way can read the token" in text for text in bench.told)
    assert "done" in bench.finished(bench.job()).log
    bench.ended(bench.launched[0])
    assert bench.forge.work.runners == {}
