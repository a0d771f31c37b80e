"""Tags that all tasks of this computer get, for accounts that demand some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["DEFAULTS", "user_tags"]

DEFAULTS = "SOJOURN_TAGS"  # NAME=VALUE, separated by commas


def user_tags(task: Task) -> dict[str, str]:
    """The task's own, and those by default."""
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, os.environ.get(DEFAULTS, "").split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                "tags", f"{DEFAULTS} must be NAME=VALUE pairs separated by commas, got {pair!r}"
            )
        found[name.strip()] = value.strip()
    return {**found, **task.tags}
