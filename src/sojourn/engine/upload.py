"""How much goes up, what the largest parts are, and how it could be less."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.filters import Filters
from sojourn.core.sizes import size_of
from sojourn.engine.gitignore import OWN_FILE, IgnoreRules
from sojourn.storage.beneath import Beneath

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from sojourn.core.interfaces import Ignore

__all__ = ["Part", "Upload", "advice", "left_out", "look", "secret", "summed"]

_MUCH_BYTES = 50 << 20
_MANY_FILES = 5_000
_PARTS_NAMED = 3
_COUNTED_AT_MOST = 10_000
_SECRET = re.compile(r"\.env(?:\.(?!example$|sample$|template$|dist$).+)?").fullmatch

_REGENERATED = frozenset(
    [
        ".git",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
        "venv",
    ]
)
"""Folders that programs make by themselves, and that no script needs from here."""


@dataclass(frozen=True)
class Part:
    """One entry of the workdir, with all that is in it."""

    path: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Upload:
    """What goes up: the parts of the workdir, the largest first, and what stays at home."""

    parts: tuple[Part, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """How many files there are."""
        return sum(part.files for part in self.parts)

    @property
    def bytes(self) -> int:
        """How large they are."""
        return sum(part.bytes for part in self.parts)

    @property
    def is_much(self) -> bool:
        """Whether it is more than a little."""
        return self.bytes > _MUCH_BYTES or self.files > _MANY_FILES

    def halves(self, other: Upload) -> bool:
        """Whether it is at most half of another one, in what makes that one much."""
        smaller = other.bytes > _MUCH_BYTES and self.bytes * 2 <= other.bytes
        return smaller or (other.files > _MANY_FILES and self.files * 2 <= other.files)

    def __str__(self) -> str:
        files = "1 file" if self.files == 1 else f"{self.files:,} files"
        return f"{files}, {size_of(self.bytes)}"

    def largest(self) -> str:
        """Its largest parts, in words."""
        return ", ".join(f"{p.path} {size_of(p.bytes)}" for p in self.parts[:_PARTS_NAMED])


def summed(files: Iterable[tuple[str, int]], excluded: Iterable[str] = ()) -> Upload:
    """What these files, by path and size, come to."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for path, number in files:
        top = path.partition("/")[0]
        count[top] += 1
        size[top] += number
    parts = (Part(path, count[path], size[path]) for path in count)
    largest = sorted(parts, key=lambda part: (-part.bytes, -part.files, part.path))
    return Upload(tuple(largest), tuple(excluded))


def look(
    workdir: Path, filters: Filters, ignore: Ignore | None
) -> tuple[list[tuple[str, int]], list[str]]:
    """The files of a folder that would be uploaded, with their sizes, and what would not be.

    Nothing is read but names and sizes.
    """
    from sojourn.storage.manifest import FILE  # only a dry run has to look by itself
    from sojourn.storage.scan import scan

    excluded: list[str] = []

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        if lost:
            raise InvalidInput("storage.workdir", f"could not read {workdir / path}: {reason}")
        excluded.append(path)

    def noted(path: str, *, folder: bool) -> bool:
        away = filters.excludes(path, folder=folder)
        away = away or bool(ignore and ignore(path, folder=folder))
        if away:
            excluded.append(path)
        return away

    entries = scan(workdir, Filters(), noted, skipped)
    files = [(entry.path, entry.size) for entry in entries.values() if entry.kind == FILE]
    return files, sorted(excluded)


def advice(workdir: Path, files: list[tuple[str, int]], *, git: bool) -> str:
    """How to upload at most half of these files; empty if nothing would."""
    whole = summed(files)
    if not whole.is_much:
        return ""
    made = _regenerated(files)
    choices = [(_without(files, made), f"add {', '.join(sorted(made))} to {OWN_FILE}")]
    if not git:
        rules = IgnoreRules(workdir, git=True)
        kept = [item for item in files if not rules(item[0], folder=False)]
        choices.insert(0, (summed(kept), "use `--gitignore`"))
    less, how = min(choices, key=lambda choice: (choice[0].bytes, choice[0].files))
    return f"To upload {less} instead, {how}." if less.halves(whole) else ""


def left_out(workdir: Path, paths: Collection[str]) -> str:
    """What stays at home, in words: how much it is, if that is found out in no time."""
    files = list(islice(_sizes(workdir, paths), _COUNTED_AT_MOST + 1))
    many = len(files) > _COUNTED_AT_MOST
    amount = f"more than {_COUNTED_AT_MOST:,} files" if many else str(summed(files))
    return f"{_named(paths)} ({amount})"


def secret(files: Iterable[tuple[str, int]]) -> str:
    """The files that programs read passwords and keys from, in words; empty if there is none."""
    return _named([path for path, _ in files if _SECRET(path.rpartition("/")[2])])


def _sizes(workdir: Path, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each path, as often as there are files, with their sizes."""
    with Beneath(workdir) as there:
        for path in paths:
            for size in _sizes_below(there, path):
                yield path, size


def _sizes_below(there: Beneath, path: str) -> Iterator[int]:
    """Not by os.walk: before Python 3.12, it calls itself for each folder in another one."""
    folders = []
    with suppress(OSError):  # removed meanwhile
        folder, name = there.within(path)
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            folders.append(path)
        else:
            yield info.st_size
    while folders:
        path = folders.pop()
        with suppress(OSError):
            for item in os.scandir(there.folder(path)):
                if item.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/{item.name}")
                else:
                    yield item.stat(follow_symlinks=False).st_size


def _named(paths: Collection[str]) -> str:
    """The first few of them, those at the top before others."""
    ordered = sorted(paths, key=lambda path: (path.count("/"), path))
    more = len(ordered) - _PARTS_NAMED
    return ", ".join(ordered[:_PARTS_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _regenerated(files: list[tuple[str, int]]) -> set[str]:
    return {
        f"{name}/" for path, _ in files for name in path.split("/")[:-1] if name in _REGENERATED
    }


def _without(files: list[tuple[str, int]], folders: set[str]) -> Upload:
    return summed(
        item for item in files if not any(f"{f}/" in folders for f in item[0].split("/")[:-1])
    )
