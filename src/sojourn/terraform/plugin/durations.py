"""Durations as Terraform's `timeouts` blocks write them: `90s`, `1h30m`."""

from __future__ import annotations

import re

__all__ = ["seconds"]

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")


def seconds(text: str) -> float | None:
    """The duration in seconds; None if it is none, or not longer than nothing."""
    if not text or _PART.sub("", text):
        return None
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return total if total > 0 else None
