"""Every cloud goes through the same suite, and leaves nothing behind after any of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sojourn
from tests.contract.clouds import local_kit
from tests.contract.clouds.kit import Kit
from tests.support.waiting import until

_KITS: dict[str, Callable[[pytest.TempPathFactory], Kit]] = {"local": local_kit.make}


@pytest.fixture(params=sorted(_KITS))
def kit(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Kit]:
    """A cloud with an empty account; at the end it has to be empty again."""
    made = _KITS[request.param](tmp_path_factory)
    for name in [name for name in os.environ if name.startswith(("CI", "GITHUB_", "TPI_"))]:
        monkeypatch.delenv(name)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    try:
        yield made
        leaks = made.leaks()
    finally:
        made.close()
    assert leaks == []


class Lab:
    """Short names for what the tests do all the time."""

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

    def run(self, script: str, **more: Any) -> sojourn.Result:
        return sojourn.run(self.task(script, **more), on_event=self.events.append)

    def output(self) -> dict[str, str]:
        """The results that are at home, by path."""
        folder = self.workdir / "output"
        return {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def until_stored(self, handle: sojourn.Handle, name: str, into: Path) -> None:
        """Wait until a file of the output is in a snapshot."""
        until(lambda: handle.pull(into) is not None and (into / "output" / name).exists())


@pytest.fixture
def lab(kit: Kit, tmp_path: Path) -> Lab:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    return Lab(kit, workdir)


def log_of(handle: sojourn.Handle, **which: int) -> list[str]:
    return [line.text for line in handle.logs(**which)]  # type: ignore[arg-type]
