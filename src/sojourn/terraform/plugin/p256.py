"""Signing with ECDSA on the curve P-256, for the certificate of one run and for nothing else.

A library for this takes a third of the time that the provider needs to start. What such a library
does against onlookers, who measure how long it takes, is not done here: this process signs once,
before anybody can talk to it.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import NamedTuple

__all__ = ["Point", "new_secret", "public_key", "sign"]

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class Point(NamedTuple):
    """A point of the curve."""

    x: int
    y: int


_G = Point(
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Jacobian = tuple[int, int, int]  # x / z**2, y / z**3; without an inversion at every step


def new_secret() -> int:
    """A random number from 1 up to below the order of the curve."""
    return int.from_bytes(os.urandom(48), "big") % (_N - 1) + 1


def public_key(secret: int) -> Point:
    """The point that belongs to a secret."""
    total: _Jacobian | None = None
    for bit in f"{secret:b}":
        if total:
            total = _doubled(total)
        if bit == "1":
            total = _plus_g(total) if total else (*_G, 1)
    assert total  # noqa: S101 -- a secret is not 0
    x, y, z = total
    inverse = pow(z, -1, _P)
    return Point(x * inverse**2 % _P, y * inverse**3 % _P)


def sign(secret: int, message: bytes) -> tuple[int, int]:
    """A signature of the SHA-256 of a message."""
    digest = int.from_bytes(sha256(message).digest(), "big")
    while True:
        once = new_secret()
        r = public_key(once).x % _N
        s = pow(once, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return r, s


def _doubled(point: _Jacobian) -> _Jacobian:
    x, y, z = point
    square = y * y % _P
    beta = 4 * x * square % _P
    alpha = 3 * (x - z * z) * (x + z * z) % _P
    new_x = (alpha * alpha - 2 * beta) % _P
    return new_x, (alpha * (beta - new_x) - 8 * square * square) % _P, 2 * y * z % _P


def _plus_g(point: _Jacobian) -> _Jacobian:
    """With the generator; these are never the same, nor opposite: secrets are below the order."""
    x, y, z = point
    square = z * z % _P
    across = (_G.x * square - x) % _P
    up = (_G.y * square * z - y) % _P
    across2 = across * across % _P
    across3 = across2 * across % _P
    middle = x * across2 % _P
    new_x = (up * up - across3 - 2 * middle) % _P
    return new_x, (up * (middle - new_x) - y * across3) % _P, z * across % _P
