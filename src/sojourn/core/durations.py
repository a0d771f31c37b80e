"""Durations as people write them: 1h30m, 90m, 45s, 1d, or plain seconds."""

from __future__ import annotations

import re

__all__ = ["format_seconds", "parse_seconds"]

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_SECONDS = (86_400, 3_600, 60, 1)


def format_seconds(seconds: int) -> str:
    """As `parse_seconds` reads it, in hours at most: 24h, 1h30m, 45s."""
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def parse_seconds(text: str) -> int:
    """The seconds of a duration; raises ValueError if it is none."""
    text = re.sub(r"\s+(?=\d)", "", text.strip())
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    match = _DURATION.fullmatch(text)
    if not text or not match:
        raise ValueError(f"not a duration: {text!r}")
    return sum(int(n or 0) * seconds for n, seconds in zip(match.groups(), _SECONDS, strict=True))
