"""What this computer remembers of the tasks that it created.

    STATE/sojourn/tasks/ID/origin.json    where the task was created and where its results belong
    STATE/sojourn/tasks/ID/pulled.json    the files that came home, to tell them from others
    STATE/sojourn/logs/ID.log             the log of a task that was deleted,
    STATE/sojourn/logs/ID.json            and its entry, with how it ended
    STATE/sojourn/deleted                 the ids of runners that were deleted, the newest last

STATE is $XDG_STATE_HOME or ~/.local/state. Machines cannot write here, so what it says can be
believed, unlike a description in a store. A computer without an entry asks where results go.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.core.clock import utc_now
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.userfolders import state_home

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sojourn.core.events import LogLine

__all__ = [
    "Ending",
    "Origin",
    "ending",
    "find",
    "forget",
    "forget_log",
    "latest",
    "latest_deleted",
    "log_path",
    "logged",
    "note_deleted",
    "note_removed",
    "pulled_path",
    "remember",
    "remembered",
    "save_log",
    "short",
    "this_user",
    "was_deleted",
    "withdraw",
]

_TASKS_AT_MOST = 1000  # older entries are dropped
_LOGS_AT_MOST = 50
_DELETED_AT_MOST = 1000
_TRIES = 100
_ENDING = "ending"  # its key in the entry of a task that was deleted


@dataclass(frozen=True)
class Origin:
    """How a task was created on this computer.

    `folder`: the current folder of whoever created it. `workdir` and `output`: where results
    belong, as the user said it; `workdir` is absolute, or blank if the task has none. `machine`:
    the machine type that was asked for. `mark`: the creator's mark in the store, which a task of
    the same name from another computer lacks. `runner`: it is a CI runner. `command`: what it
    runs, as lists show it.
    """

    id: str
    cloud: str
    folder: str
    workdir: str
    output: str | None
    exclude: tuple[str, ...]
    created: str
    machine: str = ""
    mark: str = ""
    runner: bool = False
    command: str = ""


@dataclass(frozen=True)
class Ending:
    """How a task was when it was deleted, and where its results went.

    `results`: the folder that they were downloaded to; empty if there are none.
    """

    state: str
    exit_code: int | None
    reason: str
    deleted: str
    results: str = ""


def this_user() -> str:
    """A name for people: USER@HOST."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"


def remember(origin: Origin) -> None:
    """Write an entry, or replace it. A folder that cannot be written is not an error."""
    with suppress(OSError):
        _write(_origin_path(origin.id), json.dumps(asdict(origin)))
        _drop_oldest()


def _write(path: Path, text: str) -> None:
    """All at once. The folder may vanish meanwhile, with the entry of another command."""
    temporary = _beside(path)
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, FileExistsError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(text)
            temporary.replace(path)
            return


def withdraw(origin: Origin) -> None:
    """Remove this very entry, not one that another command wrote for a task of the same name."""
    path = _origin_path(origin.id)
    aside = _beside(path)
    with suppress(OSError):
        path.rename(aside)  # nobody else can remove it now, or has
        if _read(aside) != origin:
            with suppress(FileExistsError):  # a newer one
                os.link(aside, path)
        aside.unlink()
        path.parent.rmdir()
        _remove_empty()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(8).hex()}")


def find(id: TaskId | str) -> Origin | None:
    """The entry of a task; None if this computer did not create it, or has forgotten."""
    return _read(_origin_path(id))


def remembered() -> list[str]:
    """The ids of all tasks that have an entry."""
    return sorted(path.parent.name for path in _tasks().glob("*/origin.json"))


def short(id: TaskId) -> str:
    """The name of a task, which commands take as well.

    Its id if another task shares the name, also one that was deleted and whose log was saved.
    """
    with suppress(OSError):
        logs = [path.stem for path in log_path("").parent.glob(f"tpi-{id.name}-*.log")]
        for other in (*logs, *(path.name for path in _tasks().glob(f"tpi-{id.name}-*"))):
            if other != str(id) and _has_name(other, id.name):
                return str(id)
    return id.name or str(id)


def _has_name(text: str, name: str) -> bool:
    return TaskId.looks_like(text) and text.removeprefix(f"tpi-{name}-").count("-") == 1


def forget(id: TaskId | str) -> None:
    """Remove the entry of a task; the log that was saved stays."""
    shutil.rmtree(_origin_path(id).parent, ignore_errors=True)
    _remove_empty()


def _remove_empty() -> None:
    with suppress(OSError):
        _tasks().rmdir()  # with the last task
        _tasks().parent.rmdir()


def latest(folder: Path) -> Origin | None:
    """The newest task that was created in this folder, or from it as its workdir."""
    return _newest(folder, _tasks().glob("*/origin.json"))


def latest_deleted(folder: Path) -> Origin | None:
    """The same of tasks that were deleted and whose logs were saved; None if one came after it."""
    deleted = _newest(folder, log_path("").parent.glob("*.json"))
    there = latest(folder)
    return None if deleted and there and there.created > deleted.created else deleted


def _newest(folder: Path, entries: Iterable[Path]) -> Origin | None:
    wanted = os.path.realpath(folder)
    near = (
        origin
        for origin in filter(None, map(_read, entries))
        if wanted in (os.path.realpath(origin.folder), os.path.realpath(origin.workdir or "/"))
    )
    return max(near, key=lambda origin: origin.created, default=None)


def pulled_path(id: TaskId | str) -> Path:
    """Where a pull remembers what it wrote."""
    return _origin_path(id).with_name("pulled.json")


def log_path(id: TaskId | str) -> Path:
    """Where the log of a task goes when the task is deleted."""
    return state_home() / "sojourn" / "logs" / f"{id}.log"


def save_log(
    id: TaskId | str, lines: Iterable[LogLine], *, whose: bool, ending: Ending | None = None
) -> Path:
    """Keep what a task printed and how it ended; of many tasks only the newest.

    `whose`: lines begin with the rank.
    """
    path = log_path(id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished: int | None = None  # the rank whose line has no end yet
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(part, "w", errors="surrogateescape") as file:
            for line in lines:
                if line.rank != unfinished:
                    file.write("" if unfinished is None else "\n")
                    file.write(f"[{line.rank}] " if whose else "")
                file.write(line.text + ("" if line.partial else "\n"))
                unfinished = line.rank if line.partial else None
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    origin = find(id)  # a task of another computer has no entry
    entry = (asdict(origin) if origin else {}) | {_ENDING: asdict(ending) if ending else None}
    _save_entry(path.with_suffix(".json"), entry)
    with suppress(FileNotFoundError):  # another command drops some, too
        logs = sorted(path.parent.glob("*.log"), key=lambda log: log.stat().st_mtime)
        for log in logs[:-_LOGS_AT_MOST]:
            forget_log(log.stem)
    return path


def note_removed(id: TaskId | str) -> None:
    """Have what was saved of a task tell when the last of it was removed, which may take long."""
    path = log_path(id).with_suffix(".json")
    known = ending(id)
    if known:
        with suppress(OSError, ValueError):  # it is only told a little wrong then
            entry = json.loads(path.read_text())
            _save_entry(path, entry | {_ENDING: asdict(replace(known, deleted=utc_now()))})


def _save_entry(path: Path, entry: dict[str, Any]) -> None:
    with suppress(OSError):
        part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        part.write_text(json.dumps(entry))
        part.replace(path)


def forget_log(id: TaskId | str) -> None:
    """Remove what was saved of a task that was deleted: another one has its name now."""
    with suppress(OSError):
        log_path(id).unlink(missing_ok=True)
        log_path(id).with_suffix(".json").unlink(missing_ok=True)


def ending(id: TaskId | str) -> Ending | None:
    """How a task ended whose log was saved; None if that is not known."""
    try:
        data = json.loads(log_path(id).with_suffix(".json").read_text())[_ENDING]
        return Ending(**{name: data[name] for name in Ending.__dataclass_fields__ if name in data})
    except (OSError, ValueError, TypeError, KeyError):
        return None  # absent, damaged, or from before this was kept


def logged() -> list[TaskId]:
    """The tasks whose logs were saved when they were deleted."""
    found = []
    with suppress(OSError):
        for path in sorted(log_path("").parent.glob("*.log")):
            with suppress(InvalidInput):
                found.append(TaskId.parse(path.stem))
    return found


def note_deleted(id: TaskId) -> None:
    """Remember that no machine is left of a runner that this computer created: forges may go on
    to list it. Of other tasks nothing is remembered."""
    origin = find(id)
    if origin is None or not origin.runner:
        return
    with suppress(OSError):
        path = _deleted_path()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ids = [*(each for each in _deleted() if each != str(id)), str(id)]
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text("".join(f"{each}\n" for each in ids[-_DELETED_AT_MOST:]))
        temporary.replace(path)


def was_deleted(id: TaskId) -> bool:
    """Whether this computer created and deleted a runner, and did not create it anew."""
    return str(id) in _deleted() and find(id) is None


def _deleted() -> list[str]:
    try:
        return _deleted_path().read_text().split()
    except (OSError, ValueError):  # absent or damaged: nothing is known
        return []


def _deleted_path() -> Path:
    return state_home() / "sojourn" / "deleted"


def _tasks() -> Path:
    return state_home() / "sojourn" / "tasks"


def _origin_path(id: TaskId | str) -> Path:
    return _tasks() / str(id) / "origin.json"


def _read(path: Path) -> Origin | None:
    try:
        data = json.loads(path.read_text())
        TaskId.parse(data["id"])
        known = {name: data[name] for name in Origin.__dataclass_fields__ if name in data}
        return Origin(**(known | {"exclude": tuple(data["exclude"])}))
    except (OSError, ValueError, TypeError, KeyError, InvalidInput):
        return None  # absent or damaged


def _drop_oldest() -> None:
    folders = sorted(_tasks().iterdir(), key=lambda folder: folder.stat().st_mtime)
    for folder in folders[:-_TASKS_AT_MOST]:
        shutil.rmtree(folder, ignore_errors=True)
