"""An answer about a path that one of the folders above it can give as well.

Each folder is asked about once, and each path is told from the folder that it is in: there may be
thousands of folders above a file, and as many files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FromAbove", "with_folders"]

_Answer = TypeVar("_Answer")


class FromAbove(Generic[_Answer]):
    """Answers about paths: that of the outermost folder with a true one, or the path's own.

    `ask` answers for this very path. `top`: what is known of the folder that paths are below.
    """

    def __init__(self, ask: Callable[[str], _Answer], top: _Answer) -> None:
        self._ask = ask
        self._folders = {"": top}

    def of_folder(self, path: str) -> _Answer:
        """The answer for a folder; it is remembered."""
        unknown = []
        while path not in self._folders:
            unknown.append(path)
            path = path.rpartition("/")[0]
        answer = self._folders[path]
        for folder in reversed(unknown):
            answer = answer or self._ask(folder)
            self._folders[folder] = answer
        return answer

    def above(self, path: str) -> _Answer:
        """The answer for the folder that a path is in."""
        return self.of_folder(path.rpartition("/")[0])


def with_folders(paths: Iterable[str]) -> set[str]:
    """These paths, and all folders that they are in."""
    found: set[str] = set()
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return found
