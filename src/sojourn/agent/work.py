"""What an agent does, from taking a rank to reporting its end."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from sojourn.agent.background import aside, say
from sojourn.agent.config import GONE, RANK_ENDED, TROUBLE, UNSTORED, Config
from sojourn.agent.disk import remove_tree
from sojourn.agent.environment import script_environment
from sojourn.agent.memory import give_back_memory
from sojourn.agent.notice import Notice
from sojourn.agent.process import CannotStart, adopt_orphans, run_here
from sojourn.agent.runner import RunnerLife
from sojourn.agent.staying import Idle, staying
from sojourn.agent.sync import Keeper, LogSync, Snapshots
from sojourn.agent.telling import Telling
from sojourn.agent.wakeup import Wakeup
from sojourn.core.clock import utc_now
from sojourn.core.context import Context
from sojourn.core.errors import (
    AuthError,
    Cancelled,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)
from sojourn.core.report import Outcome, Report
from sojourn.storage import layout
from sojourn.storage.data import load_environment, load_task
from sojourn.storage.lease import Lease, Leases, read_reports
from sojourn.storage.logs import LogWriter
from sojourn.storage.manifest import Manifest, decode
from sojourn.storage.ranks import snapshots_of_rank
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import newest
from sojourn.storage.store import Store, StoreAddress, open_store

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Container

    from sojourn.agent.process import Launch, RunningScript
    from sojourn.core.task import Task

__all__ = ["Agent"]

_GONE_AFTER = 10.0  # seconds without a task, which a store may just not know yet
_LOST_IN_A_ROW = 10  # times
_KEPT_TRYING = 300.0  # seconds for the last words of a machine, while the store is out of reach
_PRINTED_WITHIN = 10.0  # seconds for the last of the output, should anything still hold it open
_SOON = 0.5  # seconds between the first looks for a rank
_LOOK_AGAIN = 60.0  # seconds, should ever a signal get lost
_TICK = 0.05
_WORKERS = 4  # each may hold a pack
_Result = TypeVar("_Result")


class Agent:
    """One machine's life: a rank is taken, carried out and reported.

    `store`: the task's, if the document's URL does not say it all. `launch`: how scripts are run,
    if not as a process of this one. `dead`: machines that are gone, if that can be asked at any
    time.
    """

    def __init__(
        self,
        config: Config,
        *,
        store: Store | None = None,
        launch: Launch | None = None,
        dead: Container[str] | None = None,
    ) -> None:
        self._config = config
        self._store = store
        self._launch = launch
        self._dead: Container[str] = dead if dead is not None else frozenset(config.dead)
        self._began = time.monotonic()
        self._wakeup = Wakeup()
        self._notice = Notice(self._wakeup)

    @property
    def going(self) -> bool:
        """Whether it was told that the machine goes away."""
        return bool(self._notice)

    def run(self) -> int:
        """Live; returns the exit code that tells whether the machine is still needed."""
        give_back_memory()
        adopt_orphans()
        self._wakeup.on_signals(signal.SIGCHLD)
        self._notice.listen()
        if self._config.lifeline:
            self._notice.watch_lifeline()
        store = self._store or open_store(
            StoreAddress(self._config.store, self._config.store_options)
        )
        ctx = Context(cancelled=self._notice.event)
        try:
            task = self._load_task(ctx, store)
            if task is None:
                return RANK_ENDED
            leases = Leases(
                store,
                self._config.machine,
                task.parallelism,
                ttl=self._config.ttl,
                dead=self._dead,
                rank=self._config.rank,
            )
            lease = self._take(ctx, leases)
        except Cancelled:
            return GONE
        if lease is None:
            return RANK_ENDED
        attempt = _Attempt(
            self._config, self._notice, self._wakeup, self._began, store, task, leases, lease
        )
        if self._launch:
            attempt.launch = self._launch
        return attempt.run()

    def _load_task(self, ctx: Context, store: Store) -> Task | None:
        """None if it was deleted: whoever comes next would find nothing to do either."""
        give_up = time.monotonic() + _GONE_AFTER
        while True:
            try:
                return load_task(store)
            except NotFound as error:
                say(str(error))
                if time.monotonic() > give_up:
                    say("the task was deleted")
                    return None
            ctx.sleep(1)

    def _take(self, ctx: Context, leases: Leases) -> Lease | None:
        """Whether a machine is gone is often known a moment later: at first, look again soon."""
        pause = _SOON
        while True:
            try:
                lease = leases.take()
                if lease is not None or leases.all_ended():
                    return lease
            except Transient as error:
                say(str(error))
            ctx.sleep(min(pause, self._config.look))
            pause *= 1.25


class _Attempt:
    """One attempt of a rank on this machine."""

    def __init__(
        self,
        config: Config,
        notice: Notice,
        wakeup: Wakeup,
        began: float,
        store: Store,
        task: Task,
        leases: Leases,
        lease: Lease,
    ) -> None:
        self._config = config
        self._notice = notice
        self._wakeup = wakeup
        self._telling = Telling()
        self._deadline = began + (task.timeout or float("inf"))
        self._store = store
        self._task = task
        self._leases = leases
        self._lease = lease
        self._folder = Path(config.folder)
        self._workdir = self._folder / "workdir"
        self._log = LogWriter(store, lease.rank, lease.attempt)
        self._snapshots = Snapshots(
            store,
            lease,
            self._log,
            self._workdir,
            task.filters(),
            config.snapshot_every,
            config.notice,
            self._telling,
        )
        self._keeper = Keeper(leases, lease, notice, config.ttl, self._telling)
        self._report = Report(lease.rank, lease.attempt, Outcome.FAILED, "", started=utc_now())
        self._pump: threading.Thread | None = None
        self._runner: RunnerLife | None = None
        self.launch: Launch = run_here

    def run(self) -> int:
        self._keeper.start()
        try:
            report = self._carry_out()
            if self._notice.abandoned:
                return GONE
            report = self._store_log(report)
            if report.lost and report.outcome.final:
                self._leave_files()
            report = replace(report, ended=utc_now(), segments=self._log.segments)
            if not self._last_words(lambda: self._leases.report(report)):
                return GONE  # it was given up just now, and another machine carries it out
        except SojournError as error:
            say(f"giving up: {error}")
            return TROUBLE
        finally:
            self._keeper.stop()
        return RANK_ENDED if report.outcome.final else GONE

    def _carry_out(self) -> Report:
        try:
            if self._is_hopeless():
                return self._failed(
                    f"the machine was lost {_LOST_IN_A_ROW} times in a row before storing "
                    "anything; the script may be crashing it"
                )
            restored = self._restore()
            self._telling.restoring = None
            script = self._start()
        except Cancelled:
            return self._preempted()
        except CannotStart as error:
            return replace(self._failed(str(error)), exit_code=error.code)
        except (IntegrityError, NotFound, QuotaError) as error:
            return self._failed(f"could not prepare the machine: {error.message}")
        except OSError as error:
            return self._failed(f"could not prepare the machine: {error}")
        except Transient:
            if time.monotonic() > self._deadline:
                return self._timed_out(None)
            raise
        sync = LogSync(self._store, self._log, self._config.look, self._telling)
        sync.start()
        self._snapshots.start(restored)
        self._pump = aside("output", lambda: self._read_output(script))
        report = self._watch(script)
        script.kill()  # also what the script left behind
        if self._runner and report.outcome.final:
            self._runner.leave()
        sync.stop()
        self._snapshots.stop()
        if self._notice.abandoned:
            return report
        return self._store_results(report)

    def _store_results(self, report: Report) -> Report:
        """Take the last snapshot. If there is no room for it, there is none for another try."""
        try:
            self._last_words(partial(self._snapshots.take, last=True))
        except (AuthError, QuotaError) as error:
            if self._notice.abandoned or not report.outcome.final:
                raise
            self._make_room()
            return _with_unstored(report, _obstacle(error))
        return self._with_lost(report)

    def _make_room(self) -> None:
        try:
            self._snapshots.make_room()
        except SojournError as error:
            say(str(error))

    def _leave_files(self) -> None:
        """Leave what could not be stored where it is found, should this disk outlive the machine.

        A rename needs no room.
        """
        try:
            self._workdir.rename(self._folder / UNSTORED)
        except OSError as error:
            say(str(error))

    def _is_hopeless(self) -> bool:
        """Whether the last attempts came to nothing: another one would cost and do the same."""
        rank, attempt = self._lease.rank, self._lease.attempt
        last = range(attempt - _LOST_IN_A_ROW, attempt)
        if last.start < 1:
            return False
        reports = [r for r in read_reports(self._store) if r.rank == rank and r.attempt in last]
        stored = [layout.numbers(path)[1] for path in snapshots_of_rank(self._store, rank)]
        return all(r.outcome is Outcome.LOST for r in reports) and not set(stored) & set(last)

    def _restore(self) -> Manifest:
        """Of the newest snapshot of the rank that is whole, else of what was pushed."""
        rank = self._lease.rank
        damage: SojournError | None = None
        tried: set[str] = set()
        # Listed anew each time: an agent that is being replaced may still write and sweep.
        while left := [p for p in snapshots_of_rank(self._store, rank) if p not in tried]:
            path = left[0]
            tried.add(path)
            try:
                return self._restore_from(decode(self._store.get(path)))
            except (IntegrityError, NotFound) as error:
                say(f"could not restore {path}: {error}")
                damage = damage or error
        if damage:
            raise damage
        pushed = newest(self._store, layout.WORKDIR)
        return self._restore_from(pushed[1] if pushed else Manifest())

    def _restore_from(self, manifest: Manifest) -> Manifest:
        ctx = Context(self._telling.on_event, cancelled=self._notice.event, deadline=self._deadline)
        remove_tree(self._workdir)  # of an agent that died here, or of a snapshot that was damaged
        self._workdir.mkdir(parents=True)
        entries = Restorer(self._store, self._workdir, workers=_WORKERS).restore(
            ctx, manifest.release(), manifest.objects
        )
        return Manifest(entries, manifest.objects)

    def _start(self) -> RunningScript:
        file = self._folder / "script"
        text = self._task.script
        if self._task.stay:
            startup = self._folder / "startup"
            _write_program(startup, text)
            startup.chmod(0o755)  # the script, which runs it, may be another user's
            text = staying(startup)
        _write_program(file, text)
        given = load_environment(self._store)
        if self._task.runner:
            self._runner = RunnerLife(
                self._task.runner,
                given,
                self._folder,
                self._workdir,
                self._snapshots.soon,
                self._store,
            )
            self._runner.prepare()
        environment = script_environment(
            given,
            self._task,
            rank=self._lease.rank,
            attempt=self._lease.attempt,
            machine=self._config.machine,
        )
        return self.launch(
            file, self._workdir, environment, self._task.arguments, self._wakeup.wake
        )

    def _read_output(self, script: RunningScript) -> None:
        while data := script.output.read(65536):
            self._log.append(data)

    def _store_log(self, report: Report) -> Report:
        """Store what is not stored yet; if there is no room for it, how the script ended counts."""
        try:
            self._flush_log()
        except (AuthError, QuotaError) as error:
            if self._notice.abandoned:
                raise
            return _with(report, f"could not store the end of the log: {_obstacle(error)}")
        return report

    def _flush_log(self) -> None:
        """Writing makes room for output that waited for some."""
        give_up = time.monotonic() + _PRINTED_WITHIN
        while self._pump and self._pump.is_alive() and time.monotonic() < give_up:
            self._last_words(self._log.flush)
            self._pump.join(_TICK)
        self._last_words(lambda: self._log.flush(last=True))

    def _watch(self, script: RunningScript) -> Report:
        ending = self._runner or Idle(self._task.idle_timeout, script.used)
        while True:
            code = script.wait(0)
            if code is not None:
                report = self._ended(code, script.out_of_memory)
                return replace(report, reason=report.reason or self._why_over())
            if self._notice:
                script.end(0 if self._notice.abandoned else self._config.grace)
                return self._preempted()
            if time.monotonic() > self._deadline:
                return self._timed_out(script.end(self._config.grace))
            if ending.over():
                script.end(self._config.grace)
                return self._idle(ending.reason)
            left = self._deadline - time.monotonic()
            self._wakeup.wait(min(left, ending.look_within, _LOOK_AGAIN))

    def _why_over(self) -> str:
        """A runner that was asked to end does so when its job is done."""
        return self._runner.reason if self._runner else ""

    def _ended(self, code: int, out_of_memory: bool) -> Report:
        if code == 0:
            return replace(self._report, outcome=Outcome.SUCCEEDED, exit_code=0)
        return replace(self._failed(_why(code, out_of_memory)), exit_code=code)

    def _failed(self, why: str) -> Report:
        return replace(self._report, outcome=Outcome.FAILED, reason=why)

    def _timed_out(self, code: int | None) -> Report:
        why = f"exceeded the timeout of {self._task.timeout} seconds"
        return replace(self._report, outcome=Outcome.TIMED_OUT, exit_code=code, reason=why)

    def _idle(self, why: str) -> Report:
        """As good an end as any, for what has none of its own."""
        return replace(self._report, outcome=Outcome.SUCCEEDED, exit_code=0, reason=why)

    def _with_lost(self, report: Report) -> Report:
        """Files that could not be stored are missing from the results: that has to be told."""
        lost = self._snapshots.lost
        output = self._task.storage.output or ""
        if not lost:
            return self._with_left_out(report, output)
        missing = [path for path in lost if output and _meets(path, output)]
        path = (missing or list(lost))[0]
        which = path if len(lost) == 1 else f"{len(lost)} files, including {path}"
        told = f"could not store {which}: {lost[path]}"
        return replace(_with(report, told), lost=len(missing))

    def _with_left_out(self, report: Report, output: str) -> Report:
        """Symlinks that lead outside and the like; whoever made them may count on them."""
        for path, why in self._snapshots.left_out.items():
            if output and _meets(path, output):
                return _with(report, f"did not store {path}: {why}")
        return report

    def _preempted(self) -> Report:
        return replace(self._report, outcome=Outcome.PREEMPTED, reason=self._notice.reason)

    def _last_words(self, say_them: Callable[[], _Result]) -> _Result:
        """Try for a while: the results are worth it."""
        give_up = time.monotonic() + _KEPT_TRYING
        while True:
            try:
                return say_them()
            except (AuthError, NotFound, QuotaError, Transient) as error:
                say(str(error))
                self._telling.on_files(error)
                if time.monotonic() > give_up or self._notice.abandoned:
                    raise
                time.sleep(1)


def _write_program(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    file.chmod(0o700)


def _meets(path: str, output: str) -> bool:
    """Whether a path is in the output, or the output in it; `.` is all of the workdir."""
    one, other = PurePosixPath(path).parts, PurePosixPath(os.path.normpath(output)).parts
    common = min(len(one), len(other))
    return one[:common] == other[:common]


def _with(report: Report, told: str) -> Report:
    """A report that tells this as well."""
    return replace(report, reason=f"{report.reason}; {told}" if report.reason else told)


def _with_unstored(report: Report, why: str) -> Report:
    """A script whose results are lost has not succeeded, whatever it says."""
    if report.outcome is Outcome.SUCCEEDED:
        report = replace(report, outcome=Outcome.FAILED, exit_code=None)
    return replace(_with(report, f"could not store the results: {why}"), lost=-1)


def _obstacle(error: SojournError) -> str:
    full = isinstance(error, QuotaError)  # whatever it was that did not fit in
    return "no space left in the store" if full else error.message


def _why(code: int, out_of_memory: bool) -> str:
    if out_of_memory:
        return f"the machine ran out of memory; the script ended with exit code {code}"
    if code <= 128:
        return f"the script ended with exit code {code}"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return f"the script ended with exit code {code}"
    hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
    return f"the script was killed by {name}{hint}"
