"""A script runs with its folder and comes home with its results."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import sojourn
from sojourn import State
from sojourn.core.errors import InvalidInput
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import patience, until

EPOCHS = """#!/bin/bash
mkdir -p output
echo "$GREETING" | tee output/greeting
if test -f output/epoch.txt; then EPOCH="$(cat output/epoch.txt)"; fi
EPOCH=${EPOCH:-1}
echo "(re)starting training loop from $EPOCH up to 5 epochs"
for epoch in $(seq $EPOCH 5); do
  sleep 0.05
  echo "$epoch" | tee output/epoch.txt
done
"""


def test_the_example_of_the_old_provider(lab: Lab) -> None:
    result = lab.run(EPOCHS, environment={"GREETING": "Hello, world!"})
    assert (result.status, result.exit_code) == (State.SUCCEEDED, 0)
    assert lab.output() == {"greeting": "Hello, world!\n", "epoch.txt": "5\n"}
    lines = [event.text for event in lab.events if hasattr(event, "text")]
    assert lines == [
        "Hello, world!",
        "(re)starting training loop from 1 up to 5 epochs",
        *"12345",
    ]


def test_output_goes_up_with_the_workdir_and_comes_home_merged(lab: Lab) -> None:
    (lab.workdir / "output").mkdir()
    (lab.workdir / "output/old").write_text("oldData")
    (lab.workdir / "output/both").write_text("oldData\n")
    (lab.workdir / "input").write_text("input")
    script = """
    test "$(cat output/old)" = oldData && test "$(cat input)" = input || exit 9
    echo newData >> output/both
    echo newData > output/new
    echo ignored > elsewhere
    """
    assert lab.run(script).exit_code == 0
    assert lab.output() == {"old": "oldData", "both": "oldData\nnewData\n", "new": "newData\n"}
    assert not (lab.workdir / "elsewhere").exists()


def test_a_task_without_workdir_and_output(lab: Lab) -> None:
    result = lab.run("pwd; ls -A", storage=sojourn.Storage())
    assert result.exit_code == 0
    assert not any(lab.workdir.iterdir())


def test_the_exit_code_of_the_script(lab: Lab) -> None:
    result = lab.run("mkdir output; echo partial > output/file; exit 3")
    assert (result.status, result.exit_code) == (State.FAILED, 3)
    assert "exit code 3" in result.reason
    assert lab.output() == {"file": "partial\n"}


def test_a_script_that_is_killed(lab: Lab) -> None:
    result = lab.run("kill -KILL $$")
    assert (result.status, result.exit_code) == (State.FAILED, 137)
    assert "SIGKILL" in result.reason


def test_a_timeout(lab: Lab) -> None:
    seconds = round(patience(5))  # they begin with the agent, before the script does
    result = lab.run("mkdir output; echo kept > output/file; sleep 300", timeout=seconds)
    assert result.status is State.TIMED_OUT
    assert f"timeout of {seconds} seconds" in result.reason
    assert lab.output() == {"file": "kept\n"}


def test_a_daemon_does_not_outlive_the_script(lab: Lab) -> None:
    handle = lab.create("setsid nohup sleep 3600 >/dev/null 2>&1 & disown; echo started")
    assert handle.wait().status is State.SUCCEEDED
    until(lambda: not lab.kit.processes())
    handle.delete()


@pytest.mark.parametrize(
    "value",
    ["plain", "", 'it\'s "quoted" $HOME `id` \\', "two\nlines\n", "ünï¢ødé ✓", "x" * 100_000],
    ids=["plain", "empty", "quotes", "newlines", "unicode", "100 kB"],
)
def test_environment_values_arrive_unchanged(
    lab: Lab, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY_HERE", value)
    script = """
    mkdir output
    printf %s "$GIVEN" > output/given
    printf %s "$EMPTY_HERE" > output/imported
    """
    environment = {"GIVEN": value or "-", "EMPTY_*": ""}
    assert lab.run(script, environment=environment).exit_code == 0
    output = lab.workdir / "output"
    assert (output / "given").read_bytes() == (value or "-").encode()
    assert (output / "imported").read_bytes() == value.encode()


def test_arguments_arrive_unchanged(lab: Lab) -> None:
    arguments = ("--lr", "0.1", "", "a b", 'it\'s "q" $HOME `id` \\', "two\nlines", "✓", "x" * 1000)
    script = 'mkdir output; for each in "$@"; do printf "%s\\0" "$each"; done > output/given'
    assert lab.run(script, arguments=arguments).exit_code == 0
    given = (lab.workdir / "output/given").read_text()
    assert given.split("\0") == [*arguments, ""]


def test_other_arguments_make_another_task(lab: Lab) -> None:
    task = lab.task("exit 0", name="with-arguments", arguments=("one",))
    handle = sojourn.create(task)
    assert handle.task().arguments == ("one",)
    with pytest.raises(sojourn.Conflict):
        sojourn.create(task, arguments=("two",))
    handle.delete()


def test_what_a_sojournignore_names_is_not_uploaded_but_comes_home(lab: Lab) -> None:
    for name in ("data/raw", "data/small", "output/old", "deep/x.tmp", "deep/y.tmp"):
        (lab.workdir / name).parent.mkdir(exist_ok=True)
        (lab.workdir / name).write_text("here")
    (lab.workdir / ".sojournignore").write_text("/data/*\n!/data/small\noutput/\n*.tmp\n")
    (lab.workdir / "deep/.sojournignore").write_text("!y.tmp\n")
    script = "find . -type f | sort > /tmp/$$; mkdir output; mv /tmp/$$ output/found"
    assert lab.run(script).exit_code == 0
    assert lab.output()["found"].split() == [
        "./.sojournignore",
        "./data/small",
        "./deep/.sojournignore",
        "./deep/y.tmp",
    ]
    assert lab.output()["old"] == "here"


def test_a_dry_run_makes_nothing(lab: Lab) -> None:
    (lab.workdir / "data").write_text("x" * 100)
    before = lab.kit.leaks()
    task = lab.task("exit 0", name="only-planned")
    plan = sojourn.plan(task)
    assert plan.upload
    assert (plan.cloud, plan.upload.files, plan.upload.bytes) == (lab.kit.cloud, 1, 100)
    assert plan.resources
    assert not plan.exists
    assert lab.kit.leaks() == before == []
    assert sojourn.list_tasks() == []
    handle = sojourn.create(task, on_event=lab.events.append)
    steps = {event.step for event in lab.events if isinstance(event, sojourn.StepStarted)}
    assert {f"Creating {title}" for title in plan.resources} <= steps
    assert sojourn.plan(task).exists
    handle.delete(fetch=False)


def test_what_the_script_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "abc")
    monkeypatch.setenv("MY_SECRET", "not asked for")
    lab.run("mkdir output; env > output/env", region="eu-west", machine="l")
    told = dict(line.split("=", 1) for line in lab.output()["env"].splitlines())
    expected = {
        "TPI_TASK": "true",
        "TPI_REGION": "eu-west",
        "TPI_MACHINE": "l",
        "SOJOURN_RANK": "0",
        "SOJOURN_PARALLELISM": "1",
        "SOJOURN_ATTEMPT": "1",
        "GITHUB_SHA": "abc",
    }
    assert {name: told.get(name) for name in expected} == expected
    assert "MY_SECRET" not in told
    assert Path(told["PWD"]).name == "workdir"


def test_excluded_files_travel_in_neither_direction(lab: Lab) -> None:
    (lab.workdir / "cache").mkdir()
    for name in ("cache/big", "keep", "module.pyc", "main.tf", "terraform.tfstate"):
        (lab.workdir / name).write_text(name)
    storage = sojourn.Storage(
        workdir=str(lab.workdir), output="output", exclude=("/cache", "*.pyc", "/output/tmp")
    )
    script = "mkdir output; ls > output/seen; echo no > output/tmp; echo no > output/x.pyc"
    assert lab.run(script, storage=storage).exit_code == 0
    assert lab.output() == {"seen": "keep\noutput\n"}


def test_three_ranks_with_separate_and_conflicting_outputs(lab: Lab) -> None:
    (lab.workdir / "output").mkdir()
    (lab.workdir / "output/base").write_text("base\n")
    script = """
    echo "$SOJOURN_RANK of $SOJOURN_PARALLELISM" > output/own-$SOJOURN_RANK
    echo "$SOJOURN_RANK" > output/conflict
    echo same > output/same
    test $SOJOURN_RANK != 1 || echo changed > output/base
    """
    result = lab.run(script, parallelism=3)
    assert result.status is State.SUCCEEDED
    assert lab.output() == {
        "own-0": "0 of 3\n",
        "own-1": "1 of 3\n",
        "own-2": "2 of 3\n",
        "conflict": "0\n",
        "conflict.rank1": "1\n",
        "conflict.rank2": "2\n",
        "same": "same\n",
        "base": "changed\n",
    }
    assert any("conflict.rank1" in getattr(event, "message", "") for event in lab.events)


def test_a_rank_that_writes_what_was_there_before_has_a_result(lab: Lab) -> None:
    (lab.workdir / "output").mkdir()
    (lab.workdir / "output/shared").write_text("0\n")
    assert lab.run("sleep 0.01; echo $SOJOURN_RANK > output/shared", parallelism=2).exit_code == 0
    assert lab.output() == {"shared": "0\n", "shared.rank1": "1\n"}


def test_one_failing_rank_fails_the_task_and_leaves_the_others_alone(lab: Lab) -> None:
    script = """
    mkdir output
    test $SOJOURN_RANK != 1 || exit 7
    sleep 0.5
    echo done > output/$SOJOURN_RANK
    """
    handle = lab.create(script, parallelism=3)
    result = handle.wait()
    assert (result.status, result.exit_code) == (State.FAILED, 7)
    assert "rank 1" in result.reason
    assert handle.status().counts == {"running": 0, "succeeded": 2, "failed": 1}
    handle.delete()
    assert lab.output() == {"0": "done\n", "2": "done\n"}


def test_ranks_that_end_do_not_disturb_those_that_go_on(lab: Lab) -> None:
    script = """
    for round in $(seq $((SOJOURN_RANK * 40))); do /bin/true || exit 9; done
    """
    handle = lab.create(script, parallelism=6)
    handle.wait()
    reasons = [rank.reason for rank in handle.status().ranks]
    handle.delete()
    assert reasons == [""] * 6


def test_the_log_outlives_the_machine_and_keeps_every_byte(lab: Lab) -> None:
    script = r"""
    printf 'no newline yet'; sleep 0.4; printf ' and now\n'
    printf 'binary \xff\xfe junk\n'
    echo error >&2
    printf 'carriage 1\rcarriage 2\n'
    printf 'no end'
    """
    handle = lab.create(script)
    handle.wait()
    text = "".join(line.text + ("" if line.partial else "\n") for line in handle.logs())
    assert text == (
        "no newline yet and now\nbinary \ufffd\ufffd junk\nerror\ncarriage 1\rcarriage 2\nno end"
    )
    assert all(line.time.endswith("Z") and line.time > "2020" for line in handle.logs())
    handle.delete()


def test_logs_of_several_ranks_can_be_told_apart(lab: Lab) -> None:
    handle = lab.create("echo hello from $SOJOURN_RANK", parallelism=2)
    handle.wait()
    assert sorted(log_of(handle)) == ["hello from 0", "hello from 1"]
    assert log_of(handle, rank=1) == ["hello from 1"]
    assert log_of(handle, attempt=2) == []
    assert log_of(handle, rank=1, tail=1) == ["hello from 1"]
    assert len(log_of(handle, tail=1)) == 1
    assert len(log_of(handle, tail=5)) == 2
    assert {line.id for line in handle.logs()} == {handle.id}
    handle.delete()


def test_the_end_of_a_log(lab: Lab, tmp_path: Path) -> None:
    before = datetime.now(timezone.utc) - timedelta(hours=1)
    script = "seq 1000; until test -f /dev/shm/$GO; do sleep 0.05; done; echo late"
    go = f"sojourn-{tmp_path.name}-{id(lab)}"
    handle = lab.create(script, environment={"GO": go})
    until(lambda: log_of(handle)[-1:] == ["1000"])  # so it has another time than what comes late
    lab.kit.appear(go)
    handle.wait()
    assert [line.text for line in handle.logs(follow=True, tail=2)] == ["1000", "late"]
    assert log_of(handle, tail=3) == ["999", "1000", "late"]
    lines = list(handle.logs())
    late = datetime.fromisoformat(lines[-1].time.replace("Z", "+00:00"))
    assert [line.text for line in handle.logs(since=late)] == ["late"]
    assert list(handle.logs(since=before)) == lines
    with pytest.raises(InvalidInput, match="tail: must be at least 0, got -1"):
        list(handle.logs(tail=-1))
    assert list(handle.logs(since=late + timedelta(seconds=1))) == []
    assert [line.text for line in handle.logs(since=before, tail=1)] == ["late"]
    handle.delete()


def test_any_shell_knows_when_a_task_was_created(lab: Lab) -> None:
    handle = lab.create("sleep 300")
    created = handle.created()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created)
    handle.stop()
    handle.start()
    assert sojourn.get(handle.id).created() == created
    handle.delete()
    assert handle.created() == ""


def test_an_output_that_the_script_made_a_symlink_comes_home(lab: Lab) -> None:
    script = """
    mkdir -p runs/6 runs/7
    ln -sfn runs/7 output
    echo precious > output/file
    echo former > runs/6/file
    """
    assert lab.run(script).exit_code == 0
    assert lab.output() == {"file": "precious\n"}
    assert [path.name for path in lab.workdir.iterdir()] == ["output"]


def test_unusual_file_names_come_home(lab: Lab) -> None:
    script = r"""
    mkdir -p "output/with space/$(printf 'new\nline')" output/empty
    echo 1 > "output/with space/$(printf 'new\nline')/-dash"
    echo 2 > output/ünï
    chmod 750 output/ünï
    ln -s ünï output/link
    """
    assert lab.run(script).exit_code == 0
    output = lab.workdir / "output"
    assert (output / "with space/new\nline/-dash").read_text() == "1\n"
    assert (output / "ünï").stat().st_mode & 0o777 == 0o750
    assert (output / "link").is_symlink()
    assert (output / "empty").is_dir()
