"""The checksum that Cloud Storage has for all objects: CRC-32 with Castagnoli's polynomial."""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78


def _row(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = [_row(value) for value in range(256)]


def crc32c(data: bytes) -> int:
    """Slow; meant for the few objects whose checksum somebody asks for."""
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
