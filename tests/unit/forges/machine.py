"""A machine for the script of a runner, with other commands in place of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from sojourn.core.runner import Runner
from sojourn.runners.script import runner_script

__all__ = ["Machine"]


class Machine:
    """What the agent would have prepared. At the end, whatever was started is killed."""

    def __init__(self, folder: Path, **credentials: str) -> None:
        self.out, self.tools = folder / "out", folder / "tools"
        self.workdir = folder / "agent" / "workdir"
        self.state = self.workdir / "state"
        for each in (self.out, self.tools, self.state):
            each.mkdir(parents=True)
        (self.state / "port").write_text("4711\n")
        text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in credentials.items())
        (self.state / "credentials").write_text(text)
        self.has("docker", "exit 1")
        self.before: list[str] = []  # words that the command begins with
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self._started:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()
            if each.stdout:
                each.stdout.close()

    def has(self, name: str, text: str) -> None:
        """A command in place of the machine's own."""
        file = self.tools / name
        file.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def start(self, runner: Runner, **settings: str) -> subprocess.Popen[str]:
        given = {"job_user": "", "hide_identity": "", "docker": "", "docker_volumes": ""}
        given |= settings
        script = self.workdir.parent / "script"
        script.write_text(runner_script(runner, "", given))
        made = subprocess.Popen(
            [*self.before, "/bin/sh", str(script)],
            cwd=self.workdir,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(made)
        return made
