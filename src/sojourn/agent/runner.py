"""The life of a CI runner on its machine: its program comes, jobs come and go, nobody needs it.

Its script is beside us, maybe in another container, so all that both say to each other is in files
of the workdir. Jobs can write some of them: a lie makes a runner end early or late, no more.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import tarfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.agent.background import aside, say
from sojourn.agent.gauge import Gauge, free_port
from sojourn.core.context import Context
from sojourn.core.durations import format_seconds
from sojourn.core.errors import AuthError, SojournError
from sojourn.core.runner import CREDENTIALS, Runner
from sojourn.forges.forge import Job
from sojourn.forges.http import download

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["RunnerLife"]

TOKEN = "token"
_LOOK_EVERY = 1.0  # seconds; a file is looked at, no more
_LOOK_SOON = 0.2  # while its script prepares the machine
_RUNNING_WITHIN = 3600  # seconds; whoever waits for it has long given up
_LEAVE_WITHIN = 60.0
_RERUN_WITHIN = 1800.0
_LONGEST = 1000  # bytes that a job can tell of itself


class RunnerLife:
    """Tells when a runner is over; until then, serves its script.

    `folder`: ours. `workdir`: what the next machine gets, too; `store` has it stored now.
    """

    def __init__(
        self,
        runner: Runner,
        environment: Mapping[str, str],
        folder: Path,
        workdir: Path,
        store: Callable[[], None],
    ) -> None:
        credentials = json.loads(environment.get(CREDENTIALS, "{}"))
        self._token = credentials.pop(TOKEN, "")
        self._credentials: dict[str, str] = credentials
        self._runner = runner
        self._forge = forges.open_forge(runner.driver, runner.repo, self._token)
        self._program = folder / "program"
        self._state = workdir / "state"
        self._job = workdir / "jobs" / "now"
        self._port = free_port()
        self._gauge = Gauge(self._port, self._state / "gauge", self._job)
        self._since = time.monotonic()
        self._store = store
        self._runs = False
        self._busy = False
        self._served = False
        self._left = False
        self.reason = ""

    def prepare(self) -> None:
        """Before the script starts; what a former machine left in the workdir is there."""
        shutil.rmtree(self._state, ignore_errors=True)
        self._state.mkdir(parents=True)
        text = "".join(f"{k}={shlex.quote(v)}\n" for k, v in self._credentials.items())
        file = self._state / "credentials"
        file.touch(0o600)
        file.write_text(text)
        (self._state / "port").write_text(f"{self._port}\n")
        if job := self._now():
            self._job.unlink()
            aside("rerun", lambda: self._rerun(job))

    def over(self) -> bool:
        """Whether it is over: idle for too long, or it never began."""
        now = time.monotonic()
        if not self._served and (self._state / "want-program").exists():
            self._served = True
            aside("program", self._serve)
        if not self._runs:
            self._runs = (self._state / "running").exists() and self._told()
            self._since = now if self._runs else self._since
            if self._runs:
                self._store()  # who it is
            if now - self._since > _RUNNING_WITHIN:
                self.reason = f"the runner did not start in {format_seconds(_RUNNING_WITHIN)}"
            return bool(self.reason)
        self._told()
        busy = self._gauge.busy if self._gauge.there else self._now() is not None
        if busy != self._busy:
            self._busy = busy
            self._store()
        if busy:
            self._since = now
        limit = self._runner.idle_timeout
        if not limit or now - self._since < limit:
            return False
        if not self.leave():
            self._since = now  # a job came in the last moment
            return False
        self.reason = f"no job for {format_seconds(limit)}"
        return True

    @property
    def look_within(self) -> float:
        """Seconds until it may be worth asking again."""
        limit = self._runner.idle_timeout or float("inf")
        return min(_LOOK_EVERY, limit / 2) if self._runs else _LOOK_SOON

    def leave(self) -> bool:
        """Have the forge forget it; False: it has a job to do."""
        if self._left:
            return True
        try:
            ctx = Context().within(_LEAVE_WITHIN)
            self._left = self._forge.leave(ctx, self._runner, self._credentials)
        except AuthError as error:
            say(f"the runner stays registered, offline: {error.message}")
            self._left = True
        except SojournError as error:
            say(f"could not unregister the runner: {error.message}")
            self._left = True
        return self._left

    def _told(self) -> bool:
        """Whether it is known if there is a job. A program that is silent for a while has none
        that began or ended."""
        return not self._gauge.there or self._gauge.look()

    def _now(self) -> Job | None:
        """The job that is being carried out, as the program tells."""
        try:
            descriptor = os.open(self._job, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                words = (file.read(_LONGEST) or b"").decode("ascii", "replace").split()
        except OSError:  # none; or a folder, which only a job would make
            return None
        return Job(*words[1:3]) if len(words) > 1 else Job("")

    def _rerun(self, job: Job) -> None:
        """What the machine before us was doing when it was lost."""
        lost = f"run {job.run}" if job.run else "a job"
        if not self._token:
            say(f"{lost} was lost with its machine; re-run it by hand")
            return
        try:
            ctx = Context().within(_RERUN_WITHIN)
            done = self._forge.rerun(ctx, self._runner, job, self._credentials)
        except SojournError as error:
            say(f"could not re-run {lost}: {error.message}")
        else:
            say(f"{'re-ran' if done else 'no need to re-run'} {lost}")

    def _serve(self) -> None:
        try:
            self._fetch()
        except (SojournError, OSError, tarfile.TarError) as error:
            why = error.message if isinstance(error, SojournError) else str(error)
            self._tell("no-program", f"could not fetch the runner program: {why}")
        else:
            self._tell("program", str(self._program))

    def _fetch(self) -> None:
        found = self._runner.programs.get(platform.machine())
        if found is None:
            known = ", ".join(self._runner.programs) or "none"
            raise AuthError(f"there is none for {platform.machine()} (there is: {known})")
        shutil.rmtree(self._program, ignore_errors=True)
        self._program.mkdir(mode=0o755)
        name = found.url.rpartition("/")[2]
        file = self._program / name
        download(Context(), found.url, file, found.sha256)
        if name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(file) as archive:
                archive.extractall(self._program, filter="data")
            file.unlink()
        else:
            file.chmod(0o755)

    def _tell(self, name: str, text: str) -> None:
        """All at once: the script looks for the file, then reads it."""
        unfinished = self._state / f".{name}"
        with suppress(OSError):
            unfinished.write_text(text)
            unfinished.chmod(0o644)
            unfinished.replace(self._state / name)
