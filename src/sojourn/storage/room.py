"""Room for results in a folder that is in use: nothing that is there is lost.

A file is replaced only if it is what the task uploaded, or what an earlier pull of the task wrote
and nobody touched since. Everything else is first renamed to `name.local`.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from sojourn.core.above import with_folders
from sojourn.core.filters import DEFAULT_IGNORED
from sojourn.storage.beneath import Beneath
from sojourn.storage.files import opened
from sojourn.storage.join import Base, free_name, untouched
from sojourn.storage.localpath import LocalPath, Trace, trace
from sojourn.storage.manifest import FILE, FOLDER, LINK, Entry
from sojourn.storage.restore import explained

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.storage.pulled import Pulled

__all__ = ["Room", "stays_own"]

_TOLD_SINGLY = 20  # files that are kept beside
_NAMED = 3  # folders that a warning names
_CACHE = "__pycache__"  # nobody would miss it
_KINDS = {FILE: "file", FOLDER: "folder", LINK: "symlink", "": "special file"}


class Room:
    """Moves away what is in the way of results, also if it gets there later.

    A download can take an hour, and the user goes on working meanwhile.
    """

    def __init__(
        self,
        ctx: Context,
        into: Path,
        entries: dict[str, Entry],
        base: Base | None,
        pulled: Pulled,
        named: str = "",
    ) -> None:
        """`named`: the output; what it names comes, whatever is there."""
        self._ctx = ctx
        self._into = os.fspath(into)
        self._there = Beneath(into)
        self._entries = entries
        self._base = base
        self._pulled = pulled
        self._given_up: dict[str, Trace] = {}  # what may be replaced, by its path
        self._named = named
        self._left_alone: set[str] = set()  # what stays here, and all below it
        self._with_results: set[str] | None = None
        self._own: list[str] = []  # what was never uploaded, and stays as it is
        self._kept = 0
        self._turn = threading.Lock()  # two that look for a free name at once could find the same

    def make(self) -> list[Entry]:
        """What has to be written; moves away what is in the way.

        A file that the task left as it was pushed is no result: what is here now, stays.
        """
        with self._there:
            return [entry for entry in self._entries.values() if self._is_missing(entry)]

    def give_name(self, folder: int, temporary: str, path: str) -> None:
        """Put a result in its place; moves away what changed or appeared there since `make`."""
        name = os.path.basename(path)
        written = _look(folder, temporary)
        try:
            if self._given_up.get(path) != trace(_look(folder, name)):
                self._keep(folder, path, "changed during the download")
        except FileNotFoundError:
            pass
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        info = _look(folder, name)
        if trace(info)[:3] == trace(written)[:3]:  # else somebody was at it already
            self._pulled.add(path, info)

    def tell_rest(self) -> None:
        """Tell what was left out, and how many were moved away beside those told of one by one."""
        if self._own:
            more = f" and {len(self._own) - _NAMED} more" if len(self._own) > _NAMED else ""
            self._ctx.warn(
                f"Not downloading {', '.join(self._own[:_NAMED])}{more}: "
                "already here, and was not uploaded"
            )
        if self._kept > _TOLD_SINGLY:
            self._ctx.warn(f"{self._kept - _TOLD_SINGLY} more local files were kept as NAME.local")

    def _is_missing(self, entry: Entry) -> bool:
        path = entry.path
        if path.rpartition("/")[0] in self._left_alone:
            self._left_alone.add(path)
            return False
        with explained(f"{self._into}/{path}"):
            return self._is_missing_at(path, entry)

    def _is_missing_at(self, path: str, entry: Entry) -> bool:
        try:
            folder, name = self._there.within(path)
            here = LocalPath(self._into, self._there, path, _look(folder, name))
        except FileNotFoundError:
            return True
        if self._is_own(path):
            self._left_alone.add(path)
            return False
        if entry.kind == FOLDER:
            return self._is_missing_folder(folder, entry, here)
        if untouched(entry, self._base or {}):
            return False
        if here.has(self._ctx, entry):
            self._adopt(folder, entry, here)
            return False
        if here.kind != FOLDER and self._is_replaceable(here):
            self._given_up[path] = here.trace
        else:
            self._keep(folder, path, self._why_kept(entry, here))
        return True

    def _is_own(self, path: str) -> bool:
        """Whether this is here because it stayed at home: the task's own would damage it.

        A virtual environment of two computers is none.
        """
        if not stays_own(path, self._named, self._base, self._pulled):
            return False
        if path.rpartition("/")[2] != _CACHE:
            self._own.append(path)
        return True

    def _is_missing_folder(self, folder: int, entry: Entry, here: LocalPath) -> bool:
        if here.kind == FOLDER:
            return False  # it stays as it is here
        if not self._has_results(entry):
            self._left_alone.add(entry.path)
            return False
        self._keep(folder, entry.path, self._why_kept(entry, here))
        return True

    def _has_results(self, folder: Entry) -> bool:
        """Whether a rank made this folder, or anything in it that is not as it was pushed."""
        if self._with_results is None:
            base = self._base or {}
            self._with_results = with_folders(
                path
                for path, entry in self._entries.items()
                if (path not in base if entry.kind == FOLDER else not untouched(entry, base))
            )
        return folder.path in self._with_results

    def _adopt(self, folder: int, entry: Entry, here: LocalPath) -> None:
        """Set the attributes right of what has the bytes already."""
        name = os.path.basename(entry.path)
        mtime = entry.mtime if entry.kind == FILE else here.info.st_mtime_ns
        same_mode = entry.kind != FILE or here.info.st_mode & 0o777 == entry.mode
        ours = self._pulled.is_ours(entry.path, here.trace)
        if ours and same_mode and here.info.st_mtime_ns == mtime:
            return
        # What another task brought home is a result of this one as well from now on. The new
        # change time tells the other task so, which would take it for its own and replace it.
        os.utime(name, ns=(mtime, mtime), dir_fd=folder, follow_symlinks=False)
        if not same_mode:
            with opened(folder, name) as file:
                os.fchmod(file, entry.mode)
        if ours:
            self._pulled.add(entry.path, _look(folder, name))

    def _is_replaceable(self, here: LocalPath) -> bool:
        if self._pulled.is_ours(here.path, here.trace):
            return True
        pushed = (self._base or {}).get(here.path)
        return pushed is not None and here.has(self._ctx, pushed)

    def _why_kept(self, entry: Entry, here: LocalPath) -> str:
        if here.kind != entry.kind:
            return f"is a {_KINDS[here.kind]} here and a {_KINDS[entry.kind]} in the results"
        if self._pulled.was_here(here.path):
            return "changed since it was downloaded"
        if self._base is None:
            return "differs from the result"
        if here.path in self._base:
            return "differs from the version uploaded with this task"
        return "already exists and did not come from this task"

    def _keep(self, folder: int, path: str, why: str) -> None:
        with self._turn:
            kept = free_name(lambda path: self._is_taken(folder, path), path, ".local")
            old, new = os.path.basename(path), os.path.basename(kept)
            os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
            self._kept += 1
        if self._kept <= _TOLD_SINGLY:
            self._ctx.warn(f"{path} {why}; kept as {os.path.basename(kept)}")

    def _is_taken(self, folder: int, path: str) -> bool:
        if path in self._entries:
            return True
        try:
            _look(folder, os.path.basename(path))
        except FileNotFoundError:
            return False
        return True


def stays_own(path: str, named: str, base: Base | None, pulled: Pulled) -> bool:
    """Whether what is here at this path, if anything is, was never part of the task.

    `named`: the output; what it names comes, whatever is there.
    """
    if path.rpartition("/")[2] not in DEFAULT_IGNORED or f"{named}/".startswith(f"{path}/"):
        return False
    return base is not None and path not in base and not pulled.wrote_below(path)


def _look(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)
