"""A container of a script, as far as processes go: a PID namespace with the launcher in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from sojourn.agent.neighbour import Neighbour, NeighbourScript, launcher
from tests.support.waiting import patience, until

SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash", "--posix"]}
_PRIVATE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@lru_cache
def _cannot(shell: str) -> str:
    if os.geteuid() != 0:
        return "makes PID namespaces: run the tests as root"
    if not shutil.which(SHELLS[shell][0]):
        return f"no {SHELLS[shell][0]}: install it, on Debian as busybox-static, dash or bash"
    tried = subprocess.run([*_PRIVATE, "true"], capture_output=True, text=True, check=False)
    return f"cannot make PID namespaces here: {tried.stderr.strip()}" if tried.returncode else ""


def require(shell: str) -> None:
    if why := _cannot(shell):
        pytest.skip(why)


class Box:
    """The container, its neighbour, and the script in it. `early`: nobody waits for it yet."""

    def __init__(
        self,
        folder: Path,
        shell: str,
        *,
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        early: bool = False,
    ) -> None:
        self.folder = folder
        self.workdir = folder / "workdir"
        self.workdir.mkdir()
        self.neighbour = Neighbour(folder)
        self.woken = threading.Event()
        self.printed = b""
        self.log = folder / "log"  # of the container
        self._reader: threading.Thread | None = None
        if not early:
            self.neighbour.prepare()
        inner = [*SHELLS[shell], "-c", launcher(folder)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*_PRIVATE, *before, *inner],
                stdin=subprocess.DEVNULL,
                stdout=log,
                env={**os.environ, **(variables or {})},
                start_new_session=True,  # a group of processes is not kept in by a namespace
            )

    def ready(self) -> Box:
        assert self.neighbour.wait(patience(10))
        return self

    def start(
        self,
        text: str,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> NeighbourScript:
        file = self.folder / "script"
        file.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        script = self.neighbour.start(
            file, self.workdir, environment or {}, arguments, self.woken.set
        )
        self._reader = threading.Thread(target=self._read, args=(script,), daemon=True)
        self._reader.start()
        return script

    def _read(self, script: NeighbourScript) -> None:
        with script.output:
            while data := script.output.read(65536):
                self.printed += data

    def prints(self, text: bytes) -> None:
        until(lambda: text in self.printed)

    @property
    def pid(self) -> int:
        """Of process 1, as it is called out here."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(children.read_text)
        return int(children.read_text().split()[0])

    def ended(self) -> int:
        return self.process.wait(patience(10))

    def close(self) -> None:
        self.neighbour.end()
        try:
            self.process.wait(patience(5) if self.neighbour.wait(0) else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # it may not have bound its child yet
            self.process.wait()
        if self._reader is not None:
            self._reader.join(patience(5))
