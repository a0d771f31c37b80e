from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, Transient
from sojourn.forges import network
from sojourn.forges.http import Http
from sojourn.runners.authorities import read_authorities, trust
from tests.simforge.github import SimGitHub
from tests.simforge.server import served
from tests.simforge.tls import Certificate, make_certificate


@pytest.fixture
def certificates(tmp_path: Path) -> Iterator[tuple[Certificate, Certificate]]:
    """Of two forges; whom this program trusts is forgotten."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    yield make_certificate(tmp_path / "one"), make_certificate(tmp_path / "other")
    network._openers.clear()
    network._trusted.clear()


def test_a_path_or_the_text(certificates: tuple[Certificate, Certificate]) -> None:
    one, _ = certificates
    found = read_authorities(str(one.file))
    assert found.strip() == one.file.read_text().strip()
    assert read_authorities(one.file.read_text()) == found
    assert read_authorities("") == ""


def test_a_key_beside_a_certificate_does_not_travel(
    certificates: tuple[Certificate, Certificate], tmp_path: Path
) -> None:
    one, other = certificates
    both = tmp_path / "both.pem"
    both.write_text(one.key.read_text() + one.file.read_text() + other.file.read_text())
    found = read_authorities(str(both))
    assert "PRIVATE" not in found
    assert found.count("BEGIN CERTIFICATE") == 2
    with pytest.raises(InvalidInput, match="the text has no valid PEM certificate") as caught:
        read_authorities(one.key.read_text())
    assert caught.value.path == "ca_file"


def test_forges_of_several_authorities(certificates: tuple[Certificate, Certificate]) -> None:
    """One provider of Terraform leads the runners of both."""
    one, other = certificates
    secured = served(SimGitHub(), tls=one.secured()), served(SimGitHub(), tls=other.secured())
    with secured[0] as first, secured[1] as second:
        for each in (one, other):
            trust(str(each.file))
        for forge in (first, second):
            asked = Http(forge.url, {}).call(Context(), "GET", "/", allow=(401,))
            assert asked.status == 401


def test_nobody_is_trusted_without_being_told(
    certificates: tuple[Certificate, Certificate],
) -> None:
    one, other = certificates
    trust(str(one.file))
    with served(SimGitHub(), tls=other.secured()) as forge, pytest.raises(Transient):
        Http(forge.url, {}).call(Context(), "GET", "/")
