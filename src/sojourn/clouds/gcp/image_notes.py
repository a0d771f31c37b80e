"""What an image that was made tells of itself: labels cannot have all of it, a description can."""

from __future__ import annotations

import json
from typing import Any

from sojourn.core.untrusted import UNREADABLE, parsed

__all__ = ["note_of", "own_name", "told_by"]

_KEYS = ("image", "base", "user", "task")


def own_name(name: str) -> str:
    """What Google calls the image of this name."""
    return f"sojourn-{name}"


def note_of(image: str, base: str, user: str, task: str) -> str:
    """The description of an image that is made."""
    return json.dumps({"sojourn": dict(zip(_KEYS, (image, base, user, task), strict=True))})


def told_by(found: Any) -> dict[str, str]:
    """What an image tells; nothing: it is not ours."""
    try:
        told = parsed(found.get("description", ""))["sojourn"]
        return {key: str(told[key]) for key in _KEYS}
    except UNREADABLE:
        return {}
