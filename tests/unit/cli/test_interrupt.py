"""Ctrl-C, closed windows, and what is left of a task after them: nothing, or all of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from tests.support.waiting import patience, until
from tests.unit.cli.shell import Shell

_STEADY = "echo started; i=0; while [ ! -e enough ]; do sleep 0.05; done; echo finished"

_SLOW_TO_END = "trap 'sleep 2; exit' TERM; echo started; while :; do sleep 0.05; done"


def _finish(shell: Shell) -> None:
    (workdir,) = (shell.home / "cache").glob("sojourn/machines/*/*/workdir")
    (workdir / "enough").touch()


def test_while_creating(shell: Shell) -> None:
    shell.large_file("large", 300)
    run = shell.background("run", "--workdir", ".", "--", "true")
    assert run.stderr
    while "Uploading" not in run.stderr.readline():
        pass
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "Cancelled; nothing was left behind" in err
    assert shell.tasks() == []


def test_while_following(shell: Shell) -> None:
    terminal = shell.terminal("run", "--", "bash", "-c", _STEADY)
    terminal.until("started")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    (task,) = shell.tasks()
    name = shell.name(task)
    assert f"Detaching from {name}, which keeps running." in terminal.shown
    assert f"Run `sojourn attach {name}` to reattach" in terminal.shown
    assert f"Run `sojourn pull {name}` to download" in terminal.shown
    assert f"Run `sojourn delete {name}` to stop it" in terminal.shown
    assert shell.state(task) == "running"
    _finish(shell)
    back = shell("logs", "--follow", task)
    assert (back.returncode, back.stdout) == (0, "started\nfinished\n")


def test_twice(shell: Shell) -> None:
    script = "trap 'echo saved > file; exit' TERM; echo started; while :; do sleep 0.05; done"
    shell.file("old", "")
    terminal = shell.terminal("run", "--workdir", ".", "--output", ".", "--", "bash", "-c", script)
    terminal.until("started")
    terminal.press_ctrl_c()
    terminal.until("Press Ctrl-C again")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    (task,) = shell.tasks()
    assert "Stopped; its work so far is saved" in terminal.shown
    assert f"sojourn start {shell.name(task)}" in terminal.shown
    assert shell.state(task) == "stopped"
    assert shell.ok("pull", task) == "file\n"
    assert (shell.cwd / "file").read_text() == "saved\n"


def test_while_following_an_old_task(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    logs = shell.background("logs", "--follow", task)
    assert logs.stdout
    assert logs.stdout.readline() == "started\n"
    for _ in range(2):  # as somebody does who is used to pressing it twice
        logs.send_signal(signal.SIGINT)
    _, err = logs.communicate(timeout=30)
    assert logs.returncode == 130
    assert err.splitlines()[-1] == (
        "Stopped following; the task keeps running. "
        f"Run `sojourn stop {shell.name(task)}` to stop it."
    )
    assert "Detach" not in err
    assert shell.state(task) == "running"


def test_terminated_while_following(shell: Shell) -> None:
    run = shell.background("run", "--", "bash", "-c", _STEADY)
    assert run.stdout
    assert run.stdout.readline() == "started\n"
    begin = time.monotonic()
    run.terminate()
    _, err = run.communicate(timeout=30)
    assert time.monotonic() - begin < patience(2.5)
    assert run.returncode == 130
    assert "Detached; the task keeps running\n" in err
    assert "Ctrl-C" not in err
    (task,) = shell.tasks()
    assert shell.state(task) == "running"


def test_with_json(shell: Shell) -> None:
    task = shell.detached(_STEADY)
    logs = shell.background("logs", "--json", "--follow", task)
    assert logs.stdout
    while '"log-line"' not in logs.stdout.readline():
        pass
    logs.send_signal(signal.SIGINT)
    out, err = logs.communicate(timeout=30)
    assert (logs.returncode, err) == (130, "")
    assert '"Cancelled"' in out.splitlines()[-1]


def test_while_deleting(shell: Shell) -> None:
    task = shell.detached(_SLOW_TO_END)
    until(lambda: shell("logs", task).stdout == "started\n")
    delete = shell.background("delete", task)
    assert delete.stderr
    while "Stopping" not in delete.stderr.readline():
        pass
    time.sleep(0.3)
    delete.send_signal(signal.SIGINT)
    _, err = delete.communicate(timeout=30)
    assert delete.returncode == 130
    assert f"Run `sojourn delete {task}` to remove what is left." in err
    assert shell.tasks() == [task]
    shell.ok("delete", task)
    assert shell.tasks() == []


def test_a_step_is_on_the_terminal_while_it_works(shell: Shell) -> None:
    task = shell.detached(_SLOW_TO_END)
    until(lambda: shell("logs", task).stdout == "started\n")
    terminal = shell.terminal("stop", task)
    terminal.until("Stopping machines ...")
    assert "Stopping machines: " not in terminal.shown
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    assert "Stopping machines: \x1b[33mcancelled\x1b[0m in " in terminal.shown


def test_again_and_again_ends_at_once(shell: Shell) -> None:
    task = shell.detached(_SLOW_TO_END)
    until(lambda: shell("logs", task).stdout == "started\n")
    stop = shell.background("stop", task)
    assert stop.stderr
    stop.stderr.readline()
    for _ in range(3):
        time.sleep(0.1)
        if stop.poll() is None:
            stop.send_signal(signal.SIGINT)
    _, err = stop.communicate(timeout=10)
    assert stop.returncode == 130
    assert "Traceback" not in err


def test_the_window_is_closed(shell: Shell) -> None:
    terminal = shell.terminal("run", "--", "bash", "-c", _STEADY)
    terminal.until("started")
    terminal.hang_up()
    assert terminal.wait() == -signal.SIGHUP
    (task,) = shell.tasks()
    assert shell.state(task) == "running"
    _finish(shell)
    until(lambda: shell.state(task) == "succeeded")


def test_the_command_is_killed(shell: Shell) -> None:
    run = shell.background("run", "--", "bash", "-c", _STEADY)
    assert run.stdout
    assert run.stdout.readline() == "started\n"
    run.kill()
    run.communicate()
    (task,) = shell.tasks()
    assert shell.state(task) == "running"
    _finish(shell)
    assert shell("logs", "--follow", task).returncode == 0


_LATE = """
import os, signal, sys

class Last:
    def __del__(self):  # modules are taken apart after everything else
        os.kill(os.getpid(), signal.SIGINT)

import sojourn.cli
sojourn.cli.last = Last()
sys.argv = ["sojourn", "--version"]
sojourn.cli.main()
"""


def test_while_python_ends(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LATE],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
