"""What a cloud says of itself before any of it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["About"]


@dataclass(frozen=True)
class About:
    """Each cloud's package has one, `ABOUT`. Its words are for people."""

    title: str  # as people write it
    extra: str = ""  # the extra of Sojourn's own package that installs what it needs
    packages: tuple[str, ...] = ()  # what it needs to run tasks, as pip knows them
    modules: tuple[str, ...] = ()  # of these packages: without one of them it cannot be loaded
    # The signs of somebody who uses it: one is enough. Without any to look for, everybody does.
    variables: tuple[str, ...] = ()  # names, of which nobody reads the values here
    files: tuple[str, ...] = ()  # "~/..."
    options: tuple[tuple[str, str], ...] = ()  # what it takes as a task's `options`: names, help
