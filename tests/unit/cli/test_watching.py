"""Looking at tasks: parts of logs, the last task of a folder, attaching, and other commands."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.unit.cli.shell import Shell

_STEADY = "echo started; while [ ! -e enough ]; do sleep 0.05; done; echo finished"


def _finish(shell: Shell) -> None:
    (workdir,) = (shell.home / "cache").glob("sojourn/machines/*/*/workdir")
    (workdir / "enough").touch()


def test_the_end_of_a_log(shell: Shell) -> None:
    task = shell.detached("seq 100; sleep 1; echo end")
    until(lambda: shell.state(task) == "succeeded")
    assert shell.ok("logs", task, "--tail", "3") == "99\n100\nend\n"
    assert shell.ok("logs", task, "--tail", "0") == ""
    rows = shell.rows("logs", task)
    last = rows[-1]["time"]
    assert shell.ok("logs", task, "--since", last) == "end\n"
    assert shell.ok("logs", task, "--since", "2h") == shell.ok("logs", task)
    assert shell.ok("logs", task, "--since", "2099-01-01T00:00:00Z") == ""
    assert shell.ok("logs", task, "--tail", "2", "--since", last) == "end\n"
    followed = shell("logs", "--follow", task, "--tail", "2")
    assert (followed.returncode, followed.stdout) == (0, "100\nend\n")
    refused = shell("logs", task, "--since", "yesterday")
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: since: must be a duration such as 10m or 1h30m")
    assert shell("logs", task, "--tail", "-1").returncode == 2


def test_following_goes_on_after_the_tail(shell: Shell) -> None:
    task = shell.detached(f"seq 50; {_STEADY}")
    until(lambda: shell("logs", task).stdout.endswith("started\n"))
    logs = shell.background("logs", "--follow", "--tail", "1", task)
    assert logs.stdout
    assert logs.stdout.readline() == "started\n"
    _finish(shell)
    out, _ = logs.communicate(timeout=30)
    assert (logs.returncode, out) == (0, "finished\n")


def test_attempts_are_marked(shell: Shell) -> None:
    script = "echo go $SOJOURN_ATTEMPT; [ $SOJOURN_ATTEMPT = 2 ] || sleep 60"
    task = shell.detached(script)
    until(lambda: shell("logs", task).stdout == "go 1\n")
    shell.ok("interrupt", task)
    until(lambda: shell.state(task) == "succeeded")
    result = shell("logs", task)
    assert (result.stdout, result.stderr) == ("go 1\ngo 2\n", "--- attempt 2 ---\n")
    one = shell("logs", task, "--attempt", "2")
    assert (one.stdout, one.stderr) == ("go 2\n", "")
    assert [row["attempt"] for row in shell.rows("logs", task)] == [1, 2]
    terminal = shell.terminal("logs", task)
    assert terminal.wait() == 0
    assert terminal.shown == "go 1\n\x1b[2m--- attempt 2 ---\x1b[0m\ngo 2\n"


def test_attempts_of_several_ranks_are_marked(shell: Shell) -> None:
    script = "echo go; [ $SOJOURN_ATTEMPT = 2 ] || sleep 60"
    task = shell.detached(script, "--parallelism", "2")
    until(lambda: len(shell("logs", task).stdout.splitlines()) == 2)
    shell.ok("interrupt", task)
    until(lambda: shell.state(task) == "succeeded")
    marks = sorted(shell("logs", task).stderr.splitlines())
    assert marks == ["--- rank 0, attempt 2 ---", "--- rank 1, attempt 2 ---"]


def test_status_tells_which_machine_has_which_rank(shell: Shell) -> None:
    task = shell.detached("sleep 60", "--parallelism", "2")

    def machines() -> list[str]:
        return re.findall(r"^  machine \S+ +(rank \d)", shell.ok("status", task), re.MULTILINE)

    until(lambda: sorted(machines()) == ["rank 0", "rank 1"])


def test_the_last_task_of_this_folder(shell: Shell) -> None:
    shell.detached("echo first")
    task = shell.detached(_STEADY)
    until(lambda: shell("logs").stdout == "started\n")
    told = f"Using {shell.name(task)}, the last task created in this folder\n"
    assert shell("logs").stderr == told
    status = shell("status")
    assert status.stdout.startswith(f"{task}  running\n")
    assert status.stderr == told
    [row], said = shell.rows_and_notes("status")
    assert (row["id"], said) == (task, told)
    assert shell("pull").stderr.startswith(told)
    assert shell("stop").stderr.startswith(told)
    assert shell.state(task) == "stopped"
    assert shell("start").stderr.startswith(told)
    assert shell.state(task) != "stopped"
    until(lambda: shell.state(task) == "running")
    assert shell("interrupt").stderr.startswith(told)
    assert shell("read").stdout.startswith("started\n")
    other = shell.cwd / "other"
    other.mkdir()
    shell.cwd = other
    for verb in ("status", "logs", "pull", "stop", "start", "interrupt", "read", "attach"):
        elsewhere = shell(verb)
        assert (elsewhere.returncode, elsewhere.stdout) == (1, "")
        assert elsewhere.stderr.startswith(f"Error: No task was created in {other}\n")
    assert shell("status", "").returncode == 2  # a variable that is empty by mistake


def test_the_last_task_of_this_folder_is_gone(shell: Shell, tmp_path: Path) -> None:
    task = shell.detached("true")
    elsewhere = shell.environment | {"XDG_STATE_HOME": str(tmp_path / "elsewhere")}
    here, shell.environment = shell.environment, elsewhere
    shell.ok("delete", task)  # by another computer, so to speak
    shell.environment = here
    for verb in ("status", "logs", "pull", "stop"):
        result = shell(verb)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == (
            f"Error: Task {task}, the last one created in this folder, no longer exists\n"
            "Run `sojourn list` to see all tasks.\n"
        )
    (shell.home / f"state/sojourn/tasks/{task}/origin.json").unlink()


def _saved(shell: Shell, name: str, text: str) -> Path:
    path = shell.home / "state/sojourn/logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_log_of_a_task_that_was_deleted(shell: Shell) -> None:
    task = "tpi-cc-1bvgxcyb-ylhzsit6"
    path = _saved(shell, task, "[0] one\n[1] \x1b[31mtwo\x1b[0m\n[0] three\n")
    _saved(shell, "junk", "").rename(path.with_name("junk.log"))
    for id in (task, "cc"):  # noqa: A001
        result = shell("logs", id)
        assert (result.returncode, result.stdout) == (0, path.read_text())
        note = f"Task cc was deleted; this is its log, saved in ~/{path.relative_to(shell.home)}\n"
        assert result.stderr == note
    assert shell.ok("logs", "cc", "--tail", "1") == "[0] three\n"
    with path.open("a") as log:
        log.write("x" * (3 << 20))
    end = shell.ok("logs", "cc", "--tail", "1")
    assert end.startswith("[truncated: only the last 1 MiB of this line] xxx")
    assert len(end) < 1_100_000
    _saved(shell, task, "[0] one\n[1] \x1b[31mtwo\x1b[0m\n[0] three\n")
    follow = shell("logs", "cc", "--follow")
    assert (follow.returncode, follow.stdout) == (1, path.read_text())
    lines, told = shell.rows_and_notes("logs", "cc")
    assert told == f"Task {task} was deleted; this is its log, saved in {path}\n"  # whole
    whole = shell("logs", "cc", "--verbose").stderr
    assert whole == told
    assert {row["type"] for row in lines} == {"log-line"}
    assert [row["text"] for row in lines] == path.read_text().splitlines()
    assert {(row["id"], row["attempt"], row["time"]) for row in lines} == {(task, 0, "")}
    refused = shell("logs", "cc", "--rank", "0", "--since", "5m")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "rank: not available: the task was deleted" in refused.stderr
    assert "since: not available: the task was deleted" in refused.stderr
    assert shell("logs", "dd").returncode == 1
    assert shell("status", "cc").returncode == 1
    for saved in path.parent.iterdir():
        saved.unlink()


def test_a_task_of_the_same_name_wins_over_a_saved_log(shell: Shell) -> None:
    task = shell.detached("echo new", "--name", "again")
    path = _saved(shell, task, "old\n")
    until(lambda: shell("logs", "again").stdout == "new\n")
    path.unlink()


def test_attach_ends_as_run_does(shell: Shell) -> None:
    shell.file("results/old", "")
    options = ("--workdir", ".", "--output", "results")
    task = shell.detached(f"{_STEADY}; echo x > results/new; exit 3", *options)
    until(lambda: shell("logs", task).stdout == "started\n")
    attach = shell.background("attach")
    assert attach.stdout
    assert attach.stdout.readline() == "started\n"
    _finish(shell)
    out, err = attach.communicate(timeout=60)
    assert (attach.returncode, out) == (3, "finished\n")
    assert err.startswith(f"Using {shell.name(task)}, the last task created in this folder\n")
    assert (shell.cwd / "results/new").read_text() == "x\n"
    assert shell.tasks() == []


def test_attach_can_keep_the_task(shell: Shell) -> None:
    task = shell.detached("echo hello")
    assert shell.ok("attach", "--keep", task) == "hello\n"
    assert shell.tasks() == [task]
    types = {row["type"] for row in shell.rows("attach", task)}
    assert {"log-line", "status-changed"} <= types
    assert shell.tasks() == []


def test_ctrl_c_while_attached_asks(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    terminal = shell.terminal("attach", task)
    terminal.until("started")
    terminal.press_ctrl_c()
    terminal.until("Press Ctrl-C again within 3 seconds to stop it.")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    assert "Stopped; its work so far is saved" in terminal.shown
    assert shell.state(task) == "stopped"


def test_ctrl_c_twice_while_looking_stops_nothing(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    terminal = shell.terminal("read", "--follow", task)
    terminal.until("started")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    assert "Press Ctrl-C" not in terminal.shown
    back = f"Run `sojourn stop {shell.name(task)}` to stop it.\n"
    last = f"Stopped following; the task keeps running. {back}"
    assert terminal.shown.endswith(last)
    assert shell.state(task) == "running"


@pytest.mark.parametrize("verb", ["run", "attach", "logs"])
def test_a_task_that_another_command_deletes(shell: Shell, verb: str) -> None:
    if verb == "run":
        watching = shell.background("run", "--name", "x", "--", "bash", "-c", _STEADY)
    else:
        shell.detached(_STEADY, "--name", "x")
        options = ["--follow"] if verb == "logs" else []
        watching = shell.background(verb, *options, "x")
    assert watching.stdout
    assert watching.stdout.readline() == "started\n"
    (task,) = shell.tasks()
    shell.ok("delete", task)
    out, err = watching.communicate(timeout=30)
    assert (watching.returncode, out) == (1, "")
    assert f"Error: Task {task} was deleted by another command\n" in err
    assert "Resume it" not in err


def test_a_task_that_another_command_stops_is_not_said_to_be_deleted(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    watching = shell.background("logs", "--follow", task)
    assert watching.stdout
    assert watching.stdout.readline() == "started\n"
    shell.ok("stop", task)
    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 130
    assert "Task stopped: " in err
    assert "deleted" not in err


def test_aliases(shell: Shell) -> None:
    task = shell.detached("true")
    assert shell.name(task) in shell.ok("ls")
    assert shell.ok("ps", "--quiet") == f"{task}\n"
    assert shell.ok("rm", task) == f"Deleted {task}\n"
    assert shell.ok("ls", "-q") == ""
    shown = shell.ok("--help")
    assert "(aliases: ls, ps)" in shown
    assert "(alias: rm)" in shown


def test_a_task_of_another_computer_is_listed_without_its_age(shell: Shell) -> None:
    task = shell.detached("sleep 60")
    until(lambda: shell.state(task) == "running")  # it does not change between two looks
    shell.environment["XDG_STATE_HOME"] = str(shell.home / "elsewhere")
    _, row = shell.ok("list").splitlines()
    name, state, age, _, *others = row.split()
    assert [name, state, age, *others] == [shell.name(task), "running", "-", "local", "-", "-"]
    (data,) = shell.rows("list")
    assert (data["created"], data["machine"], data["command"]) == ("", "", "")
    known = shell.ok("status", task)
    assert re.search(r"machine type m, created \d+s ago, running for \d+s", known)
    assert "\n  bash -c 'sleep 60'\n" in known
    shell.environment["XDG_STATE_HOME"] = str(shell.home / "state")
    (data,) = shell.rows("list")
    assert re.fullmatch(r"20\d\d-.*Z", data["created"])
    assert data["machine"] == "m"


def test_terminated_while_looking(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    logs = shell.background("logs", "--follow", task)
    assert logs.stdout
    assert logs.stdout.readline() == "started\n"
    logs.send_signal(signal.SIGTERM)
    _, err = logs.communicate(timeout=30)
    assert logs.returncode == 130
    assert "Stopped following; the task keeps running" in err
    assert shell.state(task) == "running"


def test_a_task_that_was_deleted_is_still_known(shell: Shell) -> None:
    script = "mkdir out; echo 1 > out/a; exit 3"
    ran = shell(
        "run", "--workdir", ".", "--output", "out", "--name", "gone", "--", "sh", "-c", script
    )
    assert ran.returncode == 3
    task = next(path.stem for path in (shell.home / "state/sojourn/logs").glob("*.log"))
    for id in (("gone",), (task,), ()):  # noqa: A001
        [row], told = shell.rows_and_notes("status", *id)
        _check_deleted(row, task, shell)
        assert told == ""
        first, second = shell.ok("status", *id).splitlines()
        assert first == f"{task}  failed: the script ended with exit code 3"
        assert re.fullmatch(rf"  deleted \d+s ago, results in {shell.cwd}/out", second)
        for verb in ("attach", "pull"):
            result = shell(verb, *id)
            assert (result.returncode, result.stdout) == (1, "")
            assert "Error: Task gone was deleted" in result.stderr
            assert f"with exit code 3. Its results are in {shell.cwd}/out." in result.stderr
            assert "`sojourn logs gone`" in result.stderr
            assert task in shell(verb, "--verbose", *id).stderr


def _check_deleted(row: dict[str, object], task: str, shell: Shell) -> None:
    assert (row["type"], row["id"], row["state"]) == ("deleted-task", task, "failed")
    assert (row["exit_code"], row["results"]) == (3, f"{shell.cwd}/out")
    assert Path(str(row["log"])).is_file()


def test_the_status_of_a_task_is_one_document(shell: Shell) -> None:
    task = shell.detached("true")
    shell.environment["KUBECONFIG"] = str(shell.file("broken", "{"))  # a cloud that says so
    [row], _ = shell.rows_and_notes("status", task)
    assert row["id"] == task


def _ended(shell: Shell, script: str, state: str) -> str:
    task = shell.detached(script, "--name", "again", "--no-output")
    until(lambda: shell.state(task) == state)
    return task


def test_what_is_known_of_a_deleted_task_is_of_the_last_one_of_its_name(shell: Shell) -> None:
    _ended(shell, "echo one", "succeeded")
    shell.ok("delete", "again")
    assert shell.ok("logs", "again") == "one\n"
    _ended(shell, "echo two; exit 7", "failed")
    shell.ok("delete", "--force", "again")
    assert shell.ok("logs", "again") == "two\n"
    assert "failed: the script ended with exit code 7" in shell.ok("status", "again")


def test_a_new_task_takes_the_place_of_a_deleted_one_of_its_name(shell: Shell) -> None:
    _ended(shell, "echo one", "succeeded")
    shell.ok("delete", "again")
    task = shell.detached("sleep 60", "--name", "again")
    elsewhere = {**shell.environment, "XDG_STATE_HOME": str(shell.home / "elsewhere")}
    here, shell.environment = shell.environment, elsewhere
    shell.ok("delete", "--no-pull", task)  # by another computer, so to speak
    shutil.rmtree(shell.home / "elsewhere")
    shell.environment = here
    for verb in ("logs", "status"):
        result = shell(verb, "again")
        assert (result.returncode, result.stdout) == (1, ""), verb
        assert "Task again not found" in result.stderr
    (shell.home / f"state/sojourn/tasks/{task}/origin.json").unlink()


def test_a_task_that_was_deleted_by_force_is_still_known(shell: Shell) -> None:
    shell.file("gone/old", "")
    task = shell.detached("echo x > new; echo out", "--workdir", "gone", "--output", ".")
    until(lambda: shell.state(task) == "succeeded")
    shutil.rmtree(shell.cwd / "gone")
    shell.ok("delete", "--force", task)
    assert shell.ok("logs", task) == "out\n"
    [row] = shell.rows("status", task)
    assert (row["state"], row["results"]) == ("succeeded", "")  # they were not downloaded


def test_a_damaged_task_that_is_deleted_by_force_is_not_taken_for_a_former_one(
    shell: Shell,
) -> None:
    task = _ended(shell, "echo two", "succeeded")
    path = _saved(shell, task, "one\n")
    (document,) = (shell.home / "data").rglob("task.json")
    document.write_text("{")
    shell.ok("delete", "--force", task)
    assert not path.exists()
    assert shell("logs", task).returncode == 1


def test_a_task_that_its_deletion_stopped_is_not_to_be_resumed(shell: Shell) -> None:
    task = shell.detached("echo up; sleep 60", "--no-output")
    until(lambda: shell("logs", task).stdout == "up\n")
    shell.ok("delete", task)
    [row] = shell.rows("status", task)
    assert (row["state"], row["reason"]) == ("stopped", "its script had not ended")
    assert shell.ok("status", task).startswith(f"{task}  stopped: its script had not ended\n")
    for verb in (("attach",), ("pull",), ("start",), ("stop",), ("delete",), ("exec",)):
        result = shell(*verb, task, *(["--", "true"] if verb == ("exec",) else []))
        assert "resume" not in result.stderr, verb
        assert result.returncode == 1, (verb, result.stderr)


def test_a_machine_that_was_deleted_had_no_script_to_end(shell: Shell) -> None:
    shell.ok("machine", "create", "--name", "lab")
    shell.ok("machine", "delete", "lab")
    [row] = shell.rows("status", "lab")
    assert (row["state"], row["reason"]) == ("stopped", "")
