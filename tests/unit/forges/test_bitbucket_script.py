"""What is done on a machine around Bitbucket's program, with another one in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.runner import Runner
from tests.support.waiting import until
from tests.unit.forges.machine import Machine

_SECRET = "secretOfTheClient"
_PIPELINE = "{01234567-89ab-cdef-0123-456789abcdef}"
# Reads what Java would, and has a step for as long as a file is there.
_JAVA = """#!/usr/bin/env python3
import os, pathlib, shutil, subprocess, sys, time
out = pathlib.Path("{out}")
text = pathlib.Path(sys.argv[1].removeprefix("@")).read_text()
shutil.copy("/proc/self/cmdline", out / "cmdline")
shutil.copy("/proc/self/environ", out / "environ")
(out / "read").write_text(text)
step = "while [ -e {out}/step ]; do sleep 0.1; done"
environment = dict(os.environ, BITBUCKET_PIPELINE_UUID="{pipeline}")
while True:
    if (out / "step").exists():
        subprocess.run(["sh", "-c", step], env=environment)
    time.sleep(0.05)
"""
_RUNNER = Runner("bitbucket", "https://bitbucket.org/acme/widgets", "it", "tpi-it")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    credentials = {"account_uuid": "{a}", "repository_uuid": "{b}", "runner_uuid": "{c}"}
    client = {"client_id": "it", "client_secret": _SECRET}
    with Machine(tmp_path, **credentials, **client) as made:
        program = tmp_path / "program"
        (program / "bin").mkdir(parents=True)
        (made.state / "program").write_text(str(program))
        made.has("java", _JAVA.replace("{out}", str(made.out)).replace("{pipeline}", _PIPELINE))
        yield made


def test_the_secret_is_told_once_and_to_the_program_only(machine: Machine) -> None:
    machine.start(_RUNNER)
    read = machine.out / "read"
    until(lambda: read.exists() and not (machine.state / "arguments").exists())
    assert f"-Dbitbucket.pipelines.runner.oauth.client.secret={_SECRET}\n" in read.read_text()
    assert _SECRET not in (machine.out / "cmdline").read_text()
    assert _SECRET not in (machine.out / "environ").read_text()
    found = [path for path in machine.workdir.rglob("*") if path.is_file()]
    assert not any(_SECRET in path.read_text() for path in found)


def test_it_ends_when_it_is_asked_but_not_in_a_step(machine: Machine) -> None:
    step, now = machine.out / "step", machine.workdir / "jobs" / "now"
    script = machine.start(_RUNNER)
    step.touch()
    until(now.exists)
    until(lambda: now.read_text().split()[1:] == [_PIPELINE])
    (machine.state / "end").touch()
    with pytest.raises(AssertionError):
        until(lambda: script.poll() is not None, 2)
    step.unlink()
    until(lambda: script.poll() is not None)
    assert script.returncode == 0
    assert not now.exists()


def test_a_machine_without_java_is_told(machine: Machine) -> None:
    for name in ("mkdir", "chmod"):
        (machine.tools / name).symlink_to(f"/bin/{name}")
    (machine.tools / "java").unlink()
    script = machine.start(_RUNNER, PATH=str(machine.tools))
    output, _ = script.communicate(timeout=60)
    assert script.returncode == 1
    assert "Java is needed" in output
