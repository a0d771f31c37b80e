"""The certificate that the provider shows Terraform."""

from __future__ import annotations

import base64
import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sojourn.terraform.plugin import certificate as module
from sojourn.terraform.plugin.certificate import Certificate, certificate


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sojourn/terraform/certificate.pem"


def _parsed(made: Certificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(made.chain)


def test_it_is_what_terraform_checks() -> None:
    made = certificate()
    parsed = _parsed(made)
    key = serialization.load_pem_private_key(made.key, None)
    encoding = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert parsed.public_key().public_bytes(*encoding) == key.public_key().public_bytes(*encoding)
    padded = made.handshake + "=" * (-len(made.handshake) % 4)
    assert base64.b64decode(padded) == parsed.public_bytes(serialization.Encoding.DER)
    parsed.verify_directly_issued_by(parsed)
    assert parsed.not_valid_after_utc - datetime.now(timezone.utc) > timedelta(days=50)


def test_it_is_kept_for_this_user_alone(cache: Path) -> None:
    made = certificate()
    assert certificate() == made
    assert cache.stat().st_mode & 0o777 == 0o600
    assert cache.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def test_an_old_one_is_replaced_long_before_it_ends(cache: Path) -> None:
    made = certificate()
    for age in (module._KEPT + 1, -60.0):  # and one from the future, when a clock was wrong
        os.utime(cache, (time.time() - age,) * 2)
        assert certificate() != made
        made = certificate()
    assert module._KEPT < module._VALID / 2


@pytest.mark.parametrize("damage", [b"", b"junk", b"-----BEGIN PRIVATE KEY-----\n"])
def test_a_damaged_one_is_replaced(cache: Path, damage: bytes) -> None:
    certificate()
    cache.write_bytes(damage)
    _parsed(certificate())
    assert cache.read_bytes() != damage


def test_one_that_others_could_have_read_is_replaced(cache: Path) -> None:
    made = certificate()
    cache.chmod(0o640)
    assert certificate() != made


def test_where_none_can_be_kept_each_run_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert certificate() != certificate()
