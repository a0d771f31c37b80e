"""Which results a pull leaves in the store: what programs on this computer would run by themselves.

What the user names is what they want: below an output such as `.git`, nothing is left out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from sojourn.core.above import FromAbove
from sojourn.core.guarded import guarded_part, plain_name
from sojourn.storage.beneath import Beneath, is_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Guard"]

# Git takes any folder with these for a repository, whatever its name is. With `commondir`, the
# rest, and what it runs, may be in any other folder.
_REPOSITORY = ("HEAD", "objects", "refs", "commondir")
_WHOLE = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
_MAKE_ONE = frozenset(name.lower() for name in _REPOSITORY)
# And without one of these it is none, or runs nothing that the folder says.
_RUN = frozenset({"head", "config", "config.worktree", "hooks", "commondir"})


class Guard:
    """Looks at paths that an output gets at `home`.

    `paths`: all of them. `into`: the folder that they come to, if they do: what is there already
    may become a repository with what comes.
    """

    def __init__(self, home: str, paths: Iterable[str], into: Path | None = None) -> None:
        self._named = bool(guarded_part(home))
        self._above = "" if home == "." else f"{home}/"
        self._repositories = {} if self._named else _repositories(paths, into)
        self._parts = FromAbove(self._own, "")

    def part(self, path: str) -> str:
        """The file or folder that stays in the store because of which this one does; or empty."""
        if self._named or not path.startswith(self._above):
            return ""
        return self._parts.above(path) or self._own(path)

    def _own(self, path: str) -> str:
        """The path itself, if it stays because of its name."""
        if not path.startswith(self._above):
            return ""
        folder, _, name = path.rpartition("/")
        return path if guarded_part(name) or plain_name(name) in self._names(folder) else ""

    def _names(self, folder: str) -> frozenset[str]:
        return self._repositories.get(folder, frozenset())


def _repositories(paths: Iterable[str], into: Path | None) -> dict[str, frozenset[str]]:
    """Folders that git takes for repositories, with the names in each that must not come."""
    coming: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, _, name = path.rpartition("/")
        # Also what one that is here would run: what makes it one need not come.
        if (plain := plain_name(name)) in _MAKE_ONE or plain in _RUN:
            coming[folder].add(plain)
    found = {}
    there = Beneath(into) if into and os.path.isdir(into) else None
    for folder, names in coming.items():
        here = {name.lower() for name in _REPOSITORY if there and _has(there, folder, name)}
        if any(whole <= names | here for whole in _WHOLE):
            # One that has a HEAD here must not get the rest of it either.
            found[folder] = _RUN | _MAKE_ONE if "head" in here else _RUN
    return found


def _has(there: Beneath, folder: str, name: str) -> bool:
    """Step by step: a path may be longer than the system takes at once."""
    try:
        os.stat(name, dir_fd=there.folder(folder), follow_symlinks=False)
    except OSError as error:
        if not is_elsewhere(error):
            raise
        return False
    return True
