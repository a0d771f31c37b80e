from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from sojourn.taskfiles import TaskFile, read_tasks

SCRIPT = "script: '#!/bin/sh'\n"


def read(folder: Path, text: str) -> Task:
    file = folder / "task.yaml"
    file.write_text(text)
    [only] = read_tasks(file)
    return only.task


def refused(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(folder, text)
    shown = [str(problem) for problem in caught.value.problems]
    place = re.compile(re.escape(str(folder / "task.yaml")) + r"(:\d+)?: ")
    assert all(place.match(line) for line in shown)
    return [place.sub("", line) for line in shown]


def test_all_fields(tmp_path: Path) -> None:
    task = read(
        tmp_path,
        """
script: |
  #!/bin/bash
  echo "${A:-1}"
cloud: aws
region: us-east
machine: l+v100
disk_size: 30
spot: 0.1
image: nvidia
permission_set: arn:aws:iam::1:instance-profile/x
parallelism: 2
timeout: 3600
name: my task
tags: {team: ml}
mounts:
  /data: claim:datasets/imagenet:ro
  /v1.5: nfs:files.example:/v1.5
options:
  storage_class: fast
  pod: |
    spec:
      priorityClassName: low
environment: {GREETING: "Hello, world!"}
storage:
  workdir: data
  output: results
  exclude: ["*.pyc", /cache]
  container: bucket/path
  container_opts: {account: x}
  default_ignore: false
""",
    )
    assert task == Task(
        '#!/bin/bash\necho "${A:-1}"\n',
        cloud="aws",
        region="us-east",
        machine="l+v100",
        disk_size=30,
        spot=0.1,
        image="nvidia",
        permission_set="arn:aws:iam::1:instance-profile/x",
        parallelism=2,
        timeout=3600,
        name="my task",
        tags={"team": "ml"},
        mounts={"/data": "claim:datasets/imagenet:ro", "/v1.5": "nfs:files.example:/v1.5"},
        options={"storage_class": "fast", "pod": "spec:\n  priorityClassName: low\n"},
        environment={"GREETING": "Hello, world!"},
        storage=Storage(
            workdir=str(tmp_path / "data"),
            output="results",
            exclude=("*.pyc", "/cache"),
            container="bucket/path",
            container_opts={"account": "x"},
            default_ignore=False,
        ),
    )


def test_defaults_and_label(tmp_path: Path) -> None:
    file = tmp_path / "train.yml"
    file.write_text(SCRIPT)
    assert read_tasks(file) == [TaskFile("train", Task("#!/bin/sh"), said=frozenset({"script"}))]


def test_workdir_is_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "there" / "task.yaml").write_text(SCRIPT + "storage: {workdir: ../data}")
    [read] = read_tasks(Path("../there/task.yaml"))
    assert read.task.storage.workdir == str(tmp_path / "data")


def test_absolute_workdir_stays(tmp_path: Path) -> None:
    assert read(tmp_path, SCRIPT + "storage: {workdir: /data/x}").storage.workdir == "/data/x"


def test_script_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_bytes(b"#!/bin/sh\necho caf\xc3\xa9\n")
    task = read(tmp_path, "script: {file: train.sh}")
    assert task.script == "#!/bin/sh\necho café\n"


def _no_month() -> str:
    """What Python says, which differs from version to version."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- its words are what is wanted
        date(2024, 99, 1)
    return str(caught.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("{file: missing.sh}", "missing.sh: could not read file: No such file or directory"),
        ("{path: x.sh}", "script: must be a string or `file: PATH`"),
        ("{file: x.sh, mode: 1}", "script: must be a string or `file: PATH`"),
        ("{file: 1}", "script: must be a string or `file: PATH`"),
    ],
)
def test_script_file_refused(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(tmp_path, f"script: {script}")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1", "1"),
        ("007", "007"),
        ("1e-4", "1e-4"),
        ("1.50", "1.50"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        (".inf", ".inf"),
        ("'true'", "true"),
        ('"1"', "1"),
        ("", ""),
        ("null", ""),
        ("~", ""),
        ("'~'", "~"),
        ('"a\\nb"', "a\nb"),
        ("=", "="),
    ],
)
def test_environment_values_as_they_are_written(tmp_path: Path, written: str, text: str) -> None:
    maps = ("environment", "tags", "mounts", "options")
    task = read(tmp_path, SCRIPT + "\n".join(f"{name}:\n  A: {written}" for name in maps))
    assert [getattr(task, name) for name in maps] == [{"A": text}] * 4


@pytest.mark.parametrize("name", ["NO", "y", "On", "TRUE", "null"])
def test_names_that_look_like_something_else(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, SCRIPT + f"environment: {{{name}: 'x'}}").environment == {name: "x"}


@pytest.mark.parametrize("value", ["true", "no", "On", "FALSE"])
def test_truth_values_in_the_environment_are_refused(tmp_path: Path, value: str) -> None:
    assert refused(tmp_path, SCRIPT + f"environment: {{DEBUG: {value}}}") == [
        f"environment.DEBUG: must be a string; put it in quotes: '{value}'"
    ]


def test_merge_keys(tmp_path: Path) -> None:
    task = read(tmp_path, SCRIPT + "tags: &common {A: 1, B: 2}\nenvironment: {<<: *common, B: 03}")
    assert task.environment == {"A": "1", "B": "03"}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("scirpt: x\nscript: '#!x'", ["scirpt: unknown field; did you mean script?"]),
        ("qwertz: x\nscript: '#!x'", ["qwertz: unknown field"]),
        (
            "storage: {work_dir: .}\nscript: '#!x'",
            ["storage.work_dir: unknown field; did you mean storage.workdir?"],
        ),
        ("cloud: aws", ["script: required"]),
        (SCRIPT + "parallelism: two", ["parallelism: must be a whole number, got a string"]),
        (
            SCRIPT + "timeout: 1.5",
            [
                "timeout: must be a number of seconds (at least 1) or a duration such as '1h30m', "
                "got 1.5"
            ],
        ),
        (SCRIPT + "spot: [1]", ["spot: must be a number, got a list"]),
        (SCRIPT + "name: 7", ["name: must be a string, got a whole number"]),
        (SCRIPT + "cloud: true", ["cloud: must be a string, got a boolean"]),
        (SCRIPT + "name: 2024-01-31", ["name: must be a string, got a date"]),
        (SCRIPT + "storage: data", ["storage: must be a map, got a string"]),
        (SCRIPT + "storage: {exclude: '*.pyc'}", ["storage.exclude: must be a list, got a string"]),
        (
            SCRIPT + "storage: {exclude: [1]}",
            ["storage.exclude[0]: must be a string, got a whole number"],
        ),
        (SCRIPT + "storage: {workdir: }", ["storage.workdir: must be a string, got null"]),
        (SCRIPT + "environment: [A]", ["environment: must be a map, got a list"]),
        (SCRIPT + "environment: {A: [1]}", ["environment.A: must be a string"]),
        (SCRIPT + "environment: {A: {b: c}}", ["environment.A: must be a string"]),
        (SCRIPT + "cloud: aws\ncloud: gcp", ["cloud: specified more than once"]),
        (SCRIPT + "tags: {a: x, a: y}", ["tags.a: specified more than once"]),
        (SCRIPT + "mounts: {/a: x, /a: y}", ["mounts./a: specified more than once"]),
        (SCRIPT + "mounts: [/a]", ["mounts: must be a map, got a list"]),
        (SCRIPT + "mounts: {/a: {claim: b}}", ["mounts./a: must be a string"]),
        (
            SCRIPT + "volumes: {/a: claim:b}",
            ["volumes: unknown field; did you mean mounts?"],
        ),
        (SCRIPT + "mount: {/a: claim:b}", ["mount: unknown field; did you mean mounts?"]),
        (SCRIPT + "option: {a: b}", ["option: unknown field; did you mean options?"]),
        (SCRIPT + "options: pod", ["options: must be a map, got a string"]),
        (
            SCRIPT + "options: {debug: yes}",
            ["options.debug: must be a string; put it in quotes: 'yes'"],
        ),
        (SCRIPT + "options: {pod: [spec]}", ["options.pod: must be a string"]),
        (
            SCRIPT + "options: {pod: {spec: {}}}",
            [
                "options.pod: must be a string; for YAML in a string, write `pod: |` and indent "
                "the lines"
            ],
        ),
        (SCRIPT + "? [a]\n: b", ["-: names must be strings"]),
        (
            "script: echo",
            ["script: must start with a shebang such as #!/bin/bash"],
        ),
        ("- a", ["must be a map of task fields, such as `script: ...`"]),
        ("", ["must be a map of task fields, such as `script: ...`"]),
        ("a: b\n---\nc: d", ["invalid YAML: but found another document"]),
        (
            "script: |\n  x\n\tbad: [",
            ["invalid YAML: found character '\\t' that cannot start any token"],
        ),
        (
            "a: b\nc: [1, 2",
            ["invalid YAML: expected ',' or ']', but got '<stream end>'"],
        ),
        (
            "a: !a x",
            ["invalid YAML: could not determine a constructor for the tag '!a'"],
        ),
        ("a: 2024-99-99", [f"invalid YAML: {_no_month()}"]),
    ],
)
def test_refused(tmp_path: Path, text: str, problems: list[str]) -> None:
    assert refused(tmp_path, text) == problems


def test_all_problems_at_once(tmp_path: Path) -> None:
    text = "script: echo\nparallelism: 0\nclout: x\nstorage: {output: ../x, exclude: ['[']}"
    assert [line.partition(":")[0] for line in refused(tmp_path, text)] == [
        "script",
        "parallelism",
        "clout",
        "storage.output",
        "storage.exclude",
    ]


def problems_of(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_tasks(file)
    return [str(problem).removeprefix(str(file)) for problem in caught.value.problems]


def test_each_problem_has_its_line(tmp_path: Path) -> None:
    text = """\
cloud: aws
parallelism: 0
timeout: soon
script: {file: no.sh}
env: {A: 1}
environment:
  OK: 1
  DEBUG: yes
  LIST: [1]
mounts:
  /a.b: x
  /c.d: [1]
options:
  debug: no
storage:
  workdirs: .
  exclude:
    - 1
spot: [1]
cloud: local
? [a]
: b
"""
    shown = problems_of(tmp_path / "task.yaml", text)
    assert [line.split(": ")[0] for line in shown] == [
        f":{number}" for number in (2, 3, 4, 5, 8, 9, 12, 14, 16, 17, 19, 20, 21)
    ]
    assert "did you mean environment?" in shown[3]
    assert "did you mean storage.workdir?" in shown[8]
    assert shown[11] == ":20: cloud: specified more than once"


def test_what_yaml_refuses_comes_after_what_was_found_before(tmp_path: Path) -> None:
    text = "script: '#!x'\ncloud: a\ncloud: b\nname: !x y\n"
    first, second = problems_of(tmp_path / "task.yaml", text)
    assert first == ":3: cloud: specified more than once"
    assert second.startswith(":4: invalid YAML: could not determine a constructor")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("args", "arguments"),
        ("argument", "arguments"),
        ("command", "script"),
        ("env", "environment"),
        ("workdir", "storage.workdir"),
        ("excludes", "storage.exclude"),
        ("outputs", "storage.output"),
        ("time_out", "timeout"),
        ("machine_type", "machine"),
    ],
)
def test_a_guess_for_each_habit(tmp_path: Path, name: str, meant: str) -> None:
    assert refused(tmp_path, SCRIPT + f"{name}: x") == [
        f"{name}: unknown field; did you mean {meant}?"
    ]


def test_arguments_and_a_timeout_with_units(tmp_path: Path) -> None:
    task = read(tmp_path, SCRIPT + "arguments: [--lr, '0.1']\ntimeout: 1h30m")
    assert (task.arguments, task.timeout) == (("--lr", "0.1"), 5400)


def test_no_code_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused(tmp_path, "a: !!python/object/apply:os.system ['echo ran']")
    assert capfd.readouterr().out == ""


def test_values_are_not_in_messages(tmp_path: Path) -> None:
    bad: dict[str, Any] = {"1A": "secret"}
    [line] = refused(tmp_path, SCRIPT + f"environment: {bad}")
    assert "secret" not in line
