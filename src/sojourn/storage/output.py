"""Which part of a snapshot is the output, and which paths it gets at home.

What a machine stored is not trusted. A symlink that leads to the output from elsewhere is
followed inside of the snapshot, and what is there comes home as the output: so whatever a script
makes of its output folder, a pull writes below the output and nowhere else.
"""

from __future__ import annotations

import posixpath
import time
from typing import TYPE_CHECKING

from sojourn.storage.manifest import FOLDER, LINK, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sojourn.core.filters import Filters

__all__ = ["folders_above", "is_there", "leads_to", "moved_home"]

_SYMLINKS = 20  # followed to the output
_MODE = 0o755  # of folders that no snapshot knows


def leads_to(output: str, entries: Mapping[str, Entry]) -> str | None:
    """Where the output is when all symlinks on its path are followed; None: they lead nowhere."""
    path = posixpath.normpath(output)
    for _ in range(_SYMLINKS):
        link = _first_symlink(path, entries)
        if link is None:
            return path
        rest = path[len(link.path) :].lstrip("/")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.target, rest))
    return None


def _first_symlink(path: str, entries: Mapping[str, Entry]) -> Entry | None:
    names = path.split("/")
    for count in range(1, len(names) + 1):
        entry = entries.get("/".join(names[:count]))
        if entry is not None and entry.kind == LINK:
            return entry
    return None


def is_there(output: str, entries: Mapping[str, Entry]) -> bool:
    """Whether a snapshot has anything at the output."""
    root = leads_to(output, entries)
    return bool(entries) if root == "." else root in entries


def moved_home(
    root: str, home: str, entries: Mapping[str, Entry], filters: Filters
) -> Iterator[Entry]:
    """What is at `root` in a snapshot, with the paths that it gets at `home`."""
    if root == "." != home:
        yield _folder(home)  # snapshots have no entry for their own folder
    for entry in entries.values():
        if root != "." and not f"{entry.path}/".startswith(f"{root}/"):
            continue
        is_folder = entry.kind == FOLDER
        if filters.covers(entry.path, folder=is_folder):
            continue
        if root == home:
            yield entry
            continue
        moved = _moved(entry, root, home)
        if not filters.covers(moved.path, folder=is_folder):
            yield moved


def _moved(entry: Entry, root: str, home: str) -> Entry:
    path = _at_home(entry.path, root, home)
    if entry.kind != LINK:
        return entry._replace(path=path)
    # A symlink leads to the same thing as before: to what moves as well, or to its place in the
    # workdir. Its own text could lead out of the workdir from where it is now.
    leads = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), entry.target))
    there = _at_home(leads, root, home)
    target = posixpath.relpath(f"/{there}", f"/{posixpath.dirname(path)}")
    return entry._replace(path=path, target=target)


def _at_home(path: str, root: str, home: str) -> str:
    if root == ".":
        return posixpath.normpath(posixpath.join(home, path))
    return home + path[len(root) :] if f"{path}/".startswith(f"{root}/") else path


def folders_above(home: str, snapshots: Iterable[Mapping[str, Entry]]) -> Iterator[Entry]:
    """The folders that the output is in, as the first snapshot that knows each has it."""
    names = home.split("/")
    for count in range(1, len(names)):
        path = "/".join(names[:count])
        known = (entries.get(path) for entries in snapshots)
        yield next((e for e in known if e is not None and e.kind == FOLDER), _folder(path))


def _folder(path: str) -> Entry:
    return Entry(path, FOLDER, _MODE, time.time_ns())
