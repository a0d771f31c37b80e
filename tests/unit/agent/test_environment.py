"""What a script sees, and who else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn.core.report import Outcome
from tests.support.processes import MARK, marked
from tests.support.waiting import until
from tests.unit.agent.world import World

_DUMP = '#!/usr/bin/python3\nimport json, os\njson.dump(dict(os.environ), open("env", "w"))\n'

_VALUES = {
    "EMPTY": "",
    "QUOTES": """a 'b' "c" `d` $E \\f""",
    "LINES": "one\ntwo\n\n three\t",
    "UNICODE": "naïve ☃ 雪",
    "EQUALS": "=a=b=",
    "LARGE": "x" * 100_000,
    "lower_case": "1",
}


def test_variables_arrive_unchanged(world: World) -> None:
    world.environment["LEAK"] = "no"
    world.environment["SOJOURN_RANK"] = "no"
    world.task(_DUMP, environment=_VALUES, region="us-east", machine="m+t4")
    world.agent().wait()
    seen = json.loads(world.files()["env"])
    for shells in ("LC_CTYPE", "PWD", "SHLVL", "_"):
        seen.pop(shells, None)
    assert seen == {
        **_VALUES,
        MARK: world.mark,
        "HOME": world.environment["HOME"],
        "PATH": world.environment["PATH"],
        "PYTHONUNBUFFERED": "1",
        "TPI_TASK": "true",
        "TPI_REGION": "us-east",
        "TPI_MACHINE": "m+t4",
        "SOJOURN_RANK": "0",
        "SOJOURN_PARALLELISM": "1",
        "SOJOURN_ATTEMPT": "1",
        "SOJOURN_MACHINE": "m1",
    }


def test_the_user_may_set_what_is_inherited(world: World) -> None:
    world.run("echo $HOME $PYTHONUNBUFFERED", environment={"HOME": "/h", "PYTHONUNBUFFERED": "0"})
    assert world.printed() == "/h 0\n"


def test_too_large_an_environment(world: World) -> None:
    report = world.run("true", environment={f"LARGE_{n}": "x" * 100_000 for n in range(64)})
    assert report.outcome is Outcome.FAILED
    assert report.reason == "could not run the script: its arguments and environment are too large"


def test_secrets_stay_in_the_environment(world: World) -> None:
    secret = "swordfish-0815"
    world.task("echo started; sleep 1; exit 3", {"a": "b"}, environment={"TOKEN": secret})
    world.follow()
    agent = world.agent()
    until(lambda: "started" in world.printed())
    for pid in marked(world.mark):
        assert secret not in Path(f"/proc/{pid}/cmdline").read_text()
    agent.wait()
    holders = [
        path.relative_to(world.folder)
        for path in world.folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert holders == [Path("store/environment.json")]


@pytest.mark.parametrize("missing", ["HOME", "PATH"])
def test_a_launcher_with_little(world: World, missing: str) -> None:
    del world.environment[missing]
    assert world.run("#!/bin/sh\necho hello\n").outcome is Outcome.SUCCEEDED
