"""The states of many tasks from a few small files each, without opening their stores.

What is read is what a closer look reads: leases and reports in the store's folder, and the files
of the scaler. Where any of it is damaged, or a supervisor is missing or is elsewhere, the task is
left out: a closer look tells what is wrong, and starts a supervisor where one is missing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sojourn.core.report import Report
from sojourn.core.status import MACHINES_AT_MOST, RankRecord, task_status
from sojourn.core.untrusted import LARGEST, UNREADABLE, number, parsed_bytes
from sojourn.host.backoff import Starts
from sojourn.host.desired_count import Wanted
from sojourn.host.files import read_lock, read_machines, read_small
from sojourn.host.folders import TaskFolders
from sojourn.host.identity import Place, Supervised
from sojourn.host.orphans import is_agent
from sojourn.storage import layout
from sojourn.storage.lease import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status

__all__ = ["states"]

_FORMAT = 1  # of the task's description
_LARGEST = 16 << 20  # bytes of it
_UNSURE = (OSError, *UNREADABLE)


def states(ctx: Context, root: Path, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
    """Of all tasks whose files tell it."""
    here = Place.here()
    found = {}
    for id in ids:  # noqa: A001
        ctx.check()
        try:
            status = _status(TaskFolders(root / str(id)), here)
        except _UNSURE:
            continue
        if status is not None:
            found[id] = status
    return found


def _status(folders: TaskFolders, here: Place) -> Status | None:
    if os.path.exists(folders.starts) and Starts(folders.starts).count() > 1:
        return None  # supervisors do not live for long
    if not os.path.exists(folders.settings):
        return None
    # The order matters, as it does for a closer look: a machine that ends between two looks must
    # not seem lost.
    alive = _alive(folders, here)
    if alive is None:
        return None
    wanted = Wanted(folders).read().machines
    if wanted and not _is_supervised(folders, here):
        return None
    found = task_status(_records(folders.store), wanted=wanted, alive=alive)
    if found.recovering or (found.state.ended and alive):
        return None  # an attempt that began since only seems to be lost; machines may still leave
    return found


def _alive(folders: TaskFolders, here: Place) -> set[str] | None:
    rows = read_machines(folders.machines)
    if not rows:
        return set()
    if not _is_supervised(folders, here):
        return None
    alive = {row["id"] for row in rows if is_agent(int(row["pid"]), row["id"])}
    return alive if len(alive) == len(rows) else None


def _is_supervised(folders: TaskFolders, here: Place) -> bool:
    held, text = read_lock(folders.supervisor_lock)
    return held and Supervised.parse(text).place == here


def _records(store: Path) -> list[RankRecord]:
    task = _read(store / layout.TASK, _LARGEST)
    ranks = task["task"]["parallelism"]
    if task["format"] != _FORMAT or not 0 < ranks <= MACHINES_AT_MOST:
        raise ValueError
    return [_record(store, rank) for rank in range(ranks)]


def _record(store: Path, rank: int) -> RankRecord:
    attempt = _newest(store / layout.attempt_path(rank, 1))
    if not attempt:
        return RankRecord(rank)
    mark = Mark.from_dict(_read(store / layout.attempt_path(rank, attempt)))
    report = None
    if _newest(store / layout.report_path(rank, 1)) == attempt:
        report = Report.from_dict(_read(store / layout.report_path(rank, attempt)))
    activity = None if report else mark.activity
    return RankRecord(rank, attempt, mark.machine, report, activity, mark.began)


def _newest(first: Path) -> int:
    """The largest number beside a path; none: 0."""
    try:
        names = [name for name in os.listdir(first.parent) if len(name) == len(first.name)]
        return max((number(name) or 0 for name in names), default=0)
    except FileNotFoundError:
        return 0


def _read(path: Path, most: int = LARGEST) -> Any:
    return parsed_bytes(read_small(path, most), most=most)
