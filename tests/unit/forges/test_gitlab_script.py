"""What is done on a machine before GitLab's program starts, with other programs in its place."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.runner import Runner
from tests.unit.forges.machine import Machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib")

_TOKEN = "glrt-secret"
_PLAIN = """#!/bin/sh
echo "$@" > '{out}/arguments'
env > '{out}/environment'
cp -p "$3" '{out}/config.toml'
"""
# Carries out one job, as if it would go on: it ends only when it is asked to.
_WAITING = """#!/usr/bin/env python3
import pathlib, signal, subprocess, sys, tomllib
out = pathlib.Path('{out}')
out.joinpath("arguments").write_text(" ".join(sys.argv[1:]) + "\\n")
asked = []
signal.signal(signal.SIGQUIT, lambda *_: asked.append(1))
signal.alarm(50)
with open(sys.argv[3], "rb") as file:
    (runner,) = tomllib.load(file)["runners"]
subprocess.run(["sh", "-c", runner["pre_get_sources_script"]], check=True)
out.joinpath("asked").write_text(str(len(asked)))
"""


def _run(machine: Machine, program: str, runner: Runner, **settings: str) -> str:
    machine.has("gitlab-runner", program.format(out=machine.out))
    done = machine.start(runner, **settings)
    output, _ = done.communicate(timeout=60)
    assert done.returncode == 0, output
    return (machine.out / "arguments").read_text()


def _config(machine: Machine) -> dict[str, object]:
    return dict(tomllib.loads((machine.out / "config.toml").read_text()))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path, runner_token=_TOKEN, gitlab_url="https://example.com/gitlab") as made:
        yield made


def _runner(*, single: bool = False) -> Runner:
    return Runner("gitlab", "https://example.com/gitlab/a/b", "it", "tpi-it", single=single)


def test_the_token_is_in_one_file_that_only_its_owner_can_read(machine: Machine) -> None:
    arguments = _run(machine, _PLAIN, _runner())
    assert arguments.startswith("run --config ")
    assert _TOKEN not in arguments
    assert _TOKEN not in (machine.out / "environment").read_text()
    assert stat.S_IMODE((machine.out / "config.toml").stat().st_mode) == 0o600
    assert not (machine.workdir / "state" / "credentials").exists()
    inside = [path for path in machine.workdir.rglob("*") if path.is_file()]
    assert not any(_TOKEN in path.read_text() for path in inside)
    config = _config(machine)
    assert config["listen_address"] == "127.0.0.1:4711"
    assert isinstance(config["runners"], list)
    (runner,) = config["runners"]
    assert (runner["url"], runner["token"]) == ("https://example.com/gitlab", _TOKEN)
    assert runner["executor"] == "shell"


def test_an_image_without_git(machine: Machine, tmp_path: Path) -> None:
    machine.has("gitlab-runner", "touch started")
    programs = tmp_path / "programs"
    programs.mkdir()
    for file in Path("/usr/bin").iterdir():
        if file.name not in ("git", "docker"):
            (programs / file.name).symlink_to(file)
    machine.before = ["env", f"PATH={machine.tools}:{programs}"]
    done = machine.start(_runner())
    output, _ = done.communicate(timeout=60)
    assert done.returncode == 1
    assert "GitLab's runner needs git, which the image lacks" in output


def test_jobs_are_in_containers_where_there_is_docker(machine: Machine) -> None:
    machine.has("docker", "echo '{\"nvidia\": {}}'")
    _run(machine, _PLAIN, _runner(), docker_volumes="/data:/data:ro /models")
    config = _config(machine)
    assert isinstance(config["runners"], list)
    (runner,) = config["runners"]
    assert runner["executor"] == "docker"
    assert runner["docker"]["volumes"] == ["/cache", "/data:/data:ro", "/models"]
    assert runner["docker"]["gpus"] == "all"


def test_one_for_a_single_job_takes_one_and_waits_as_long_as_it_may(machine: Machine) -> None:
    arguments = _run(machine, _PLAIN, _runner(single=True))
    assert arguments.startswith("run-single --config ")
    assert arguments.endswith("--runner sojourn --max-builds 1 --wait-timeout 300\n")


def test_the_only_job_of_another_user_starts_when_no_other_can_follow(machine: Machine) -> None:
    machine.has("id", "echo 0")
    machine.has("chown", "exit 0")
    machine.has("setpriv", 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"')
    arguments = _run(machine, _WAITING, _runner(single=True), job_user="of-jobs")
    assert arguments.startswith("run --config ")
    assert arguments.endswith("--user of-jobs\n")
    assert (machine.out / "asked").read_text() == "1"
