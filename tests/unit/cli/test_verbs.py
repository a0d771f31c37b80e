"""The verbs on tasks that exist, and `sojourn doctor`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sojourn import clouds
from tests.support.waiting import until
from tests.unit.cli.shell import Shell, stubs

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def test_no_tasks(shell: Shell) -> None:
    result = shell("list")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "No tasks found. Run `sojourn run --help` to start one.\n"
    assert shell.rows("list") == []


def test_shortened_ids(shell: Shell) -> None:
    first, second = (shell.detached("true", "--name", name) for name in ("data-one", "data-two"))
    assert shell.ok("status", "data-o").startswith(first)
    assert shell.ok("status", "tpi-data-t").startswith(second)
    assert shell.ok("status", second).startswith(second)
    salt = second.split("-")[-2]
    assert shell.ok("status", salt).startswith(second)
    result = shell("status", "data")
    assert result.returncode == 2
    assert result.stderr == (
        f"Error: id: 'data' matches multiple tasks: {first}, {second}; use more of the ID\n"
    )
    assert shell("delete", "data").returncode == 2
    assert shell.tasks() == [first, second]


@pytest.mark.parametrize("name", [("a", "a-b"), ("a", "ab")])
def test_a_whole_id_is_never_ambiguous(shell: Shell, name: tuple[str, str]) -> None:
    tasks = [shell.detached("true", "--name", each) for each in name]
    for task in tasks:
        assert shell.ok("status", task).startswith(task)


def test_the_whole_name_wins(shell: Shell) -> None:
    short = shell.detached("true", "--name", "data")
    shell.detached("true", "--name", "data-two")
    assert shell.ok("status", "data").startswith(short)


def test_list_and_status(shell: Shell) -> None:
    task = shell.detached("exit 3")
    until(lambda: shell.state(task) == "failed")
    header, row = shell.ok("list").splitlines()
    assert header.split() == [
        *("ID", "STATE", "AGE", "RAN", "CLOUD", "MACHINE", "COMMAND", "REASON")
    ]
    shown, state, age, ran, rest = row.split(maxsplit=4)
    assert (shown, state) == (shell.name(task), "failed")
    assert re.fullmatch(r"\d+s", age)
    assert re.fullmatch(r"\d+s", ran)
    about = r"local  m +bash -c 'exit 3'  the script ended with exit code 3"
    assert re.fullmatch(about, rest)
    assert shell.ok("list", "--verbose").splitlines()[1].startswith(f"{task}  failed")
    assert shell.ok("list", "-q") == f"{task}\n"
    text = shell.ok("status", task)
    assert text.startswith(f"{task}  failed\n  the script ended with exit code 3\n")
    assert re.search(
        r"^  cloud local, machine type m, created \d+s ago, ran \d+s$", text, re.MULTILINE
    )
    assert "Machine started" in text
    assert "Machine finished its work" in text


def test_status_of_several_ranks(shell: Shell) -> None:
    task = shell.detached("exit $SOJOURN_RANK", "--parallelism", "2")
    until(lambda: shell.state(task) == "failed")
    text = shell.ok("status", task)
    assert "  rank 1: the script ended with exit code 1\n" in text
    assert re.search(r"^  rank 0  succeeded  attempt 1$", text, re.MULTILINE)
    assert re.search(r"^  rank 1  failed     attempt 1  the script ended", text, re.MULTILINE)
    assert shell("logs", "--follow", task).returncode == 1


def test_logs(shell: Shell) -> None:
    script = (
        "echo rank $SOJOURN_RANK attempt $SOJOURN_ATTEMPT; [ $SOJOURN_ATTEMPT = 2 ] || sleep 60"
    )
    task = shell.detached(script, "--parallelism", "2")
    until(lambda: len(shell("logs", task).stdout.splitlines()) == 2)
    assert len(shell.ok("interrupt", task).splitlines()) == 2
    until(lambda: shell.state(task) == "succeeded")
    assert sorted(shell.ok("logs", task).splitlines()) == [
        f"[{rank}] rank {rank} attempt {attempt}" for rank in (0, 1) for attempt in (1, 2)
    ]
    assert shell.ok("logs", task, "--rank", "1") == "rank 1 attempt 1\nrank 1 attempt 2\n"
    assert shell.ok("logs", task, "--rank", "1", "--attempt", "2") == "rank 1 attempt 2\n"
    stamped = shell.ok("logs", task, "--rank", "0", "--attempt", "1", "--timestamps")
    assert re.fullmatch(rf"{_TIME} rank 0 attempt 1\n", stamped)
    for line in shell.ok("logs", task, "-t", "--attempt", "2").splitlines():
        assert re.fullmatch(rf"{_TIME} \[\d\] rank \d attempt 2", line)
    refused = shell("logs", task, "--rank", "2")
    assert refused.returncode == 2
    assert "rank: must be between 0 and 1, got 2" in refused.stderr
    for options in (["--attempt", "3"], ["--attempt", "0"], ["--follow", "--attempt", "9"]):
        refused = shell("logs", task, *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == f"Error: attempt: must be between 1 and 2, got {options[-1]}\n"
    followed = shell("logs", "--follow", task)
    assert (followed.returncode, len(followed.stdout.splitlines())) == (0, 4)


def test_read(shell: Shell) -> None:
    task = shell.detached("echo hello; exit 3")
    until(lambda: shell.state(task) == "failed")
    result = shell("read", task)
    assert result.returncode == 0
    assert result.stdout.startswith(f"hello\n{task}  failed\n")
    result = shell("read", "--follow", task)
    assert (result.returncode, result.stdout) == (3, "hello\n")


def test_stop_and_start(shell: Shell) -> None:
    shell.file("old", "")
    task = shell.detached(
        "echo go; [ -e half ] && exit; touch half; sleep 60", "--workdir", ".", "--output", "."
    )
    until(lambda: shell("logs", task).stdout == "go\n")
    for _ in range(2):
        result = shell("stop", task)
        assert result.returncode == 0
        assert "Task stopped: run `sojourn start` to resume it\n" in result.stderr
    for verb in (("status", task), ("list",)):
        [row] = shell.rows(*verb)
        assert row["seconds"] is not None, verb
    assert re.search(r", ran \d+s\n", shell.ok("status", task))
    for _ in range(2):
        shell.ok("start", task)
    assert shell.ok("logs", "--follow", task) == "go\ngo\n"
    assert shell.ok("delete", task) == f"Deleted {task}\n"
    assert (shell.cwd / "half").exists()
    assert shell("delete", task).returncode == 1


def test_interrupt(shell: Shell) -> None:
    task = shell.detached("echo go; [ $SOJOURN_ATTEMPT = 2 ] || sleep 60")
    until(lambda: shell("logs", task).stdout == "go\n")
    assert shell("interrupt", task, "--rank", "1").returncode == 2
    assert shell.ok("interrupt", task, "--no-notice").strip()
    follow = shell("logs", "--follow", task)
    assert (follow.returncode, follow.stdout) == (0, "go\ngo\n")
    gone = shell("interrupt", task)
    assert gone.returncode == 1
    assert "No machine is running the script" in gone.stderr
    assert f"sojourn status {task}" in gone.stderr


def test_a_respawn_is_told(shell: Shell) -> None:
    follow = shell.background(
        "run", "--", "sh", "-c", "echo go; [ $SOJOURN_ATTEMPT = 2 ] || sleep 9"
    )
    assert follow.stdout
    assert follow.stdout.readline() == "go\n"
    shell.ok("interrupt", *shell.tasks())
    out, err = follow.communicate(timeout=30)
    assert (follow.returncode, out) == (0, "go\n")
    assert err.count("Rank 0 resumed on a new machine (attempt 2)") == 1
    assert "attempt 1" not in err


def test_a_terminal_says_once_that_a_task_is_deleted(shell: Shell) -> None:
    task = shell.detached("sleep 60")
    terminal = shell.terminal("delete", "--no-pull", task)
    assert terminal.wait() == 0
    assert terminal.shown.count("Deleted") == 1
    assert f"Deleted {task}" not in terminal.shown


def test_delete_several_and_into(shell: Shell) -> None:
    tasks = [shell.detached(f"echo {n} > new", "--workdir", ".", "--output", ".") for n in (1, 2)]
    for task in tasks:
        until(lambda task=task: shell.state(task) == "succeeded")  # type: ignore[misc]
    assert shell.ok("pull", tasks[0], "--into", "here") == "new\n"
    assert (shell.cwd / "here" / "new").read_text() == "1\n"
    shell.ok("delete", "--into", "there", *tasks)
    assert (shell.cwd / "there" / "new").exists()
    assert not (shell.cwd / "new").exists()
    assert shell.tasks() == []


def test_results_that_cannot_come_home_are_not_removed(shell: Shell) -> None:
    home = shell.cwd / "gone"
    shell.file("gone/old", "")
    task = shell.detached("echo x > new", "--workdir", "gone", "--output", ".")
    until(lambda: shell.state(task) == "succeeded")
    (home / "old").unlink()
    home.rmdir()
    refused = shell("delete", task)
    assert refused.returncode == 2
    assert "but this folder does not exist on this computer" in refused.stderr
    assert f"Nothing was removed. Run `sojourn delete --force {task}`" in refused.stderr
    assert shell.tasks() == [task]
    assert shell("gc", "--yes").returncode == 1
    forced = shell("delete", "--force", task)
    assert forced.returncode == 0
    assert "Warning: Could not download the results: " in forced.stderr


def test_gc(shell: Shell) -> None:
    running = shell.detached("sleep 60", "--name", "running")
    ended = shell.detached("true", "--name", "ended")
    until(lambda: shell.state(ended) == "succeeded")
    result = shell("gc")
    assert result.stdout == "ended  ended: succeeded\n"
    assert shell("gc", "--verbose").stdout == f"{ended}  ended: succeeded\n"
    assert result.stderr == "Run `sojourn gc --yes` to delete them.\n"
    assert shell.ok("gc", "--yes") == "Deleted ended  ended: succeeded\n"
    assert shell.tasks() == [running]
    assert "Nothing to delete." in shell("gc").stderr


def test_gc_beside_gc_and_delete(shell: Shell) -> None:
    """What another command deletes first is deleted."""
    tasks = [shell.detached("true", "--name", f"ended{number}") for number in range(4)]
    for task in tasks:
        until(lambda task=task: shell.state(task) == "succeeded")  # type: ignore[misc]
    commands = [("gc", "--yes"), ("delete", *reversed(tasks)), ("gc", "--yes")]
    with ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(lambda words: shell(*words), commands))
    said = "".join(each.stdout + each.stderr for each in ended)
    assert "Kept" not in said
    assert "--force" not in said
    assert (ended[0].returncode, ended[2].returncode) == (0, 0), said
    assert shell.tasks() == []


def _become_another_computer(shell: Shell) -> None:
    """One that remembers nothing, and whose folders have the same names."""
    state = Path(shell.environment["XDG_STATE_HOME"])
    assert (state / "sojourn/tasks").is_dir()
    shutil.rmtree(state)


def test_gc_and_delete_all_leave_results_of_other_computers_alone(shell: Shell) -> None:
    shell.file("old", "")
    task = shell.detached("echo task > new", "--workdir", ".", "--output", ".")
    until(lambda: shell.state(task) == "succeeded")
    _become_another_computer(shell)
    left = shell("gc", "--yes")
    assert left.returncode == 0
    assert left.stdout.startswith(f"Left {shell.name(task)}  ended: succeeded  (created by ")
    assert f"Run `sojourn gc --yes {shell.name(task)}` to delete one." in left.stderr
    for refused in (shell("gc", "--yes", task), shell("delete", "--all", "--yes")):
        assert refused.returncode != 0
        said = refused.stdout + refused.stderr
        assert "workdir: on another computer, which created the task" in said
    assert not (shell.cwd / "new").exists()
    shell.ok("delete", task, "--into", "here")
    assert (shell.cwd / "here" / "new").exists()


def test_gc_takes_named_tasks_only_if_they_have_ended(shell: Shell) -> None:
    running = shell.detached("sleep 60", "--name", "running")
    refused = shell("gc", "--yes", running)
    assert refused.returncode == 2
    assert f"{running} is in use" in refused.stderr
    ended = shell.detached("true", "--name", "ended")
    until(lambda: shell.state(ended) == "succeeded")
    _become_another_computer(shell)
    assert shell.ok("gc", "--yes", "ended") == "Deleted ended  ended: succeeded\n"


def test_gc_brings_no_results_into_a_folder_that_nobody_named(shell: Shell) -> None:
    task = shell.detached("echo task > notes", "--output", ".")
    nothing = shell.detached("exit 1", "--output", "results", "--name", "nothing")
    until(lambda: shell.state(task) == "succeeded")
    until(lambda: shell.state(nothing) == "failed")
    shell.file("notes", "of the user\n")
    os.utime(shell.cwd / "notes", (1, 1))
    assert f"{shell.name(task)}  ended: succeeded\n" in shell.ok("gc")
    for _ in range(2):
        kept = shell("gc", "--yes")
        assert kept.returncode == 1
        assert f"Kept {shell.name(task)}  ended: succeeded: workdir: not set" in kept.stdout
        assert f"sojourn delete {shell.name(task)} --into FOLDER` to choose one\n" in kept.stdout
    assert shell.tasks() == [task]
    assert (shell.cwd / "notes").read_text() == "of the user\n"
    shell.ok("delete", task, "--into", "folder")
    assert (shell.cwd / "folder" / "notes").read_text() == "task\n"


def test_doctor(shell: Shell) -> None:
    result = shell("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    subjects = {line.split()[1] for line in result.stdout.splitlines()}
    assert {"sojourn", "python", "click", "obstore", "store", *clouds.KINDS} < subjects
    assert "conditional writes work" in result.stdout
    assert list(shell.home.iterdir()) == []


def test_doctor_finds_credentials(shell: Shell) -> None:
    shell.environment["AWS_ROLE_ARN"] = "secret-name"
    shown = shell.ok("doctor")
    assert re.search(r"note +aws +credentials found: AWS_ROLE_ARN", shown)
    assert "secret-name" not in shown


def test_doctor_names_a_profile_that_there_is_not(shell: Shell) -> None:
    shell.environment["AWS_PROFILE"] = "nobody"
    shown = shell.ok("doctor")
    assert re.search(r"note +aws +credentials found: AWS_PROFILE", shown)
    assert re.search(r"note +aws identity +.*nobody", shown)


def test_doctor_tells_of_the_terraform_provider(shell: Shell) -> None:
    assert re.search(
        r"note +provider +.* not installed; run `sojourn terraform install`", shell.ok("doctor")
    )
    stubs(shell)
    shell.ok("terraform", "install")
    assert re.search(rf"ok +provider +.*, with {re.escape(sys.executable)}", shell.ok("doctor"))
    record = shell.home / ".terraform.d/sojourn/python"
    python = shell.file("python", "#!/bin/sh\necho No module named grpc >&2; exit 1\n")
    python.chmod(0o755)
    record.write_text(f"{python}\n")
    assert re.search(r"note +provider +.* cannot run it: No module named grpc", shell.ok("doctor"))
    python.unlink()
    assert re.search(r"note +provider +its Python .* no longer exists", shell.ok("doctor"))
    shell.ok("terraform", "uninstall")


@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "XDG_CACHE_HOME"])
def test_doctor_finds_a_folder_that_cannot_be_used(shell: Shell, variable: str) -> None:
    blocked = shell.file("blocked", "")
    shell.environment[variable] = str(blocked)
    result = shell("doctor")
    assert result.returncode == 1
    assert re.search(rf"^problem  local \w+ +{blocked} is not a folder", result.stdout, re.M)
    shell.environment[variable] = "/proc"
    result = shell("doctor")
    assert result.returncode == 1
    assert re.search(r"^problem  local \w+ +/proc is not writable", result.stdout, re.M)
