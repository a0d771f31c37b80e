"""Tags of users: a task's own, and those of all tasks here, as some accounts demand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.task import Task

__all__ = ["DEFAULTS", "LONGEST", "check_lengths", "check_tags", "user_tags"]

DEFAULTS = "SOJOURN_TAGS"  # NAME=VALUE, separated by commas
LONGEST = 256  # characters of a value, where a cloud takes no fewer
_LONGEST_KEY = 128  # characters, as storage accounts of Azure have it, too; others take more


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


def check_tags(
    task: Task,
    cloud: str,
    most: int,
    check: Callable[[str, str], Iterator[str]],
    *,
    ignores_case: bool,
) -> None:
    """Refuse more than `most`, and what `check` tells of a key and its value."""
    found = [Problem("tags", text) for text in _problems(task, cloud, most, check, ignores_case)]
    if found:
        raise InvalidInput.of(found)


def _problems(
    task: Task,
    cloud: str,
    most: int,
    check: Callable[[str, str], Iterator[str]],
    ignores_case: bool,
) -> Iterator[str]:
    tags = user_tags(task)
    if len(tags) > most:
        yield f"must be at most {most} on {cloud}, got {len(tags)}"
    seen: set[str] = set()
    for key, value in tags.items():
        yield from check(key, value)
        if ignores_case and key.lower() in seen:
            yield f"duplicate tag {key!r}: {cloud} ignores case"
        seen.add(key.lower())


def check_lengths(key: str, value: str) -> Iterator[str]:
    """What is wrong with them where a cloud takes as much as most do."""
    if not 1 <= len(key) <= _LONGEST_KEY:
        yield f"{key!r} must have 1 to {_LONGEST_KEY} characters, got {len(key)}"
    if len(value) > LONGEST:
        yield f"the value of {key!r} must have at most {LONGEST} characters, got {len(value)}"
