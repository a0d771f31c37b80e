"""Files beside a script that would not be uploaded with it, as there is no workdir."""

from __future__ import annotations

import os
import re
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.filters import DEFAULT_IGNORED, Filters
from sojourn.settings import PROJECT

if TYPE_CHECKING:
    from sojourn.cli.commandline import Typed
    from sojourn.core.task import Task

__all__ = ["told_of_unsent"]

_NAMED = 2


def told_of_unsent(typed: Typed, task: Task, *, from_file: bool) -> str:
    """What to say of the files that stay here; empty if that is no surprise.

    A script without a workdir may have been meant with all that is around it. A task file
    (`from_file`) describes its storage by itself: of it, only files that its script names count.
    """
    if typed.dashed or task.storage.workdir:
        return ""
    with suppress(OSError):  # a hint is worth no error: whoever reads the script next tells it
        return _told(typed, task, Path(typed.words[0]), from_file=from_file)
    return ""


def _told(typed: Typed, task: Task, script: Path, *, from_file: bool) -> str:
    if not script.is_file():
        return ""
    for folder in dict.fromkeys((os.path.abspath(script.parent), os.getcwd())):
        names = [] if _is_shared(folder) else _others(folder, script)
        mentioned = [name for name in names if _is_mentioned(name, task)]
        if mentioned or (names and not from_file):
            return _said(typed, folder, mentioned if from_file else mentioned + names)
    return ""


def _is_shared(folder: str) -> bool:
    """Whether it holds what nobody should upload by following a hint."""
    shared = {str(Path.home()), "/", "/tmp", "/var/tmp"}  # noqa: S108 -- not written to
    return folder in shared | set(os.environ.get("PATH", "").split(os.pathsep))


def _others(folder: str, script: Path) -> list[str]:
    try:
        found = sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError:
        return []
    itself, filters = script.stat(), Filters()
    return [item.name for item in found if _is_of_use(item, itself, filters)]


def _is_of_use(item: os.DirEntry[str], script: os.stat_result, filters: Filters) -> bool:
    """Whether a script may need it: neither the script itself nor what is never uploaded."""
    if item.name.startswith(".") or item.name in (*DEFAULT_IGNORED, PROJECT):
        return False
    try:
        there = item.stat()
    except OSError:
        return False  # a symlink that leads nowhere or in a circle, or removed meanwhile
    away = filters.excludes(item.name, folder=stat.S_ISDIR(there.st_mode))
    return not away and not os.path.samestat(there, script)


def _is_mentioned(name: str, task: Task) -> bool:
    whole = rf"(?<![\w./-]){re.escape(name)}(?![\w-])"
    return any(re.search(whole, text) for text in (task.script, *task.arguments))


def _said(typed: Typed, folder: str, names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    here = folder == os.getcwd()
    workdir = "." if here else os.path.relpath(folder)
    many = len(names) > _NAMED
    named = " and ".join(names[:_NAMED])
    what = f"{len(names):,} files and folders, such as {named}," if many else named
    where = "this folder" if here else workdir
    verb = "are" if len(names) > 1 else "is"
    return (
        f"Not uploading {where}: {what} {verb} not available to the script. "
        f"Add `--workdir {shlex.quote(workdir)}` to upload, "
        f"as in `{typed.line('--workdir', workdir, *typed.words)}`"
    )
