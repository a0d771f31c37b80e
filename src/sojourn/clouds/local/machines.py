"""Machines of the local cloud: an agent each, with a folder and processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.config import UNSTORED
from sojourn.agent.disk import remove_tree
from sojourn.core.errors import IntegrityError
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "STORING_WITHIN",
    "LocalMachine",
    "Settings",
    "agents",
    "is_agent",
    "is_supervisor",
    "kill_strays",
]

_TTL = 15.0
_GRACE = 10.0
_LOOK = 0.25
_MARK = "SOJOURN_MACHINE"
STORING_WITHIN = 3600.0  # seconds that an agent has to store its work before its machine is ended


@dataclass(frozen=True)
class Settings:
    """What a supervisor knows of its task."""

    id: str
    machines_folder: str
    store: str
    timeout: int

    @classmethod
    def read(cls, path: Path) -> Settings:
        try:
            return cls(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise IntegrityError(
                f"{path} is damaged; create the task again, or delete it ({error})"
            ) from error


class LocalMachine:
    """An agent under way. Its standard input is its lifeline: closed when the supervisor ends.

    `generation`: what was wanted when it began, see `Wanted`.
    """

    def __init__(self, settings: Settings, dead: Collection[str], generation: str) -> None:
        self.generation = generation
        self.id = f"{TaskId.parse(settings.id).short}-{os.urandom(4).hex()}"
        self.began = time.monotonic()
        self.started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._deadline = self.began + settings.timeout + STORING_WITHIN
        self._told = float("inf")
        self._folder = Path(settings.machines_folder) / self.id
        self._folder.mkdir(mode=0o700, parents=True)
        document = self._folder / "agent.json"
        document.write_text(json.dumps(self._config(settings, dead)))
        with open(self._folder / "agent.log", "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sojourn.agent", str(document)],
                cwd=self._folder,
                env={**os.environ, _MARK: self.id},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _config(self, settings: Settings, dead: Collection[str]) -> dict[str, object]:
        return {
            "store": f"file://{settings.store}",
            "machine": self.id,
            "folder": str(self._folder),
            "dead": sorted(dead),
            "lifeline": True,
            "ttl": _TTL,
            "grace": _GRACE,
            "look": _LOOK,
        }

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> int | None:
        """The agent's exit code; None while it lives."""
        return self._process.poll()

    def tell(self) -> None:
        """Give it notice, once; it has its grace to flush."""
        if self._told == float("inf"):
            self._told = time.monotonic()
            self._process.send_signal(signal.SIGTERM)

    def enforce(self) -> None:
        """End it if it should have ended long ago."""
        now = time.monotonic()
        if now > self._deadline or now > self._told + _GRACE + STORING_WITHIN:
            self._process.kill()

    def last_words(self) -> str:
        """The last line that the agent said."""
        with suppress(OSError, IndexError):
            return (self._folder / "agent.log").read_text(errors="replace").splitlines()[-1]
        return ""

    def clean_up(self) -> Path | None:
        """Remove its disk, unless something is there that could not be stored: gives where."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        unstored = self._folder / UNSTORED
        if unstored.exists():
            return unstored
        with suppress(OSError):
            remove_tree(self._folder)
        return None


def is_agent(pid: int, machine: str) -> bool:
    """Whether this process still is the agent of a machine: pids are used again."""
    return _has_argument(pid, f"/{machine}/agent.json\0".encode())


def is_supervisor(pid: int, id: TaskId) -> bool:
    """Whether this process still is the supervisor of a task, whose folder has its name."""
    return _has_argument(pid, f"/{id}\0".encode())


def _has_argument(pid: int, argument: bytes) -> bool:
    try:
        return argument in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        return not Path("/proc").exists() and _exists(pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def strays(id: TaskId) -> list[int]:
    """All processes of machines of a task, also those that lost their supervisor.

    Known by their environment; only Linux tells it.
    """
    mark = f"{_MARK}={id.short}-".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environ.read_bytes():
                found.append(int(environ.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def agents(id: TaskId) -> list[int]:
    """Those of them that are agents: they end by themselves once they have stored their work."""
    found = []
    for pid in strays(id):
        with suppress(OSError):
            if b"\0sojourn.agent\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def kill_strays(id: TaskId) -> None:
    """Kill them all, also those that are started meanwhile."""
    for _ in range(100):
        victims = strays(id)
        if not victims:
            return
        for pid in victims:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
