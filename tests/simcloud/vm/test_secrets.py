"""Where secrets are, and are not, while a task runs on a machine and afterwards."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sojourn
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.vm.sides import Side
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SCRIPT = """#!/bin/bash
[ -n "$GIVEN" ] && [ -n "$IMPORTED" ] && [ -n "$GLOB_ONE" ] && echo all are here
mkdir -p output; echo result > output/file
touch /dev/shm/waiting
until [ -e /dev/shm/go ]; do sleep 0.1; done
"""
VALUES = {
    "GIVEN": "s3cr3t-given-5a1f",
    "IMPORTED": "s3cr3t-imported-77bc",
    "GLOB_ONE": "s3cr3t-matched-90de",
}
ENVIRONMENT = {"GIVEN": VALUES["GIVEN"], "IMPORTED": "", "GLOB_*": ""}
PROGRAM = re.compile(rb"<<'END'\n(.*?)\nEND\n", re.DOTALL)
_AGENT = "sojourn.clouds.vm.on_machine.agent"


@pytest.fixture
def given(side: Side, monkeypatch: pytest.MonkeyPatch) -> Side:
    """The laptop has two of the values itself."""
    for name in ("IMPORTED", "GLOB_ONE"):
        monkeypatch.setenv(name, VALUES[name])
    return side


def test_secrets_are_in_the_store_and_in_the_scripts_environment_alone(
    given: Side, tmp_path: Path
) -> None:
    said: list[Any] = []
    task = sojourn.Task(
        SCRIPT,
        cloud=given.kit.cloud,
        name="secrets",
        tags={"project": "open"},
        environment=ENVIRONMENT,
        storage=sojourn.Storage(workdir=str(tmp_path), output="output"),
    )
    handle = sojourn.create(task, on_event=said.append)
    machine = waiting_machine(given)
    secrets = Secrets(given)
    secrets.check("processes", list(processes(machine)))
    secrets.check("the account", list(in_account(given, handle.id)))
    secrets.check("the store", list(in_store(given, handle.id)))
    secrets.check("files, while it runs", list(files(machine)))
    given.check_rights(machine, handle.id)
    given.kit.appear("go")
    assert handle.wait().exit_code == 0
    assert "all are here" in [line.text for line in handle.logs()]
    secrets.check("events", [*said, *handle.events(), handle.status(), handle.task()])
    handle.delete()
    secrets.check("files", list(files(machine)))
    secrets.check("the console", [machine.console()])


class Secrets:
    """The values of the task, and the laptop's own key."""

    def __init__(self, side: Side) -> None:
        self._values = [value.encode() for value in (*VALUES.values(), *side.secrets())]

    def check(self, where: str, things: list[Any]) -> None:
        assert things, f"{where}: nothing to look at"
        for thing in things:
            text = thing if isinstance(thing, bytes) else repr(thing).encode()
            found = [value for value in self._values if value in text]
            assert not found, f"{where}: {found} in {text[:500]!r}"


def waiting_machine(side: Side) -> RunningMachine:
    def machines() -> list[RunningMachine]:
        return [i.machine for i in side.account.instances() if i.machine]

    def waits() -> bool:
        return any(path.name == "waiting" for each in machines() for path in each.files())

    until(waits, 60)
    [machine] = machines()
    return machine


def processes(machine: RunningMachine) -> Iterator[tuple[Any, ...]]:
    """Arguments of all, and environments of all that are not in the session of the script."""
    found = machine.processes()
    secret = {each.session for each in found if "GIVEN" in each.environ}
    [agent] = {each.session for each in found if _AGENT in each.argv}
    assert len(secret) == 1
    assert agent not in secret
    for process in found:
        yield process.argv
        if process.session not in secret:
            yield (process.environ,)


def files(machine: RunningMachine) -> Iterator[bytes]:
    found = list(machine.files())
    assert "settings.json" in {path.name for path in found}
    for path in found:
        with suppress(FileNotFoundError):
            yield path.read_bytes()


def in_account(side: Side, name: str) -> Iterator[Any]:
    """What the services keep beside the store, and what is packed into it."""
    scripts = 0
    for thing in side.in_account(name):
        yield thing
        program = PROGRAM.search(thing) if isinstance(thing, bytes) else None
        if program:
            scripts += 1
            archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(program[1])))
            for file in archive.namelist():
                yield archive.read(file)
    assert scripts == 1


def in_store(side: Side, name: str) -> Iterator[bytes]:
    """All objects but the one that is for secrets."""
    found = side.objects(name)
    assert {"task.json", "environment.json"} <= set(found)
    for path, content in found.items():
        if path == "environment.json":
            assert {**VALUES, **json.loads(content)} == json.loads(content)
        else:
            yield content
