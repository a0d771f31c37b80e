"""The certificate that is written out by hand, as a library reads it."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from sojourn.terraform.plugin import p256
from sojourn.terraform.plugin.certificate import make_certificate


def test_the_certificate_is_for_localhost_signed_by_its_own_key_and_in_the_handshake() -> None:
    made = make_certificate()
    read = x509.load_pem_x509_certificate(made.chain)
    read.verify_directly_issued_by(read)
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    constraints = read.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value.ca
    assert read.version is x509.Version.v3
    assert read.serial_number > 0
    key = serialization.load_pem_private_key(made.key, None)
    assert key.public_key() == read.public_key()
    padded = made.handshake + "=" * (-len(made.handshake) % 4)
    assert x509.load_der_x509_certificate(base64.b64decode(padded)) == read


def test_it_holds_for_a_month() -> None:
    read = x509.load_pem_x509_certificate(make_certificate().chain)
    now = datetime.now(timezone.utc)
    assert read.not_valid_before_utc < now < read.not_valid_after_utc
    left = read.not_valid_after_utc - now
    assert timedelta(days=29) < left <= timedelta(days=30)


def test_years_after_2049_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    late = datetime(2049, 12, 15, tzinfo=timezone.utc)
    monkeypatch.setattr("sojourn.terraform.plugin.certificate.time.time", late.timestamp)
    read = x509.load_pem_x509_certificate(make_certificate().chain)
    assert read.not_valid_before_utc == late - timedelta(hours=1)
    assert read.not_valid_after_utc == late + timedelta(days=30)


def test_two_have_nothing_in_common() -> None:
    one, other = (x509.load_pem_x509_certificate(make_certificate().chain) for _ in range(2))
    assert one.serial_number != other.serial_number
    assert one.public_key() != other.public_key()


@pytest.mark.parametrize("number", range(20))
def test_keys_and_signatures_are_those_of_p256(number: int) -> None:
    secret = p256.new_secret() if number > 3 else number + 1
    theirs = ec.derive_private_key(secret, ec.SECP256R1())
    numbers = theirs.public_key().public_numbers()
    assert p256.public_key(secret) == (numbers.x, numbers.y)
    message = bytes([number]) * number
    signature = utils.encode_dss_signature(*p256.sign(secret, message))
    theirs.public_key().verify(signature, message, ec.ECDSA(hashes.SHA256()))
