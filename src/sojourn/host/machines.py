"""Machines of the local cloud: an agent each, with a folder and processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.config import UNSTORED
from sojourn.agent.disk import remove_tree
from sojourn.core.errors import IntegrityError
from sojourn.host.environment import needed
from sojourn.host.orphans import MARK, is_suspended

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["STORING_WITHIN", "SUSPENDED_FOR", "LocalMachine", "Settings"]

_TTL = 15.0
_GRACE = 10.0
_LOOK = 0.25
SUSPENDED_FOR = 30.0  # seconds that an agent may stay suspended after it got notice
_LOOK_WHEN_TOLD = 1.0  # seconds between looks at a machine that is to go
STORING_WITHIN = 3600.0  # seconds that an agent has to store its work before its machine is ended


@dataclass(frozen=True)
class Settings:
    """What a supervisor knows of its task."""

    machines_folder: str
    store: str
    timeout: int

    @classmethod
    def read(cls, path: Path) -> Settings:
        try:
            return cls(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise IntegrityError(
                f"{path} is damaged: {error}. Delete the task or create it again"
            ) from error


class LocalMachine:
    """An agent under way. Its standard input is its lifeline: closed when the supervisor ends.

    `prefix`: what its id begins with. `generation`: what was wanted when it began, see `Wanted`.
    """

    def __init__(
        self, settings: Settings, prefix: str, dead: Collection[str], generation: str
    ) -> None:
        self.generation = generation
        self.id = prefix + os.urandom(4).hex()
        self.began = time.monotonic()
        self.started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._deadline = self.began + (settings.timeout or float("inf")) + STORING_WITHIN
        self._told = float("inf")
        self.folder = Path(settings.machines_folder) / self.id
        self.folder.mkdir(mode=0o700, parents=True)
        document = self.folder / "agent.json"
        document.write_text(json.dumps(self._config(settings, dead)))
        with open(self.folder / "agent.log", "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sojourn.agent", str(document)],
                cwd=self.folder,
                env={**needed(), MARK: self.id},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _config(self, settings: Settings, dead: Collection[str]) -> dict[str, object]:
        return {
            "store": f"file://{settings.store}",
            "machine": self.id,
            "folder": str(self.folder),
            "dead": sorted(dead),
            "lifeline": True,
            "ttl": _TTL,
            "grace": _GRACE,
            "look": _LOOK,
            "address": _address(self.id),
            "together": True,
        }

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> int | None:
        """The agent's exit code; None while it lives."""
        return self._process.poll()

    def tell(self) -> None:
        """Give it notice, once; it has its grace to flush. One that was suspended runs again."""
        if self._told == float("inf"):
            self._told = time.monotonic()
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)

    def enforce(self) -> None:
        """End it if it should have ended long ago."""
        now = time.monotonic()
        if now > self._deadline or now > self._told + _GRACE + STORING_WITHIN:
            self._process.kill()
        elif now > self._told + SUSPENDED_FOR and is_suspended(self.pid):
            self._process.kill()  # somebody suspended it once more: it will not store anything

    def enforced_within(self) -> float:
        """Seconds until `enforce` may have to do something."""
        told = self._told != float("inf")
        return _LOOK_WHEN_TOLD if told else max(0.0, self._deadline - time.monotonic())

    def last_words(self) -> str:
        """The last line that the agent said."""
        with suppress(OSError, IndexError):
            return (self.folder / "agent.log").read_text(errors="replace").splitlines()[-1]
        return ""

    def clean_up(self) -> Path | None:
        """Remove its disk, unless something is there that could not be stored: gives where."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        unstored = self.folder / UNSTORED
        if unstored.exists():
            return unstored
        with suppress(OSError):
            remove_tree(self.folder)
        return None


def _address(machine: str) -> str:
    """An address of its own, so that the machines of a gang can all use the same ports.

    Linux takes all of 127.0.0.0/8 for this computer, other systems do not.
    """
    if sys.platform != "linux":
        return "127.0.0.1"
    number = zlib.crc32(machine.encode())
    return f"127.{64 + number % 64}.{number // 64 % 250 + 1}.{number // 16000 % 250 + 1}"
