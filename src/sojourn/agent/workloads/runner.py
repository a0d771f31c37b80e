"""The life of a CI runner on its machine: its program comes, jobs come and go, nobody needs it.

Its script is beside us, maybe in another container, so all that both say to each other is in files
of the workdir. Jobs can make them lie: then a runner ends early or late, no more.
"""

from __future__ import annotations

import json
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.agent import runner_program
from sojourn.agent.background import aside, say
from sojourn.agent.disk import remove_tree
from sojourn.agent.identity import hide_from
from sojourn.agent.metrics import free_port, metric
from sojourn.agent.shared import Shared
from sojourn.agent.workloads.workload import End, Workload
from sojourn.core.context import Context
from sojourn.core.durations import format_seconds
from sojourn.core.errors import AuthError, SojournError
from sojourn.core.report import Outcome
from sojourn.core.runner import CREDENTIALS, TOKEN, Runner
from sojourn.forges import network
from sojourn.forges.forge import Job

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from sojourn.agent.workloads.workload import Host

__all__ = ["RunnerLife"]

_STATE = "state"  # a folder of the workdir
_JOB = "jobs/now"
_BUSY = "busy"
_LOOK_EVERY = 1.0  # seconds; a file is looked at, no more
_LOOK_SOON = 0.2  # while its script prepares the machine
_RUNNING_WITHIN = 3600  # seconds; whoever waits for it has long given up
_ONLINE_WITHIN = 5.0  # until a program that just started can have a job at all
_LEAVE_WITHIN = 60.0
_END_WITHIN = 60.0  # for a program without a job that was asked to end
_RECALL_WITHIN = 60.0
_RERUN_WITHIN = 1800.0
_SILENT_FOR = 10.0  # of a program that counts its jobs, on a busy machine
_LONGEST = 1000  # bytes that a job can tell of itself


class RunnerLife(Workload):
    """Tells when a runner is over; until then, serves its script."""

    def __init__(self, host: Host, runner: Runner) -> None:
        super().__init__(host)
        self._runner = runner
        self._token = self._certificates = ""
        self._credentials: dict[str, str] = {}
        self._program = host.folder / "program"
        self._workdir = host.workdir  # what the next machine gets, too
        self._shared = Shared(host.workdir)
        self._port = 0
        self._counted, self._answered = 0.0, 0.0
        self._since = time.monotonic()
        self._runs = False
        self._doing: Job | None = None
        self._rerunning: threading.Thread | None = None
        self._served = False
        self._left = False
        self._asked = False

    def prepare(self, ctx: Context, environment: Mapping[str, str]) -> None:
        """Log in; what a former machine left in the workdir is there."""
        credentials = json.loads(environment.get(CREDENTIALS, "{}"))
        self._token = credentials.pop(TOKEN, "")
        self._certificates = credentials.pop(network.CERTIFICATES, "")
        self._credentials = credentials
        network.configure(environment, self._certificates)
        self._forge = forges.open_forge(self._runner.driver, self._runner.repo, self._token)
        remove_tree(self._workdir / _STATE)
        self._shared.make(_STATE)
        text = "".join(f"{k}={shlex.quote(v)}\n" for k, v in self._credentials.items())
        self._shared.write(f"{_STATE}/credentials", text.encode(), 0o600)
        if self._certificates:
            self._shared.write(f"{_STATE}/certificates", self._certificates.encode())
        self._port = free_port()
        self._shared.write(f"{_STATE}/port", b"%d\n" % self._port)
        if job := self._told() or (Job("") if self._shared.has(_BUSY) else None):
            self._shared.remove(_JOB)
            self._shared.remove(_BUSY)
            self._recall(job)

    def end(self) -> End | None:
        """As good an end as any: it was idle for too long, or it never began."""
        return End(Outcome.SUCCEEDED, self.reason, 0) if self._over() else None

    def _over(self) -> bool:
        """Whether it is over: idle for too long, or it never began."""
        now = time.monotonic()
        if not self._runs:
            self._serve()
            return self._not_begun(now)
        self._look(now)
        if self._asked:
            return now - self._since > _END_WITHIN
        limit = self._runner.idle_timeout
        return bool(limit) and now - self._since >= limit and self._ended(now, limit)

    def _not_begun(self, now: float) -> bool:
        """Whether it never will."""
        self._runs = self._has("running")
        if self._runs:
            self._since = now + _ONLINE_WITHIN
            self._host.snapshots.soon()  # who it is
        elif now - self._since > _RUNNING_WITHIN:
            self.reason = f"the runner did not start in {format_seconds(_RUNNING_WITHIN)}"
        return bool(self.reason)

    def _look(self, now: float) -> None:
        """Whether there is a job; the next machine has to know, if this one is lost."""
        counted = self._count(now) > 0
        job = self._told() or (Job("") if counted else None)
        if job != self._doing:  # which one it is may be told later than that there is one
            self._doing = job
            if counted:
                self._shared.write(_BUSY, b"")
            else:
                self._shared.remove(_BUSY)
            self._host.snapshots.soon()
        if job or (self._rerunning and self._rerunning.is_alive()):
            self._since = now

    def _ended(self, now: float, limit: int) -> bool:
        """Whether it has ended; a program that finishes its job when it is asked is asked."""
        self.reason = f"no job for {format_seconds(limit)}"
        if self._has("ends-when-asked"):
            self._asked, self._since = True, now
            self._tell("end", "")
            return False
        if not self._unregister():
            self._since, self.reason = now, ""  # a job came in the last moment
            return False
        return True

    @property
    def look_within(self) -> float:
        """Seconds until it may be worth asking again."""
        limit = self._runner.idle_timeout or float("inf")
        return min(_LOOK_EVERY, limit / 2) if self._runs else _LOOK_SOON

    def leave(self) -> None:
        """Have the forge forget it."""
        self._unregister()

    def _unregister(self) -> bool:
        """False: it has a job to do."""
        if self._left:
            return True
        try:
            ctx = Context().within(_LEAVE_WITHIN)
            self._left = self._forge.leave(ctx, self._runner, self._credentials)
        except SojournError as error:
            say(f"the runner stays registered, offline: {error.message}")
            self._left = True
            if isinstance(error, AuthError) and self.reason:
                self.reason += "; still registered, until the next launch or `sojourn gc`"
        return self._left

    def _count(self, now: float) -> float:
        """The jobs that are being carried out, of a program that counts them instead.

        Its script tells the name of the metric. A program that does not answer for a while has
        none: it ends when it is asked, but not before its job does. Before that it may only be
        slow, and a job that it has must not be taken for one that is over.
        """
        try:
            name, _, mark = self._shared.read(f"{_STATE}/metric").decode().strip().partition(" ")
        except (OSError, ValueError):
            return 0
        found = metric(self._port, name, mark)
        if found is not None:
            self._counted, self._answered = found, now
        elif now - self._answered > _SILENT_FOR:
            self._counted = 0
        return self._counted

    def _told(self) -> Job | None:
        """The job that is being carried out, as the program's hooks and processes tell."""
        try:
            words = self._shared.read(_JOB, _LONGEST).decode("ascii", "replace").split()
        except OSError:  # none; or a folder, which only a job would make
            return None
        return Job(*words[1:3]) if len(words) > 1 else Job("")

    def _recall(self, job: Job) -> None:
        """Find what the machine before us was doing, while our own program has no job yet."""
        if not self._token:
            what = f"run {job.run} was" if job.run else "a job may have been"
            say(f"{what} lost with the machine; re-run it by hand")
            return
        try:
            ctx = Context().within(_RECALL_WITHIN)
            lost = self._forge.lost(ctx, self._runner, job)
        except SojournError as error:
            say(f"could not find out which job was lost: {error.message}")
            return
        if lost:
            self._rerunning = aside("rerun", lambda: self._rerun(lost))

    def _rerun(self, job: Job) -> None:
        try:
            ctx = Context().within(_RERUN_WITHIN)
            done = self._forge.rerun(ctx, self._runner, job, self._credentials)
        except SojournError as error:
            say(f"could not re-run the job that was lost: {error.message}")
        else:
            say("re-ran the job that was lost" if done else "no need to re-run the job")

    def _serve(self) -> None:
        """What the script asks for while it prepares the machine."""
        if not self._served and self._has("want-program"):
            self._served = True
            aside("program", self._bring)
        with suppress(OSError, ValueError):
            user = int(self._shared.read(f"{_STATE}/hide", _LONGEST))
            self._shared.remove(f"{_STATE}/hide")
            self._tell("hidden", hide_from(user))
        if self._has("want-authorities"):
            self._shared.remove(f"{_STATE}/want-authorities")
            self._tell("authorities", network.usual_authorities())

    def _bring(self) -> None:
        try:
            runner_program.fetch(self._runner.programs, self._program, self._host.store)
        except Exception as error:  # whatever it is, the script waits for an answer
            why = error.message if isinstance(error, SojournError) else str(error)
            self._tell("no-program", f"could not fetch the runner program: {why}")
        else:
            self._tell("program", str(self._program))

    def _tell(self, name: str, text: str) -> None:
        """All at once: the script looks for the file, then reads it."""
        with suppress(OSError):
            self._shared.write(f"{_STATE}/{name}", text.encode())

    def _has(self, name: str) -> bool:
        return self._shared.has(f"{_STATE}/{name}")
