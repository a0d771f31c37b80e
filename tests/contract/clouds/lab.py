"""Short names for what the contract tests do all the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sojourn
from sojourn.clouds import load
from sojourn.core.context import Context
from sojourn.core.errors import Transient
from sojourn.core.ids import TaskId
from sojourn.storage.store import Store
from tests.contract.clouds.kit import Kit
from tests.support.waiting import until

# Tells that it is up, counts its attempts in its output, and stays.
WAITING = "mkdir -p output; echo $SOJOURN_ATTEMPT >> output/attempts; echo up; sleep 300"


class Lab:
    """A cloud, a workdir, and what was told meanwhile."""

    def __init__(self, kit: Kit, workdir: Path) -> None:
        self.kit = kit
        self.workdir = workdir
        self.events: list[Any] = []

    def task(self, script: str, *, storage: sojourn.Storage | None = None, **more: Any) -> Any:
        """A task of this cloud, with the lab's workdir and the output folder `output`."""
        storage = storage or sojourn.Storage(workdir=str(self.workdir), output="output")
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
        return sojourn.Task(text, cloud=self.kit.cloud, storage=storage, **more)

    def create(self, script: str, **more: Any) -> sojourn.Handle:
        return sojourn.create(self.task(script, **more), on_event=self.events.append)

    def run(
        self, script: str, *, keep: bool = False, keep_failed: bool = False, **more: Any
    ) -> sojourn.Result:
        return sojourn.run(
            self.task(script, **more),
            keep=keep,
            keep_failed=keep_failed,
            on_event=self.events.append,
        )

    def output(self) -> dict[str, str]:
        """The results that are at home, by path."""
        folder = self.workdir / "output"
        return {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def store(self, handle: sojourn.Handle) -> Store:
        """The store of a task, with the rights of this computer."""
        data = load(self.kit.cloud).data(TaskId.parse(handle.id))
        return data._at(Context())  # type: ignore[attr-defined, no-any-return]

    def until_stored(self, handle: sojourn.Handle, name: str, into: Path) -> None:
        """Wait until a file of the output is in a snapshot."""
        until(lambda: handle.pull(into) is not None and (into / "output" / name).exists())


def log_of(handle: sojourn.Handle, **which: int) -> list[str]:
    return [line.text for line in handle.logs(**which)]  # type: ignore[arg-type]


def answers(handle: sojourn.Handle, rank: int = 0) -> bool:
    """Whether commands run beside the script of a rank: it may print before others can get in."""
    try:
        return handle.exec(["true"], rank).returncode == 0
    except Transient:
        return False
