"""A certificate for one run of the plugin, which Terraform insists on.

It is written out here, as DER: a library for certificates takes a third of the time that the
provider needs to start, and Terraform starts it three times for one command.
"""

from __future__ import annotations

import os
import time
from binascii import b2a_base64
from typing import NamedTuple

from sojourn.terraform.plugin.p256 import new_secret, public_key, sign

__all__ = ["Certificate", "make_certificate"]

_HOUR = 3600
# An apply may wait for a long time between two calls; connections stay, but may be new.
_VALID = 30 * 24 * _HOUR

_INTEGER, _BITS, _BYTES, _OID, _TEXT, _TIME = 0x02, 0x03, 0x04, 0x06, 0x0C, 0x18
_SEQUENCE, _SET, _TRUE = 0x30, 0x31, bytes([0x01, 1, 0xFF])
_ECDSA_WITH_SHA256 = bytes.fromhex("2a8648ce3d040302")
_EC_PUBLIC_KEY = bytes.fromhex("2a8648ce3d0201")
_P256 = bytes.fromhex("2a8648ce3d030107")
_COMMON_NAME, _ALTERNATIVE_NAME, _CONSTRAINTS = (
    bytes([0x55, *end]) for end in (b"\4\3", b"\x1d\x11", b"\x1d\x13")
)


class Certificate(NamedTuple):
    """A key and its certificate, and the latter as the handshake wants it."""

    key: bytes
    chain: bytes
    handshake: str


def make_certificate() -> Certificate:
    """A self-signed certificate for a month; its key never leaves this process."""
    secret = new_secret()
    x, y = public_key(secret)
    point = b"\4" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    content = _content(point)
    r, s = sign(secret, content)
    signature = _sequence(_number(r), _number(s))
    der = _sequence(content, _signed_with(), _bits(signature))
    handshake = b2a_base64(der, newline=False).rstrip(b"=").decode()
    return Certificate(
        _pem("PRIVATE KEY", _key(secret, point)), _pem("CERTIFICATE", der), handshake
    )


def _content(point: bytes) -> bytes:
    """What is signed: who this is, for how long, and the public key. As RFC 5280 has it."""
    now = time.time()
    common_name = _sequence(_tagged(_OID, _COMMON_NAME), _tagged(_TEXT, b"localhost"))
    name = _sequence(_tagged(_SET, common_name))
    # 0xA0 and so on are the numbered fields of the standard.
    return _sequence(
        _tagged(0xA0, _number(2)),  # version 3
        _number(int.from_bytes(os.urandom(19), "big") + 1),
        _signed_with(),
        name,
        _sequence(_moment(now - _HOUR), _moment(now + _VALID)),
        name,
        _sequence(_algorithm(), _bits(point)),
        _tagged(
            0xA3,
            _sequence(
                _extension(_ALTERNATIVE_NAME, _sequence(_tagged(0x82, b"localhost"))),
                _extension(_CONSTRAINTS, _sequence(_TRUE), critical=True),  # it signs itself
            ),
        ),
    )


def _key(secret: int, point: bytes) -> bytes:
    """The private key, as PKCS #8 has it."""
    inner = _sequence(
        _number(1),
        _tagged(_BYTES, secret.to_bytes(32, "big")),
        _tagged(0xA1, _bits(point)),
    )
    return _sequence(_number(0), _algorithm(), _tagged(_BYTES, inner))


def _signed_with() -> bytes:
    return _sequence(_tagged(_OID, _ECDSA_WITH_SHA256))


def _algorithm() -> bytes:
    return _sequence(_tagged(_OID, _EC_PUBLIC_KEY), _tagged(_OID, _P256))


def _extension(oid: bytes, value: bytes, *, critical: bool = False) -> bytes:
    return _sequence(_tagged(_OID, oid), _TRUE if critical else b"", _tagged(_BYTES, value))


def _moment(seconds: float) -> bytes:
    """By the standard, years up to 2049 have two digits, and another tag."""
    text = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(seconds))
    return _tagged(0x17, text[2:].encode()) if text < "2050" else _tagged(_TIME, text.encode())


def _number(value: int) -> bytes:
    """A number that is not negative: its first bit is 0."""
    return _tagged(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _tagged(_BITS, b"\0" + content)


def _sequence(*parts: bytes) -> bytes:
    return _tagged(_SEQUENCE, b"".join(parts))


def _tagged(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 128 + len(size)]) + size + content


def _pem(kind: str, der: bytes) -> bytes:
    lines = [b2a_base64(der[start : start + 48]) for start in range(0, len(der), 48)]
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (
        kind.encode(),
        b"".join(lines),
        kind.encode(),
    )
