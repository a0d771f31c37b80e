"""A task that exists, or existed, and every verb on it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import clouds, engine
from sojourn.core.clock import seconds_between
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, SojournError
from sojourn.core.events import Downloaded
from sojourn.core.logpart import LogPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from subprocess import CompletedProcess

    from typing_extensions import Self

    from sojourn.core.events import CloudEvent, LogLine
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import (
        ChangedFile,
        Cloud,
        Connection,
        KeyPair,
        Member,
        Reach,
        RemoteProcess,
        Terminal,
    )
    from sojourn.core.report import Report
    from sojourn.core.status import State, Status
    from sojourn.core.task import Task
    from sojourn.engine.ledger import Origin

__all__ = ["Handle", "Result"]


@dataclass(frozen=True)
class Result:
    """How a task ended.

    `kept`: why it was not deleted; empty if it was. `log`: where its log was saved then.
    `seconds`: from its first start to its last end, None if that is not known. `attempts`: the most
    of any rank. `downloaded`: which results came home. `lost`: some of them could not be stored.
    `gone`: another command deleted it before they came home here.
    """

    id: str
    status: State
    exit_code: int | None
    reason: str
    kept: str = ""
    log: Path | None = None
    seconds: int | None = None
    attempts: int = 0
    downloaded: Downloaded | None = None
    lost: bool = False
    gone: bool = False


class Handle:
    """A task that exists, or existed. Every verb can be repeated."""

    def __init__(
        self,
        cloud: Cloud,
        id: TaskId,
        ctx: Context | None = None,
        task: Task | None = None,
        *,
        made: bool = False,
    ) -> None:
        self._cloud = cloud
        self._id = id
        self._ctx = ctx or Context()
        self._at = self._ctx, cloud, id  # what the engine has to be told
        self._task = task  # as this program asked for it; unlike the store's, nobody forged it
        self._made = made  # by this program, and nothing of it was there before

    @classmethod
    def of(cls, handle: Handle) -> Self:
        """The same task, as a handle of this kind."""
        return cls(handle._cloud, handle._id, handle._ctx, handle._task, made=handle._made)

    @property
    def id(self) -> str:
        """The task's id, good in any shell."""
        return str(self._id)

    @property
    def cloud(self) -> str:
        """The name of the cloud it is in."""
        return self._cloud.name

    def exists(self) -> bool:
        """Whether anything of it is there."""
        return engine.lifecycle.exists(*self._at)

    def task(self) -> Task:
        """What was asked for, without the environment's values."""
        task = self._cloud.data(self._id).load(self._ctx)
        # Whoever created it may have named its cloud otherwise.
        here = clouds.leads_to(task.cloud, self._cloud)
        return task if here else replace(task, cloud=self.cloud)

    def status(self) -> Status:
        """Its state now."""
        return engine.observe.status(*self._at)

    def machines(self) -> list[Member]:
        """The machines that are alive now."""
        fleet = self._cloud.scaler(self._id).fleet(self._ctx)
        return list(fleet.machines) if fleet else []

    def events(self) -> list[CloudEvent]:
        """What the scaler tells of itself."""
        return self._cloud.scaler(self._id).events(self._ctx)

    def keys(self) -> KeyPair | None:
        """What opens its machines by SSH: whoever has it is root there. None on some clouds."""
        return self._cloud.scaler(self._id).keys(self._ctx)

    def reports(self) -> list[Report]:
        """How each attempt that is over ended."""
        return self._cloud.data(self._id).reports(self._ctx)

    @property
    def short(self) -> str:
        """Its name, which commands take as well; its id if this computer has two of that name."""
        return engine.ledger.short(self._id)

    def origin(self) -> Origin | None:
        """How this computer created it; None if it did not, or has forgotten."""
        return engine.ledger.find(self._id)

    def created_here(self) -> bool:
        """Whether this computer created it, and not only a task of the same name."""
        return engine.home.created_here(self._ctx, self._cloud.data(self._id), self._id)

    def created(self) -> str:
        """When it was created, in UTC; empty if nobody knows."""
        return self._cloud.data(self._id).created(self._ctx)

    def logs(
        self,
        *,
        follow: bool = False,
        rank: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> Iterator[LogLine]:
        """What was printed; with `follow`, goes on until the task has ended.

        `tail`: the last so many lines of what there is. `since`: no lines from before.
        """
        from sojourn.core.clock import utc  # most commands have no time to look at

        if tail is not None and tail < 0:
            raise InvalidInput("tail", f"must be at least 0, got {tail}")
        reading = engine.observe.follow if follow else engine.observe.logs
        part = LogPart(rank, attempt, tail, utc(since) if since else "")
        yield from reading(*self._at, part)

    def wait(self) -> Result:
        """Wait until it has ended."""
        for _ in engine.observe.follow(*self._at):
            pass
        now = self.status()
        return Result(self.id, now.state, now.exit_code, now.reason)

    def wait_until(self, obstacle: Callable[[], str], step: str, poll: float) -> None:
        """Wait until there is no obstacle any more, or it has succeeded; a failure says why.

        `poll`: seconds between looks, at most.
        """
        engine.answering.until(*self._at, obstacle, step, poll)

    def awaited(self, *, keep: bool = False) -> AbstractContextManager[None]:
        """For whoever waits for its end within: an error leaves nothing behind without a word.
        A task that can never run is removed if this handle created it, unless `keep`."""
        keep = keep or not self._made
        return engine.withdrawal.awaited(*self._at, keep=keep)

    def pull(self, into: str | Path | None = None, *, output: str | None = None) -> list[str]:
        """Bring the output home; works at any time. Returns the paths that were written.

        `output`: another part of the workdir than the task says.
        """
        folder = Path(into) if into else None
        return engine.results.pull(*self._at, task=self._task, into=folder, output=output)

    def amend(self, *, output: str | None, exclude: Sequence[str]) -> None:
        """Change what comes home, and which files are transferred in neither direction."""
        engine.results.amend(*self._at, output, tuple(exclude))
        self._task = None

    def left_nothing(self, output: str | None = None) -> bool:
        """Whether there is an output to bring home, and the task left nothing there.

        `output`: another one than the task says.
        """
        return engine.results.left_nothing(*self._at, output)

    def changed(self) -> list[ChangedFile]:
        """Files in its workdir that are new or differ from what was uploaded, caches aside."""
        return self._cloud.data(self._id).changed(self._ctx)

    def misses_some(self, output: str | None = None) -> bool:
        """Whether it left files that do not come home, and only you can tell if you want them:
        no changed file is in the output, or it has none, or programs here could run them.

        `output`: another one than the task says.
        """
        return bool(engine.results.foreseen(*self._at, output).why)

    def lost_some(self) -> bool:
        """Whether some of its output could not be stored, and may still be on a machine."""
        return engine.results.lost_some(*self._at)

    def stop(self) -> None:
        """Take its machines away; `start` resumes from the last snapshot."""
        engine.lifecycle.stop(*self._at)

    def start(self) -> None:
        """Resume what was stopped."""
        engine.lifecycle.start(*self._at)

    def interrupt(self, rank: int | None = None, *, notice: bool = True) -> list[str]:
        """Take a machine away as a spot market does; returns the machines."""
        return engine.lifecycle.interrupt(*self._at, rank, notice=notice)

    def exec(
        self, command: str | Sequence[str], rank: int = 0, *, input: bytes = b""
    ) -> CompletedProcess[bytes]:
        """Run a command on the machine of a rank, and wait for its end.

        It runs beside the script, in its workdir and with its environment. A text is run by `sh`.
        `input`: its standard input.
        """
        from subprocess import CompletedProcess  # not free, and few have a use for it

        process = self.popen(command, rank)
        return CompletedProcess(command, *engine.reaching.exchange(process, input))

    def popen(
        self, command: str | Sequence[str], rank: int = 0, *, terminal: Terminal | None = None
    ) -> RemoteProcess:
        """Start a command as `exec` does, and talk to it while it runs; has to be closed."""
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        if not words:
            raise InvalidInput("command", "must not be empty")
        return self._reach(rank).run(self._ctx, words, terminal)

    def connect(self, port: int, rank: int = 0) -> Connection:
        """Connect to a port of the machine of a rank; has to be closed."""
        if not 0 < port < 1 << 16:
            raise InvalidInput("port", f"must be between 1 and 65535, got {port}")
        return self._reach(rank).connect(self._ctx, port)

    def _reach(self, rank: int) -> Reach:
        return engine.reaching.reach(*self._at, rank)

    def delete(
        self,
        *,
        into: str | Path | None = None,
        output: str | None = None,
        fetch: bool = True,
        force: bool = False,
    ) -> None:
        """Bring the output home and remove everything; of a task that is gone, nothing is left.

        `fetch=False` discards the results. `force` removes everything even if they cannot be
        brought home.
        """
        folder, task = Path(into) if into else None, self._task
        engine.removal.delete(
            *self._at, task=task, into=folder, output=output, fetch=fetch, force=force
        )

    def conclude(
        self, status: Status | None = None, *, keep: bool = False, keep_failed: bool = False
    ) -> Result:
        """Bring the output home and delete it, unless there is a reason to keep it: see `run`.

        `status`: as it was seen last. A task that is gone raises NotFound.
        """
        now = status or self.status()
        reports: list[Report] = []
        with suppress(SojournError, OSError):  # how long it took is not worth an error
            reports = self.reports()
        came: list[Downloaded] = []
        with self.awaited(keep=True):
            kept = engine.removal.conclude(
                self._ctx.heard(came, Downloaded),
                self._cloud,
                self._id,
                now.state,
                task=self._task,
                keep=keep,
                keep_failed=keep_failed,
            )
        return Result(
            self.id,
            now.state,
            now.exit_code,
            now.reason,
            kept,
            None if kept else engine.ledger.log_path(self._id),
            seconds_between([r.started for r in reports], [r.ended for r in reports]),
            max((rank.attempt for rank in now.ranks), default=0),
            came[-1] if came else None,
            any(report.lost for report in reports if report.outcome.final)
            or bool(kept and not reports and self.lost_some()),
        )

    def __repr__(self) -> str:
        return f"Handle({self.id!r}, cloud={self.cloud!r})"
