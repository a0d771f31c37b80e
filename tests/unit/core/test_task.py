from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.runner import Program, Runner
from sojourn.core.task import Storage, Task

SCRIPT = "#!/bin/sh\n"


def test_defaults() -> None:
    task = Task(SCRIPT)
    assert dataclasses.asdict(task) == {
        "script": SCRIPT,
        "cloud": "local",
        "region": "",
        "machine": "m",
        "disk_size": -1,
        "spot": -1,
        "image": "ubuntu",
        "permission_set": "",
        "parallelism": 1,
        "storage": {
            "workdir": "",
            "output": None,
            "exclude": (),
            "container": "",
            "container_opts": {},
            "default_ignore": True,
        },
        "environment": {},
        "timeout": 86400,
        "tags": {},
        "name": "",
        "arguments": (),
        "mounts": {},
        "options": {},
        "stay": False,
        "idle_timeout": 0,
        "runner": None,
        "gang": False,
        "gang_timeout": 1800,
        "mpi": None,
        "files": {},
        "warm": 0,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("script", "#!/usr/bin/env python3"),
        ("disk_size", 1),
        ("disk_size", 100_000),
        ("spot", 0),
        ("spot", 0.0001),
        ("spot", -1.0),
        ("parallelism", 1000),
        ("timeout", 1),
        ("environment", {"A": "", "B_*": ""}),
        ("tags", {"a b": ""}),
        ("mounts", {"/data": "claim:datasets/imagenet:ro"}),
        ("options", {"pod": "spec:\n  priorityClassName: low\n"}),
        ("name", "Hello, World! é"),
        ("region", "foo=bar,goo=baz"),
        ("arguments", ("--lr", "0.1", "")),
    ],
)
def test_accepted(field: str, value: Any) -> None:
    assert getattr(Task(**{"script": SCRIPT, field: value}), field) == value


TEXT = "must be a string, got "
MAP = "must be a map of strings to strings"
DISK = "must be -1 (automatic) or at least 1 (GB), got "
SPOT = "or a maximum price in USD per hour, got "
MACHINES = "must be a whole number from 1 to 1000, got "
TIMEOUT = "must be a number of seconds (at least 1) or a duration such as '1h30m', got "


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("script", "", "must not be empty"),
        ("script", " \n\t", "must not be empty"),
        ("script", "echo", "must start with a shebang"),
        (
            "script",
            "\n#!/bin/sh",
            "must start with its shebang, without leading spaces or empty lines",
        ),
        ("script", "  #!/bin/sh", "use <<-END instead of <<END"),
        ("script", "\ufeff#!/bin/sh", "must start with a shebang"),
        ("script", "#!/bin/sh\r\necho\r\n", "has Windows line endings"),
        ("script", "#!/bin/sh\nif true\r\nthen echo\r\nfi\r", "`sed -i 's/\\r$//' FILE`"),
        ("script", "#!/bin/sh\0", "must not contain a NUL character"),
        ("script", None, TEXT + "None"),
        ("script", b"#!x", TEXT + "b'#!x'"),
        ("cloud", 1, TEXT + "1"),
        ("region", None, TEXT + "None"),
        ("machine", 8, TEXT + "8"),
        ("image", ["x"], TEXT + "['x']"),
        ("permission_set", {}, TEXT + "{}"),
        ("name", 7, TEXT + "7"),
        ("name", "a\0", "must not contain a NUL character"),
        ("disk_size", 0, DISK + "0"),
        ("disk_size", -2, DISK + "-2"),
        ("disk_size", 1.5, DISK + "1.5"),
        ("disk_size", "30", DISK + "'30'"),
        ("disk_size", True, DISK + "True"),
        ("spot", -0.5, SPOT + "-0.5"),
        ("spot", -2, SPOT + "-2"),
        ("spot", float("nan"), SPOT + "nan"),
        ("spot", float("inf"), SPOT + "inf"),
        ("spot", "0", SPOT + "'0'"),
        ("spot", False, SPOT + "False"),
        ("parallelism", 0, MACHINES + "0"),
        ("parallelism", -1, MACHINES + "-1"),
        ("parallelism", 1001, "must be at most 1000, got 1001"),
        ("parallelism", 1.0, MACHINES + "1.0"),
        ("parallelism", None, MACHINES + "None"),
        ("timeout", 0, TIMEOUT + "0"),
        ("timeout", -1, TIMEOUT + "-1"),
        ("timeout", 1e3, TIMEOUT + "1000.0"),
        ("storage", {}, "must be a Storage"),
        ("storage", None, "must be a Storage"),
        ("environment", ["A"], "must be a map of names to values"),
        ("environment", None, "must be a map of names to values"),
        ("tags", {"a": 1}, MAP),
        ("tags", {1: "a"}, MAP),
        ("tags", [], MAP),
        ("tags", None, MAP),
        ("mounts", {"/data": {}}, MAP),
        ("mounts", ["/data"], MAP),
        ("mounts", None, MAP),
        ("options", {"pod": {}}, MAP),
        ("options", "pod", MAP),
        ("options", None, MAP),
        ("timeout", "soon", TIMEOUT + "'soon'"),
        ("timeout", "", TIMEOUT + "''"),
        ("timeout", "0m", TIMEOUT + "0"),
        ("arguments", "--lr", "must be a list of strings, such as ['--lr', '0.1']"),
        ("arguments", ["--lr", 0.1], "must be a list of strings"),
        ("arguments", None, "must be a list of strings"),
    ],
)
def test_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Task(**{"script": SCRIPT, field: value})
    [problem] = caught.value.problems
    assert problem.path == caught.value.path == field
    assert message in problem.message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("workdir", None, TEXT + "None"),
        ("workdir", "a\0", "must not contain a NUL character"),
        ("container", 1, TEXT + "1"),
        ("output", 1, TEXT + "1"),
        ("output", "/abs", "must be a path inside workdir, without `..`, got '/abs'"),
        ("output", "..", "must be a path inside workdir, without `..`, got '..'"),
        ("output", "../x", "must be a path inside workdir"),
        ("output", "a/../../x", "must be a path inside workdir"),
        ("output", "./../x", "must be a path inside workdir"),
        ("exclude", "*.pyc", "must be a list of patterns such as '*.pyc'"),
        ("exclude", None, "must be a list of patterns"),
        ("exclude", [1], "must be a list of patterns"),
        ("exclude", ["["], "invalid pattern '[': unclosed ["),
        ("exclude", ["ok", ""], "'' matches nothing"),
        ("container_opts", [], MAP),
        ("container_opts", {"a": 1}, MAP),
        ("container_opts", {"a": "b"}, "requires storage.container"),
    ],
)
def test_storage_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Storage(**{field: value})
    assert caught.value.path == f"storage.{field}"
    assert message in caught.value.problems[0].message


@pytest.mark.parametrize(
    ("output", "pattern"),
    [
        ("results", "results"),
        ("results/", "/results"),
        ("./results", "results/"),
        ("a/results", "results"),
        ("a/results", "/a"),
        ("a/results", "/a/**"),
        ("results", "*"),
    ],
)
def test_an_output_that_is_excluded_is_refused(output: str, pattern: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Storage(output=output, exclude=("*.pyc", pattern))
    (problem,) = caught.value.problems
    assert problem.path == "storage.exclude"
    assert problem.message.startswith(f"{pattern!r} excludes ")


@pytest.mark.parametrize(
    ("output", "pattern"),
    [
        ("results", "/results/tmp"),
        ("results", "*.tmp"),
        ("a/results", "/results"),
        ("", "*"),
        (".", "?"),
    ],
)
def test_what_leaves_something_of_the_output_is_accepted(output: str, pattern: str) -> None:
    assert Storage(output=output, exclude=(pattern,)).exclude == (pattern,)


def test_an_output_that_is_never_transferred() -> None:
    with pytest.raises(InvalidInput) as caught:
        Storage(output=".terraform/x", exclude=("*.pyc",))
    assert str(caught.value) == (
        "storage.output: '.terraform/x' is never transferred; choose another folder"
    )


def test_a_workdir_may_be_a_path() -> None:
    assert Storage(workdir=Path("a/b")).workdir == "a/b"  # type: ignore[arg-type]
    assert Storage(workdir=Path()) == Storage(workdir=".")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a string"):
        Storage(workdir=os.fsencode("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize("output", ["", ".", "results", "a/b/", "./a", "a/../b", "..a", "a..b/c"])
def test_output_inside(output: str) -> None:
    assert Storage(output=output).output == output


def test_every_field_is_checked() -> None:
    """A new field without a rule would go unnoticed otherwise."""

    class Odd:
        pass

    odd: Any = Odd()
    for name in Task.__dataclass_fields__:
        with pytest.raises(InvalidInput):
            Task(**{"script": SCRIPT, name: odd})
    for name in Storage.__dataclass_fields__:
        with pytest.raises(InvalidInput):
            Storage(**{name: odd})


def test_several_problems_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        Task("echo", parallelism=0, timeout=0, environment={"1": "x", "A*": "y"}, tags={"a": 1})  # type: ignore[dict-item]
    assert [problem.path for problem in caught.value.problems] == [
        "script",
        "parallelism",
        "timeout",
        "environment.1",
        "environment.A*",
        "tags",
    ]
    with pytest.raises(InvalidInput) as caught:
        Storage(output="/x", exclude=("[", "{"))
    assert [problem.path for problem in caught.value.problems] == [
        "storage.output",
        "storage.exclude",
        "storage.exclude",
    ]


def full() -> Task:
    return Task(
        SCRIPT,
        cloud="aws",
        region="us-east",
        machine="l",
        disk_size=30,
        spot=0.5,
        image="nvidia",
        permission_set="p",
        parallelism=2,
        storage=Storage("w", "o", ("*.pyc",), "c", {"account": "secret-key"}),
        environment={"TOKEN": "secret-token", "B_*": ""},
        timeout=60,
        tags={"t": "v"},
        name="n",
        arguments=("--lr", "0.1"),
        mounts={"/data": "claim:datasets:ro"},
        options={"pod": "spec: {}"},
        files={"/etc/a": "b"},
        stay=True,
        idle_timeout=30,
        runner=Runner(
            "github",
            "https://github.com/acme/widgets",
            "builder",
            "tpi-builder",
            labels=("gpu",),
            programs={"x86_64": Program("1.2.3", "https://example.com/p.tar.gz", "ab" * 32)},
        ),
    )


def test_a_task_that_stays_may_have_no_time_limit() -> None:
    assert Task(SCRIPT, stay=True, timeout=0).timeout == 0
    with pytest.raises(InvalidInput, match="timeout: must be a number of seconds"):
        Task(SCRIPT, timeout=0)


def test_an_idle_timeout_is_a_duration_of_a_task_that_stays() -> None:
    assert Task(SCRIPT, stay=True, idle_timeout="1h30m").idle_timeout == 5400  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="idle_timeout: requires stay"):
        Task(SCRIPT, idle_timeout=60)
    with pytest.raises(InvalidInput, match="idle_timeout: must be a number of seconds"):
        Task(SCRIPT, stay=True, idle_timeout=-1)


def full_gang() -> Task:
    """With all that a task that stays cannot have."""
    mpi = Mpi(slots=2, implementation="mpich")
    files = {"/etc/hpl/HPL.dat": "HPL\n"}
    return Task(SCRIPT, gang=True, gang_timeout=60, mpi=mpi, files=files, name="n", warm=60)


def test_a_gang_is_in_the_round_trip() -> None:
    task = full_gang()
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_mpi_means_a_gang() -> None:
    task = Task(SCRIPT, mpi={"slots": 2})  # type: ignore[arg-type]
    assert (task.gang, task.mpi) == (True, Mpi(2, "openmpi"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gang": 1}, "gang: must be a boolean, got 1"),
        ({"gang": True, "stay": True}, "stay: cannot be combined with gang"),
        ({"gang": True, "gang_timeout": 0}, "gang_timeout: must be a number of seconds"),
        ({"warm": 60}, "warm: requires name"),
        ({"warm": -1, "name": "n"}, "warm: must be a number of seconds"),
        ({"mpi": True}, "mpi: must be a map such as"),
        ({"mpi": {"nodes": 2}}, "mpi.nodes: unknown field; use slots and implementation"),
        ({"mpi": Mpi(slots=0)}, "mpi.slots: must be a whole number from 1 to 10000, got 0"),
        ({"mpi": Mpi(implementation="lam")}, "mpi.implementation: must be one of openmpi, intel"),
        ({"files": {"/a": 1}}, "files: must be a map of paths to contents"),
        ({"files": {"/a": "x" * (1 << 20) + "y"}}, "put large files into the workdir instead"),
    ],
)
def test_gangs_and_files_that_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Task(SCRIPT, **fields)


def test_round_trip_without_values_that_may_be_secret() -> None:
    task = full()
    data = json.loads(json.dumps(task.to_dict()))
    assert "secret" not in str(data)
    read = Task.from_dict(data)
    storage = dataclasses.replace(task.storage, container_opts={"account": ""})
    expected = {"TOKEN": "", "B_*": ""}
    assert read == dataclasses.replace(task, environment=expected, storage=storage)
    assert read.storage.exclude == ("*.pyc",)


def test_every_field_is_in_the_round_trip() -> None:
    tasks, default = (full(), full_gang()), Task(SCRIPT)
    fields = [field.name for field in dataclasses.fields(Task) if field.name != "script"]
    same = [n for n in fields if all(getattr(t, n) == getattr(default, n) for t in tasks)]
    assert same == []


def test_fields_of_a_newer_version_are_ignored() -> None:
    data = full().to_dict()
    data["future"] = 1
    data["storage"]["future"] = 2
    assert Task.from_dict(data) == Task.from_dict(full().to_dict())


def test_fields_of_an_older_version_may_be_absent() -> None:
    assert Task.from_dict({"script": SCRIPT}) == Task(SCRIPT)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(full())
    assert "secret" not in str(full())
    assert "us-east" in repr(full())


def test_frozen() -> None:
    task = Task(SCRIPT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.cloud = "aws"  # type: ignore[misc]


def test_later_changes_of_what_was_given_do_not_reach_it() -> None:
    environment, tags, options = {"A": "1"}, {"t": "1"}, {"o": "1"}
    mounts, own = {"/m": "1"}, {"o": "1"}
    exclude = ["a"]
    storage = Storage(container="c", container_opts=options, exclude=exclude)  # type: ignore[arg-type]
    task = Task(
        SCRIPT, environment=environment, tags=tags, storage=storage, mounts=mounts, options=own
    )
    environment["1 bad"] = tags["x"] = options["x"] = mounts["x"] = own["x"] = "changed"
    exclude.append("[")
    assert task.environment == {"A": "1"}
    assert (task.tags, task.mounts, task.options) == ({"t": "1"}, {"/m": "1"}, {"o": "1"})
    assert task.storage == Storage(container="c", container_opts={"o": "1"}, exclude=("a",))


def test_any_mapping_will_do() -> None:
    task = Task(SCRIPT, environment=MappingProxyType({"A": "1"}), tags=MappingProxyType({"t": "1"}))
    assert json.loads(json.dumps(task.to_dict()))["tags"] == {"t": "1"}


def test_filters() -> None:
    filters = Task(SCRIPT, storage=Storage(exclude=("*.pyc",))).filters()
    assert filters.excludes("a/x.pyc")
    assert filters.excludes("main.tf")
    assert not filters.excludes("x.py")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("45s", 45),
        ("90m", 5400),
        ("1h30m", 5400),
        (" 1h 30m ", 5400),
        ("1d", 86400),
        ("1d2h3m4s", 93784),
    ],
)
def test_a_timeout_with_units_becomes_seconds(text: str, seconds: int) -> None:
    timeout: Any = text
    task = Task(SCRIPT, timeout=timeout)
    assert (task.timeout, type(task.timeout)) == (seconds, int)
    assert task.to_dict()["timeout"] == seconds


@pytest.mark.parametrize(
    "text", ["1.5h", "-1h", "30m1h", "1h30", "h", "1 h", "1H", "1w", "\u0661h", "1h\n30m x"]
)
def test_what_is_no_duration(text: str) -> None:
    timeout: Any = text
    with pytest.raises(InvalidInput, match="timeout: must be a number of seconds"):
        Task(SCRIPT, timeout=timeout)


def test_arguments_may_be_a_list() -> None:
    arguments: Any = ["--lr", "0.1"]
    task = Task(SCRIPT, arguments=arguments)
    arguments.append("later")
    assert task.arguments == ("--lr", "0.1")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("a\0b", r"arguments\[1\]: must not contain a NUL character"),
        ("x" * 131_072, r"arguments\[1\]: must be at most 131,071 bytes"),
    ],
)
def test_arguments_that_no_program_can_be_given(argument: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Task(SCRIPT, arguments=("fine", argument))
