"""One attempt of a rank on a machine: restore, run the script, store, report."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn.agent.background import aside, say
from sojourn.agent.config import GONE, RANK_ENDED, TROUBLE, UNSTORED, Config
from sojourn.agent.environment import script_environment
from sojourn.agent.given import stage
from sojourn.agent.outcomes import also_saying, meets, obstacle, unstored, why_ended
from sojourn.agent.process import CannotStart, run_here
from sojourn.agent.restoring import Restoring
from sojourn.agent.shared import write_program
from sojourn.agent.sync import Keeper, LogSync, Snapshots
from sojourn.agent.telling import Telling
from sojourn.agent.workloads import workload_of
from sojourn.agent.workloads.workload import Host
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
from sojourn.storage.data import load_environment
from sojourn.storage.lease import Lease, Leases, read_reports
from sojourn.storage.logs import LogWriter
from sojourn.storage.ranks import snapshots_of_rank

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from sojourn.agent.notice import Notice
    from sojourn.agent.process import Launch, RunningScript
    from sojourn.agent.wakeup import Wakeup
    from sojourn.core.task import Task
    from sojourn.storage.store import Store

__all__ = ["AGAIN", "Attempt"]

AGAIN = -1  # no exit code: the gang starts again, and this machine can take part in it
_LOST_IN_A_ROW = 10  # times
_KEPT_TRYING = 300.0  # seconds for the last words of a machine, while the store is out of reach
_PRINTED_WITHIN = 10.0  # seconds for the last of the output, should anything still hold it open
_LOOK_AGAIN = 60.0  # seconds, should ever a signal get lost
_TICK = 0.05
_Result = TypeVar("_Result")


class Attempt:
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
        self._workload = workload_of(
            Host(config, store, task, lease, leases, self._snapshots, self._telling, wakeup.wake)
        )
        self.launch: Launch = run_here
        self.unstored: Callable[[int, int], None] | None = None

    def run(self) -> int:
        self._keeper.start()
        try:
            report = self._carry_out()
            if self._notice.abandoned:
                return GONE
            report = self._settle(self._store_log(report))
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
        if self._workload.again:
            return AGAIN
        return RANK_ENDED if report.outcome.final else GONE

    def _settle(self, report: Report) -> Report:
        """What the workload makes of it, if this machine has the time."""
        try:
            return self._workload.settle(self._context(), report)
        except Cancelled:
            return self._preempted()

    def _context(self, deadline: float = float("inf")) -> Context:
        return Context(cancelled=self._notice.event, deadline=deadline)

    def _carry_out(self) -> Report:
        try:
            if self._config.refused:
                return self._failed(self._config.refused)
            if self._is_hopeless():
                return self._failed(
                    f"the machine was lost {_LOST_IN_A_ROW} times in a row before storing "
                    "anything; the script may be crashing it"
                )
            if not self._prepare():
                return self._report
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
        self._snapshots.start()
        self._workload.start(script)
        self._pump = aside("output", lambda: self._read_output(script))
        report = self._watch(script)
        if report.outcome.final:
            self._telling.on_end(report.exit_code)
        script.kill()  # also what the script left behind
        if report.outcome.final:
            self._workload.leave()
        sync.stop()
        self._snapshots.stop()
        self._workload.stop()
        if self._notice.abandoned or self._workload.again:
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
            return unstored(report, obstacle(error))
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
        stored = map(layout.attempt_of_data, snapshots_of_rank(self._store, rank))
        return all(r.outcome is Outcome.LOST for r in reports) and not set(stored) & set(last)

    def _prepare(self) -> bool:
        """Have the workdir as it should be. False: the workload says that no script is to run."""
        ctx = self._context(self._deadline)
        files = self._task.files
        restoring = Restoring(self._store, self._lease.rank, self._workdir, files, self._telling)
        restored = self._workload.restore(ctx, restoring)
        if restored is None:
            return False
        self._telling.restoring = None
        self._snapshots.begin(restored)
        return self._workload.ready(ctx)

    def _start(self) -> RunningScript:
        stage(self._folder, self._task.files)
        given = load_environment(self._store)
        self._workload.prepare(self._context(), given)
        environment = script_environment(
            given,
            self._task,
            rank=self._lease.rank,
            attempt=self._lease.attempt,
            machine=self._config.machine,
        )
        environment = {**self._workload.environment(), **environment}
        program = self._workload.program()
        file = self._folder / "script"
        write_program(file, program)  # last: whoever sees it can be sure that it starts now
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
            return also_saying(report, f"could not store the end of the log: {obstacle(error)}")
        return report

    def _flush_log(self) -> None:
        """Writing makes room for output that waited for some."""
        give_up = time.monotonic() + _PRINTED_WITHIN
        while self._pump and self._pump.is_alive() and time.monotonic() < give_up:
            self._last_words(self._log.flush)
            self._pump.join(_TICK)
        self._last_words(lambda: self._log.flush(last=True))

    def _watch(self, script: RunningScript) -> Report:
        workload = self._workload
        while True:
            code = script.wait(0)
            if code is not None:
                report = self._ended(code, script.out_of_memory)
                return replace(report, reason=report.reason or workload.reason)
            if self._notice:
                script.end(0 if self._notice.abandoned else self._config.grace)
                return self._preempted()
            if time.monotonic() > self._deadline:
                return self._timed_out(script.end(self._config.grace))
            if end := workload.end():
                script.end(0 if workload.again else self._config.grace)
                return replace(
                    self._report, outcome=end.outcome, exit_code=end.exit_code, reason=end.reason
                )
            left = self._deadline - time.monotonic()
            self._wakeup.wait(min(left, workload.look_within, _LOOK_AGAIN))

    def _ended(self, code: int, out_of_memory: bool) -> Report:
        if code == 0:
            return replace(self._report, outcome=Outcome.SUCCEEDED, exit_code=0)
        return replace(self._failed(why_ended(code, out_of_memory)), exit_code=code)

    def _failed(self, why: str) -> Report:
        return replace(self._report, outcome=Outcome.FAILED, reason=why)

    def _timed_out(self, code: int | None) -> Report:
        why = f"exceeded the timeout of {self._task.timeout} seconds"
        return replace(self._report, outcome=Outcome.TIMED_OUT, exit_code=code, reason=why)

    def _with_lost(self, report: Report) -> Report:
        """Files that could not be stored are missing from the results: that has to be told."""
        lost = self._snapshots.lost
        output = self._task.storage.output or ""
        if not lost:
            return self._with_left_out(report, output)
        missing = [path for path in lost if output and meets(path, output)]
        path = (missing or list(lost))[0]
        which = path if len(lost) == 1 else f"{len(lost)} files, including {path}"
        told = f"could not store {which}: {lost[path]}"
        return replace(also_saying(report, told), lost=len(missing))

    def _with_left_out(self, report: Report, output: str) -> Report:
        """Symlinks that lead outside and the like; whoever made them may count on them."""
        for path, why in self._snapshots.left_out.items():
            if output and meets(path, output):
                return also_saying(report, f"did not store {path}: {why}")
        return report

    def _preempted(self) -> Report:
        return replace(self._report, outcome=Outcome.PREEMPTED, reason=self._notice.reason)

    def _tell_unstored(self) -> None:
        activity = self._telling.activity
        if self.unstored and activity and activity.doing.after_script:
            self.unstored(self._lease.rank, self._lease.attempt)

    def _last_words(self, say_them: Callable[[], _Result]) -> _Result:
        """Try for a while: the results are worth it."""
        give_up = time.monotonic() + _KEPT_TRYING
        while True:
            try:
                return say_them()
            except (AuthError, NotFound, QuotaError, Transient) as error:
                say(str(error))
                self._telling.on_files(error)
                self._keeper.soon()
                self._tell_unstored()
                if time.monotonic() > give_up or self._notice.abandoned:
                    raise
                time.sleep(1)
