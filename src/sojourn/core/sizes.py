"""Sizes in words."""

from __future__ import annotations

__all__ = ["size_of"]

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def size_of(count: int) -> str:
    """A number of bytes for people, such as 512 B, 1.5 MiB or 20 GiB."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
