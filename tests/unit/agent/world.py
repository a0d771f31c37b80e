"""A store in a folder and agents started by hand: what these tests have instead of a cloud."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sojourn.agent.config import Config
from sojourn.core.context import Context
from sojourn.core.events import LogLine
from sojourn.core.filters import Filters
from sojourn.core.report import Report
from sojourn.core.task import Task
from sojourn.storage.data import StoreData
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.restore import Restorer
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.processes import MARK, marked
from tests.support.waiting import patience


def alive(pid: int) -> bool:
    """Whether a process runs: a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class AgentProcess:
    """One agent, as somebody who looks after its machine sees it."""

    def __init__(
        self,
        config: Config,
        document: Path,
        environment: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        self.config = config
        self.document = document
        self.memory = 0  # kB at most
        document.write_text(config.text())
        self._log = document.with_suffix(".log")
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "sojourn.agent", str(document)],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def notice(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def cut_lifeline(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def wait(self, seconds: float = 30.0) -> int:
        """Its exit code; meanwhile its memory is watched."""
        give_up = time.monotonic() + patience(seconds)
        while self.process.poll() is None:
            assert time.monotonic() < give_up, f"the agent did not end: {self.said}"
            with suppress(OSError):
                status = Path(f"/proc/{self.process.pid}/status").read_text()
                found = re.search(r"VmHWM:\s+(\d+) kB", status)
                self.memory = max(self.memory, int(found[1]) if found else 0)
            time.sleep(0.02)
        return self.process.returncode


class World:
    """A task in a store, and its machines."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.store_folder = folder / "store"
        self.store_folder.mkdir()
        self.environment = {
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            MARK: mark,
        }
        self.agents: list[AgentProcess] = []

    @property
    def store(self) -> Store:
        return open_store(StoreAddress(f"file://{self.store_folder}"))

    @property
    def data(self) -> StoreData:
        return StoreData(lambda: self.store)

    def task(
        self, script: str, files: Mapping[str, str | bytes] | None = None, **fields: Any
    ) -> Task:
        """Write a task down, with its workdir; a script without a shebang is one for bash."""
        environment = {MARK: self.mark, **fields.pop("environment", {})}
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}\n"
        task = replace(Task(text), environment=environment, **fields)
        self.data.save(Context(), task, environment)
        if files is not None:
            workdir = self.folder / "pushed"
            for name, content in files.items():
                path = workdir / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            self.data.push(Context(), workdir, Filters(), None)
        return task

    def agent(
        self, machine: str = "m1", *, prefix: Sequence[str] = (), **config: Any
    ) -> AgentProcess:
        """Start an agent; times are short unless told otherwise."""
        config = {"ttl": 20.0, "grace": 5.0, "look": 0.2, "snapshot_every": 0.5, **config}
        folder = config.pop("folder", self.folder / machine)
        settings = Config(f"file://{self.store_folder}", machine, str(folder), **config)
        agent = AgentProcess(settings, self.folder / f"{machine}.json", self.environment, prefix)
        self.agents.append(agent)
        return agent

    def follow(self) -> None:
        """Have lines written at once, for half a minute."""
        self.data.watch(Context())

    def run(self, script: str, **fields: Any) -> Report:
        """A whole life of one rank on one machine; its only report."""
        self.task(script, **fields)
        self.agent().wait()
        (report,) = self.reports()
        return report

    def reports(self) -> list[Report]:
        return self.data.reports(Context())

    def lines(self) -> list[LogLine]:
        return list(self.data.logs(Context(), self.data.cursor()))

    def printed(self, rank: int = 0) -> str:
        """The output of one rank, its pieces joined."""
        return "".join(
            line.text + ("" if line.partial else "\n") for line in self.lines() if line.rank == rank
        )

    def raw(self) -> list[bytes]:
        """The lines of the log without their times, pieces joined; quick, for a flood."""
        data = b"".join(bytes(self.store.get(item.path)) for item in self.store.list("logs"))
        records = data.splitlines()
        # Where a line ends in the pipe is a matter of luck: its end may come as a piece of its own.
        pieces = (r[28:] + (b"" if r[27:28] == b">" else b"\n") for r in records)
        return b"".join(pieces).splitlines()

    def files(self, rank: int = 0) -> dict[str, bytes]:
        """The newest snapshot of a rank, as it would come home."""
        target = self.folder / f"look-{time.monotonic_ns()}"
        target.mkdir()
        manifest = newest_of_rank(self.store, rank)
        assert manifest is not None
        Restorer(self.store, target).restore(Context(), manifest.entries.values(), manifest.objects)
        return {
            str(path.relative_to(target)): path.read_bytes()
            for path in target.rglob("*")
            if path.is_file()
        }

    def close(self) -> None:
        """All agents must have ended, and nothing of theirs may be left."""
        running = [agent for agent in self.agents if agent.process.poll() is None]
        left: list[int] = []
        give_up = time.monotonic() + patience(3)
        while not running and (left := marked(self.mark)) and time.monotonic() < give_up:
            time.sleep(0.02)
        for pid in marked(self.mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for agent in self.agents:
            if agent.process.stdin:
                agent.process.stdin.close()
            agent.process.wait(10)
        shutil.rmtree(self.store_folder, ignore_errors=True)
        for agent in self.agents:
            shutil.rmtree(agent.config.folder, ignore_errors=True)
        assert not running, [agent.said for agent in running]
        assert not left
