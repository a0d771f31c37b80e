"""`sojourn exec` and `sojourn ssh`: streams, terminals, signals and exit codes."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.unit.cli.shell import COMMAND, Shell, Terminal


@pytest.fixture
def task(shell: Shell) -> str:
    """One whose script has begun."""
    made = shell.detached("echo up; exec sleep 300", "--name", "mine")
    until(lambda: "up" in shell("logs", made).stdout)
    return made


def _popen(shell: Shell, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *args],
        cwd=shell.cwd,
        env=shell.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def _settings(terminal: Terminal) -> list[object]:
    return termios.tcgetattr(terminal._terminal)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "before",
    [
        ["--"],
        ["{id}", "--"],
        ["{id}"],
        ["mine", "--rank", "0", "--"],
        ["--rank", "0", "mine"],
        ["mine", "--rank=0"],
        ["-T", "mine", "--no-tty", "--"],
    ],
)
def test_ways_to_type_it(shell: Shell, task: str, before: list[str]) -> None:
    words = [word.format(id=task) for word in before]
    done = shell("exec", *words, "sh", "-c", 'echo "$@"; exit 3', "--", "--rank", "--", "-t")
    assert (done.returncode, done.stdout) == (3, "--rank -- -t\n"), done.stderr
    told = f"Using {shell.name(task)}, the last task created in this folder\n"
    assert done.stderr == (told if before == ["--"] else "")


def test_misuse(shell: Shell, task: str) -> None:
    for words, told in (
        (["exec"], "missing command. Run `sojourn exec -- COMMAND`"),
        (["exec", "mine"], "missing command. Run `sojourn exec mine -- COMMAND`"),
        (["exec", "mine", "--bad", "--", "true"], "No such option"),
        (["exec", "mine", "--rank", "1", "--", "true"], "rank: must be at most 0, got 1"),
        (["ssh", "mine", "--rank", "-1"], "rank: must be at least 0, got -1"),
    ):
        done = shell(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert told.lower() in done.stderr.lower()
    lost = shell("exec", "python3", "train.py")
    assert lost.returncode == 1
    assert "Task python3 not found" in lost.stderr
    assert "Run `sojourn exec -- python3 train.py` for the last task" in lost.stderr


def test_a_task_without_machines(shell: Shell, task: str) -> None:
    shell.ok("stop", task)
    for verb in (["exec", task, "--", "true"], ["ssh", task]):
        done = shell(*verb)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"Task {task} is stopped" in done.stderr
        assert f"Run `sojourn start {task}` to resume it" in done.stderr


def test_input_ends(shell: Shell, task: str) -> None:
    done = shell("exec", task, "--", "wc", "-c", input="four")
    assert (done.returncode, done.stdout.strip()) == (0, "4")
    assert shell("exec", task, "--", "cat", stdin=subprocess.DEVNULL).returncode == 0


def test_an_input_that_never_ends_does_not_keep_it(shell: Shell, task: str) -> None:
    process = _popen(shell, "exec", task, "--", "echo", "done")
    assert process.stdin
    assert process.stdout
    assert process.stdout.read() == b"done\n"
    assert process.wait(60) == 0
    process.communicate()


def test_a_reader_who_has_enough(shell: Shell, task: str) -> None:
    line = f"{' '.join(COMMAND)} exec {task} -- yes | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], env=shell.environment, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("y\n141\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_go_to_the_command(shell: Shell, task: str, number: signal.Signals) -> None:
    script = "trap 'echo caught; exit 9' INT TERM HUP; echo up; while :; do sleep 0.1; done"
    process = _popen(shell, "exec", task, "--", "sh", "-c", script)
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    assert _ended(process)[:2] == (9, b"caught\n")


def test_a_command_that_ends_by_a_signal(shell: Shell, task: str) -> None:
    process = _popen(shell, "exec", task, "--", "sh", "-c", "echo up; exec sleep 300")
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert _ended(process) == (130, b"", b"")


def test_a_command_that_ignores_signals_is_killed_in_the_end(shell: Shell, task: str) -> None:
    script = "trap 'echo caught' INT; echo $$; while :; do sleep 0.1; done"
    process = _popen(shell, "exec", task, "--", "sh", "-c", script)
    assert process.stdout
    pid = int(process.stdout.readline())
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"caught\n"
    process.send_signal(signal.SIGINT)
    code, _, err = _ended(process)
    assert (code, b"Disconnected; the command was killed" in err) == (130, True)
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_terminal(shell: Shell, task: str) -> None:
    terminal = shell.terminal("exec", task, "--", "sh", "-c", "tty; stty size; read x; exit 6")
    terminal.until("/dev/")
    terminal.until("24 100")
    assert "not a tty" not in terminal.shown
    terminal.type("\r")
    assert terminal.wait() == 6


def test_a_terminal_is_put_back(shell: Shell, task: str) -> None:
    terminal = shell.terminal("exec", task, "--", "sh", "-c", "echo up; read x")
    before = _settings(terminal)
    terminal.until("up")
    until(lambda: _settings(terminal) != before)
    terminal.type("\r")
    assert terminal.wait() == 0
    assert _settings(terminal) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_terminal_is_put_back_after_a_signal(
    shell: Shell, task: str, number: signal.Signals
) -> None:
    terminal = shell.terminal("exec", task, "--", "sh", "-c", "trap '' HUP; echo $$; sleep 300")
    before = _settings(terminal)
    terminal.until("\n")
    pid = int(terminal.shown.split()[-1])
    until(lambda: _settings(terminal) != before)
    os.kill(terminal.pid, number)
    assert terminal.wait() == 130
    assert "Disconnected; the command was killed" in terminal.shown
    assert _settings(terminal) == before
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_terminal_whose_command_is_suspended(shell: Shell, task: str) -> None:
    terminal = shell.terminal("exec", task, "--", "sh", "-c", "echo up; read x; echo got $x")
    before = _settings(terminal)
    terminal.until("up")
    until(lambda: _settings(terminal) != before)
    raw = _settings(terminal)
    os.kill(terminal.pid, signal.SIGTSTP)
    until(lambda: _settings(terminal) == before)
    until(lambda: _state(terminal.pid) == "T")
    os.kill(terminal.pid, signal.SIGCONT)
    until(lambda: _settings(terminal) == raw)
    terminal.type("it\r")
    terminal.until("got it")
    assert terminal.wait() == 0


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_window_that_changes_its_size(shell: Shell, task: str) -> None:
    script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.1; done"
    terminal = shell.terminal("exec", task, "--", "sh", "-c", script)
    terminal.until("up")
    fcntl.ioctl(terminal._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    terminal.until("33 77")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.wait() == 130


def test_keys_go_to_the_command(shell: Shell, task: str) -> None:
    """Ctrl-C, Ctrl-D and Ctrl-Z are for the shell over there."""
    terminal = shell.terminal("ssh", task)
    terminal.type("unset HISTFILE; PS1='$ '; cd /; echo a$((1 + 1))b\r")
    terminal.until("a2b")
    terminal.type("sh -c 'echo c$((2 + 2))d; exec sleep 300'\r")
    terminal.until("c4d")
    terminal.shown = ""
    terminal.press_ctrl_c()
    terminal.until("$ ")  # what is typed before may be lost with the line
    terminal.type("echo e$((3 + 3))f $SOJOURN_RANK\r")
    terminal.until("e6f 0")
    terminal.type("exit 5\r")
    assert terminal.wait() == 5
    assert shell.state(task) == "running"


def test_a_closed_window_ends_the_command(shell: Shell, task: str) -> None:
    terminal = shell.terminal("exec", task, "--", "sh", "-c", "echo $$; exec sleep 300")
    terminal.until("\n")
    pid = int(terminal.shown.split()[-1])
    terminal.hang_up()
    until(lambda: not Path(f"/proc/{pid}").exists())
    terminal.wait()


def test_a_login_shell_without_a_terminal(shell: Shell, task: str) -> None:
    done = shell("ssh", task, input="echo $SOJOURN_RANK; tty; exit 4\n")
    assert (done.returncode, done.stdout) == (4, "0\nnot a tty\n")


def test_a_terminal_that_is_asked_for(shell: Shell, task: str) -> None:
    done = shell("exec", "-t", task, "--", "sh", "-c", "stty size; cat", input="hello\n")
    assert done.returncode == 0
    assert sorted(done.stdout.split()) == ["24", "80", "hello", "hello"]  # one is its echo


def test_a_terminal_that_is_not_wanted(shell: Shell, task: str) -> None:
    terminal = shell.terminal("exec", "--no-tty", task, "--", "tty")
    assert terminal.wait() == 1
    assert "not a tty" in terminal.shown


def test_streams_that_do_not_block(shell: Shell, task: str) -> None:
    """Whoever shares a pipe with us may have made it so."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = subprocess.Popen(
        [*COMMAND, "exec", task, "--", "head", "-c", "1000000", "/dev/zero"],
        cwd=shell.cwd,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        stdout=writing,
    )
    os.close(writing)
    select.select([reading], [], [], 60)
    with open(reading, "rb") as file:
        assert len(file.read()) == 1000000
    assert process.wait(60) == 0
