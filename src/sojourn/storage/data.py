"""The data of a task in a store: what all clouds with object storage share."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from sojourn.core.clock import utc, utc_now
from sojourn.core.errors import Conflict, InvalidInput, NotFound
from sojourn.core.filters import Filters
from sojourn.core.logpart import WHOLE, LogPart
from sojourn.core.status import RankRecord
from sojourn.core.task import Task
from sojourn.storage import layout
from sojourn.storage.changes import changed_files
from sojourn.storage.creators import read_creators, signature
from sojourn.storage.interruptible import Interruptible
from sojourn.storage.lease import read_records, read_reports, store_clock
from sojourn.storage.logs import Cursor
from sojourn.storage.logtail import read_last, read_part
from sojourn.storage.programs import put_program
from sojourn.storage.pull import holds, pull
from sojourn.storage.results import Wanted
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import read_json
from sojourn.storage.uploading import read_upload, telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sojourn.core.activity import Activity
    from sojourn.core.context import Context
    from sojourn.core.events import LogLine
    from sojourn.core.interfaces import ChangedFile, Found, Ignore, LogCursor
    from sojourn.core.report import Report
    from sojourn.storage.store import Store

__all__ = ["StoreData", "load_environment", "load_task", "task_text"]

_FORMAT = 1
_LARGEST = 16 << 20  # bytes of a task, whose files may have 1 MiB, or of its environment
_NAMED = 3  # files that a warning names
_LOOKER = "idle"  # who asks for the store's clock here


class StoreData:
    """A task's data in a store. `open_store` is called when it is first needed.

    If it raises NotFound, there is no store, and so no data. `near`: it is a folder of this
    computer, and its calls need not be broken off.
    """

    def __init__(self, open_store: Callable[[], Store], *, near: bool = False) -> None:
        self._open = open_store
        self._near = near
        self._opened: Store | None = None
        self.mark = os.urandom(8).hex()
        self._signature: dict[str, Any] = {}

    def _at(self, ctx: Context) -> Store:
        if self._opened is None:
            self._opened = self._open()
        return self._opened if self._near else Interruptible(self._opened, ctx)

    def sign(self, ctx: Context, creator: str) -> None:
        self._signature = signature(creator)
        self._at(ctx).put(layout.creator_path(self.mark), json.dumps(self._signature).encode())

    def creators(self, ctx: Context) -> dict[str, str]:
        try:
            return read_creators(self._at(ctx))
        except NotFound:
            return {}

    def save(
        self, ctx: Context, task: Task, environment: dict[str, str], creator: str = ""
    ) -> None:
        self.sign(ctx, creator)
        if not self._at(ctx).put_new(layout.TASK, task_text(task)) and _differs(
            self.load(ctx), task
        ):
            raise Conflict(
                "a different task with this name already exists",
                hint="Delete it first or choose another name.",
            )
        # Last, so that another task keeps its own; a repeat brings the newest values.
        self._at(ctx).put(layout.ENVIRONMENT, json.dumps(environment).encode())

    def alone(self, ctx: Context) -> bool:
        try:
            found = self._at(ctx).list(layout.CREATORS)
        except NotFound:
            return True
        return all(item.path == layout.creator_path(self.mark) for item in found)

    def amend(self, ctx: Context, task: Task, environment: dict[str, str] | None = None) -> None:
        self._at(ctx).put(layout.TASK, task_text(task))
        if environment is not None:
            self._at(ctx).put(layout.ENVIRONMENT, json.dumps(environment).encode())

    def begin_again(self, ctx: Context) -> None:
        store = self._at(ctx)
        run = layout.run_path(layout.newest_run(store.list(layout.RUNS)) + 1)
        store.put(run, b"")  # from now on, whoever repeats this goes on here
        for name in layout.OF_A_RUN:
            store.delete([item.path for item in store.list(name)])
        store.put(run, b"begun")

    def is_beginning_again(self, ctx: Context) -> bool:
        return any(not item.size for item in self._at(ctx).list(layout.RUNS))

    def load(self, ctx: Context) -> Task:
        return load_task(self._at(ctx))

    def push(
        self,
        ctx: Context,
        workdir: Path,
        filters: Filters,
        ignore: Ignore | None,
        found: Found | None = None,
    ) -> None:
        def skipped(path: str, reason: str, *, lost: bool = False) -> None:
            if lost:
                raise InvalidInput(
                    "storage.workdir",
                    f"could not upload {workdir / path}: {reason}. "
                    "Make sure it is readable and not being written, "
                    "or add it to storage.exclude",
                )
            ctx.warn(f"Not uploading {path}: {reason}")

        if not workdir.is_dir():
            raise InvalidInput("storage.workdir", f"{workdir} is not a folder")
        writer = SnapshotWriter(self._at(ctx), layout.WORKDIR)
        before = newest(self._at(ctx), layout.WORKDIR)
        if before:
            number, manifest = before
            writer.begin(manifest, number)
        stripped: list[str] = []
        told = telling(ctx, self._at(ctx), layout.creator_path(self.mark), self._signature)
        writer.take(
            told,
            workdir,
            filters,
            ignore=ignore,
            skipped=skipped,
            stripped=stripped.append,
            step="Uploading workdir",
            found=found,
        )
        if stripped:
            ctx.warn(_uploaded_without_special_bits(stripped))

    def keep_program(self, ctx: Context, sha256: str, file: Path) -> None:
        put_program(ctx, self._at(ctx), sha256, file)

    def uploading(self, ctx: Context) -> Activity | None:
        try:
            return read_upload(self._at(ctx))
        except NotFound:
            return None

    def pull(
        self, ctx: Context, output: str, into: Path, filters: Filters, memory: Path | None
    ) -> list[str]:
        task = self.load(ctx)
        ranks = range(task.parallelism)
        return pull(
            ctx, self._at(ctx), ranks, output, into, filters, memory=memory, given=task.files
        )

    def holds(self, ctx: Context, output: str) -> bool:
        return holds(self._at(ctx), range(self._ranks(ctx)), output)

    def changed(
        self,
        ctx: Context,
        output: str = "",
        filters: Filters | None = None,
        into: Path | None = None,
        memory: Path | None = None,
    ) -> list[ChangedFile]:
        try:
            task = self.load(ctx)
            wanted = Wanted(output, into, filters or Filters(), memory, task.files)
            return changed_files(self._at(ctx), range(task.parallelism), wanted)
        except NotFound:
            return []

    def cursor(self) -> Cursor:
        return Cursor()

    def logs(self, ctx: Context, cursor: LogCursor, part: LogPart = WHOLE) -> Iterator[LogLine]:
        assert isinstance(cursor, Cursor)  # noqa: S101 -- made by `cursor` above
        try:
            ranks = range(self._ranks(ctx))
        except NotFound:
            return
        yield from read_part(self._at(ctx), ranks, cursor, part)

    def log_tail(self, ctx: Context, size: int) -> Iterator[LogLine]:
        try:
            ranks = range(self._ranks(ctx))
        except NotFound:
            return
        yield from read_last(self._at(ctx), ranks, size)

    def watch(self, ctx: Context) -> None:
        self._at(ctx).put(layout.FOLLOW, utc_now().encode())

    def records(self, ctx: Context, parallelism: int) -> list[RankRecord]:
        try:
            return read_records(self._at(ctx), parallelism)
        except NotFound:
            return [RankRecord(rank) for rank in range(parallelism)]

    def reports(self, ctx: Context) -> list[Report]:
        try:
            return read_reports(self._at(ctx))
        except NotFound:
            return []

    def created(self, ctx: Context) -> str:
        try:
            marks = self._at(ctx).list(layout.CREATORS)
            task = self._at(ctx).head(layout.TASK)
        except NotFound:
            return ""
        # A mark is rewritten during an upload, and the task if it is amended.
        times = [mark.modified for mark in (*marks, task) if mark]
        return utc(min(times)) if times else ""

    def idle(self, ctx: Context) -> float:
        try:
            found = self._at(ctx).list("")
        except NotFound:
            return float("inf")
        # Its own mark, which a former look may have left, does not count.
        times = [item.modified for item in found if item.path != layout.machine_path(_LOOKER)]
        if not times:
            return float("inf")
        return (store_clock(self._at(ctx), _LOOKER) - max(times)).total_seconds()

    def _ranks(self, ctx: Context) -> int:
        return self.load(ctx).parallelism


def load_task(store: Store) -> Task:
    """The task that a store belongs to. Absent: raises NotFound."""
    return read_json(store, layout.TASK, _task, most=_LARGEST)


def _task(data: Any) -> Task:
    written, task = data["format"], data["task"]
    if type(written) is int and written != _FORMAT:
        raise Conflict(
            f"Unsupported task format {written}: this version of sojourn supports {_FORMAT}",
            hint="Use the version of sojourn that created it, or a newer one.",
        )
    return Task.from_dict(task)


def load_environment(store: Store) -> dict[str, str]:
    """The values of the task's environment."""
    return read_json(store, layout.ENVIRONMENT, dict, most=_LARGEST)


def _uploaded_without_special_bits(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    named = ", ".join(paths[:_NAMED])
    return f"Uploaded without their setuid, setgid and sticky bits: {named}{more}"


def task_text(task: Task) -> bytes:
    """A task as it is written down."""
    return json.dumps({"format": _FORMAT, "task": task.to_dict()}, sort_keys=True).encode()


def _differs(one: Task, other: Task) -> bool:
    return one.to_dict() != other.to_dict()
