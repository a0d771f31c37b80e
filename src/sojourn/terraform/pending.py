"""Creations under way, written down on this computer.

Terraform learns the id of a new task only when its creation is over. If the provider is killed
before that, the next creation of the same task goes on with what is there instead of making a
second one, and every command warns of it until then.

    STATE/sojourn/terraform/ID.json     of which task it is; locked while its creation goes on

STATE is $XDG_STATE_HOME or ~/.local/state.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.task import Task

__all__ = ["Note", "broken_off", "creation", "forget"]


@dataclass(frozen=True)
class Note:
    """What is known of a creation: where, and a fingerprint of what."""

    cloud: str
    folder: str
    mark: str

    @classmethod
    def on(cls, task: Task) -> Note:
        """The same for the same task made in the same folder; tells nothing of what is in it."""
        folder = os.getcwd()
        text = json.dumps({**task.to_dict(), "folder": folder}, sort_keys=True)
        return cls(task.cloud, folder, hashlib.sha256(text.encode()).hexdigest())

    @classmethod
    def read(cls, lock: int) -> Note | None:
        try:
            return cls(**json.loads(os.pread(lock, 10_000, 0)))
        except (ValueError, TypeError):
            return None  # killed while it was written


@contextmanager
def creation(task: Task) -> Iterator[tuple[TaskId, bool]]:
    """The id to create a task with, and whether an earlier creation of it was broken off.

    The note on it stays only if this process ends before the block does.
    """
    folder = _folder()
    note = Note.on(task)
    earlier = _taken_over(folder, note)
    path, lock = earlier or _begun(folder, task, note)
    try:
        yield TaskId.parse(path.stem), earlier is not None
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)
        with suppress(OSError):
            folder.rmdir()


def broken_off() -> Iterator[tuple[str, Note]]:
    """The ids of tasks whose creation was broken off, with what is known of each."""
    for path in _paths(_folder()):
        lock = _try_lock(path)
        if lock is not None:
            note = Note.read(lock)
            os.close(lock)
            if note:
                yield path.stem, note


def forget(id: str) -> None:
    """Nothing is left of this one."""
    (_folder() / f"{id}.json").unlink(missing_ok=True)


def _folder() -> Path:
    value = os.environ.get("XDG_STATE_HOME", "")
    base = Path(value) if os.path.isabs(value) else Path.home() / ".local/state"
    return base / "sojourn" / "terraform"


def _paths(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []


def _taken_over(folder: Path, note: Note) -> tuple[Path, int] | None:
    for path in _paths(folder):
        lock = _try_lock(path)
        if lock is None:
            continue
        if Note.read(lock) == note:
            return path, lock
        os.close(lock)
    return None


def _begun(folder: Path, task: Task, note: Note) -> tuple[Path, int]:
    path = folder / f"{TaskId.for_name(task.name, os.environ)}.json"
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # the folder: another creation was the last to go
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)  # two of one name: one after the other
            if os.fstat(lock).st_nlink:
                os.ftruncate(lock, 0)
                os.pwrite(lock, json.dumps(asdict(note)).encode(), 0)
                return path, lock
            os.close(lock)


def _try_lock(path: Path) -> int | None:
    """Hold a note, if nobody else does and it is still there."""
    try:
        lock = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None
