"""The command line as a user's shell starts it, in a home of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sojourn.core.ids import TaskId
from tests.support.processes import MARK, marked
from tests.support.waiting import patience

COMMAND = (sys.executable, "-m", "sojourn")


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, command: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup make test` ignores it
            os.execve(command[0], list(command), dict(environment))
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.shown = ""
        self._code: int | None = None

    def read(self) -> bool:
        """Take what is shown; False when nothing more comes."""
        readable, _, _ = select.select([self._terminal], [], [], 0.05)
        if not readable:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def lines(self) -> list[str]:
        """All that was ever shown in a line; what gave way to something else as well."""
        return re.split(r"[\r\n]+", self.shown)

    def until(self, text: str, seconds: float = 20.0) -> None:
        give_up = time.monotonic() + patience(seconds)
        while text not in self.shown:
            going = self.read()
            assert text in self.shown or (going and time.monotonic() < give_up), self.shown

    def press_ctrl_c(self) -> None:
        self.type("\x03")

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._terminal)
        self._terminal = -1

    def wait(self, seconds: float = 30.0) -> int:
        """The exit code."""
        give_up = time.monotonic() + patience(seconds)
        while self._code is None:
            assert time.monotonic() < give_up, self.shown
            if self._terminal >= 0 and self.read():
                pass
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.02)
        while self._terminal >= 0 and select.select([self._terminal], [], [], 0)[0]:
            if not self.read():
                break
        return self._code

    def close(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        if self._terminal >= 0:
            os.close(self._terminal)


def stubs(shell: Shell) -> None:
    """Let the extra `terraform` seem installed, whether or not it is."""
    for name in ("grpc", "google.protobuf", "cryptography"):
        shell.file(f"stubs/{name.replace('.', '/')}/__init__.py", "")
    paths = (str(shell.cwd / "stubs"), shell.environment["PYTHONPATH"])
    shell.environment["PYTHONPATH"] = os.pathsep.join(paths)


class Shell:
    """A user with a home, a current folder and nothing else."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.mark = mark
        self.home = folder / "home"
        self.cwd = folder / "project"
        self.cwd.mkdir(parents=True)
        self.home.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "TERM": "xterm",
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_STATE_HOME": str(self.home / "state"),
            MARK: mark,
        }
        self._terminals: list[Terminal] = []

    def __call__(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *args],
            cwd=self.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience(60),
            **options,
        )

    def ok(self, *args: str) -> str:
        """Run a command that must succeed; what it printed."""
        result = self(*args)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def rows(self, *args: str) -> list[dict[str, Any]]:
        """The rows of a command with --json that has nothing to tell besides."""
        rows, told = self.rows_and_notes(*args)
        assert told == ""
        return rows

    def rows_and_notes(self, *args: str) -> tuple[list[dict[str, Any]], str]:
        """The same, and what it has to tell."""
        command, *others = args
        result = self(command, "--json", *others)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return rows, result.stderr

    def background(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *args],
            cwd=self.cwd,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def terminal(self, *args: str) -> Terminal:
        terminal = Terminal((*COMMAND, *args), self.cwd, self.environment)
        self._terminals.append(terminal)
        return terminal

    def file(self, name: str, text: str) -> Path:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def large_file(self, name: str, megabytes: int) -> None:
        """A file no two parts of which are the same."""
        block = os.urandom(1 << 20)
        with open(self.cwd / name, "wb") as file:
            for number in range(megabytes):
                file.write(number.to_bytes(4, "big") + block[4:])

    def detached(self, script: str, *options: str) -> str:
        """Start a task; its id."""
        return self.ok("run", "--detach", *options, "--", "bash", "-c", script).strip()

    @staticmethod
    def name(id: str) -> str:
        """What people are shown of an id."""
        return TaskId.parse(id).name

    def state(self, id: str) -> str:
        (row,) = self.rows("status", id)
        return str(row["state"])

    def tasks(self) -> list[str]:
        folder = self.home / "data" / "sojourn" / "local"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def close(self) -> None:
        """Delete the tasks; then nothing may be left."""
        for terminal in self._terminals:
            terminal.close()
        if tasks := self.tasks():
            self.ok("delete", "--no-pull", "--force", *tasks)
        left: list[int] = []
        give_up = time.monotonic() + patience(5)
        while (left := marked(self.mark)) and time.monotonic() < give_up:
            time.sleep(0.05)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert not left
        shutil.rmtree(self.cwd, ignore_errors=True)
        shutil.rmtree(self.home / "state/sojourn/logs", ignore_errors=True)  # kept on purpose
        assert [path for path in self.home.rglob("*") if not path.is_dir()] == []
