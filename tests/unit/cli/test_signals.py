"""A signal ends every command soon, whatever it is doing: no phase swallows one."""

from __future__ import annotations

import fcntl
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO

import pytest

from sojourn.core.ids import TaskId
from tests.support.waiting import patience, until
from tests.unit.cli.shell import Shell

_ID = str(TaskId.deterministic("brave"))
_STEADY = "echo started; while :; do sleep 0.05; done"
_WITHIN = 3.0  # seconds from a signal to the end

# Sends its own process a signal at the n-th call of one of our functions: each phase of a command,
# from loading it to following a task, is at some number. Or of any function at all: then also the
# moments between our own first ones.
_AT_CALL = """
import os, signal, sys

number, left, whose = int(sys.argv.pop(1)), int(sys.argv.pop(1)), sys.argv.pop(1)

def count(frame, event, argument):
    global left
    if event in ("call", "c_call") if whose == "any" else (
        event == "call" and "sojourn" in frame.f_code.co_filename
    ):
        left -= 1
        if not left:
            sys.setprofile(None)
            print("SIGNAL", flush=True)
            os.kill(os.getpid(), number)

from sojourn.cli import main
sys.setprofile(count)
main()
"""


def _at_call(
    shell: Shell, number: int, call: int, *args: str, whose: str = "ours"
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _AT_CALL, str(number), str(call), whose, *args],
        cwd=shell.cwd,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Modules are loaded with classes whose fields get their names, and there a signal comes wrapped.
_IN_A_CLASS = """
import os, signal, sys, types

class Field:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)

def run():
    class Loaded:
        field = Field()

sys.modules["sojourn.cli.app"] = types.ModuleType("sojourn.cli.app")
sys.modules["sojourn.cli.app"].run = run
from sojourn.cli import main
print("SIGNAL", flush=True)
main()
"""


def _end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and standard error, of a command that has to end soon after its signal."""
    assert process.stdout
    for line in process.stdout:
        if line == "SIGNAL\n":
            break
    began = time.monotonic()
    try:
        _, err = process.communicate(timeout=patience(60))
    finally:
        process.kill()
    assert time.monotonic() - began < patience(_WITHIN)
    assert "Traceback" not in err
    return process.returncode, err


@pytest.mark.parametrize(
    ("verb", "calls"),
    [
        (("logs", "--follow"), (10, 60, 200, 400, 800, 1200, 1600, 2400)),
        (("attach",), (60, 400, 800, 1600)),
        (("read", "--follow"), (400, 1200)),
    ],
)
def test_following_ends_whenever_a_signal_comes(
    shell: Shell, verb: tuple[str, ...], calls: tuple[int, ...]
) -> None:
    task = shell.detached(_STEADY)
    until(lambda: shell("logs", task).stdout == "started\n")
    for number, call in enumerate(calls):
        sent = (signal.SIGTERM, signal.SIGINT)[number % 2 if verb[0] == "logs" else 0]
        code, _ = _end_of(_at_call(shell, sent, call, *verb, task))
        assert code == 130, call
    assert shell.state(task) == "running"


@pytest.mark.parametrize(
    "args",
    [
        ("list",),
        ("status",),
        ("pull",),
        ("logs",),
        ("stop", "--all", "--yes"),
        ("exec", "--", "sleep", "3"),
        ("doctor",),
        ("delete", "--all", "--yes"),
    ],
    ids=lambda args: args[0],
)
def test_every_verb_ends_whenever_a_signal_comes(shell: Shell, args: tuple[str, ...]) -> None:
    shell.detached(_STEADY, "--workdir", ".", "--output", ".")
    if args[0] == "exec":  # which is refused until its script runs
        until(lambda: shell("exec", "--", "true").returncode == 0)
    for call in (10, 50, 300, 800):
        # At the end of one that had nothing left to do, success is right; `sleep` ends by itself.
        assert _end_of(_at_call(shell, signal.SIGTERM, call, *args))[0] in (0, 130, 143), call


def _at_first(shell: Shell, sent: signal.Signals) -> list[int]:
    """The exit codes for a signal at each of the first calls within `main`."""
    with ThreadPoolExecutor(2) as pool:
        return list(
            pool.map(
                lambda call: _end_of(_at_call(shell, sent, call, "list", whose="any"))[0],
                range(2, 91),
            )
        )


def test_a_signal_in_the_first_moments_is_an_exit_code_as_later(shell: Shell) -> None:
    assert set(_at_first(shell, signal.SIGINT)) == {130}
    codes = _at_first(shell, signal.SIGTERM)
    heard = codes.index(130)
    assert set(codes[:heard]) <= {-signal.SIGTERM}
    assert set(codes[heard:]) == {130}


@contextmanager
def _silent() -> Iterator[str]:
    """The address of a server that takes every request and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def _kubeconfig(shell: Shell, server: str) -> str:
    text = (
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: secret}}]\n"
    )
    return str(shell.file("kubeconfig", text))


def _hung_clouds(shell: Shell, server: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": server,
        "KUBECONFIG": _kubeconfig(shell, server),
    }


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "args",
    [
        ("list",),
        ("logs", "--follow", _ID),
        ("delete", _ID),
        ("status", "--json", "brave"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
@pytest.mark.parametrize("cloud", ["AWS", "KUBE"])
def test_a_cloud_that_never_answers(
    shell: Shell, cloud: str, args: Sequence[str], sent: signal.Signals
) -> None:
    with _silent() as server:
        shell.environment |= {
            name: value
            for name, value in _hung_clouds(shell, server).items()
            if name.startswith(cloud)
        }
        process = shell.background(*args)
        until(lambda: _connected(process.pid, server))
        began = time.monotonic()
        process.send_signal(sent)
        out, err = process.communicate(timeout=patience(60))
    assert time.monotonic() - began < patience(_WITHIN)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Cancelled" in (out if "--json" in args else err)


def _connected(pid: int, server: str) -> bool:
    port = f"{int(server.rpartition(':')[2]):04X}"
    with open(f"/proc/{pid}/net/tcp") as file:
        rows = [line.split() for line in file]
    return any(row[2].endswith(f":{port}") and row[3] == "01" for row in rows)


def test_a_reader_that_takes_nothing(shell: Shell) -> None:
    task = shell.detached("seq 1000000; sleep 60")
    until(lambda: shell("logs", "--tail", "1", task).stdout == "1000000\n")
    process = shell.background("logs", "--follow", task)
    assert process.stdout
    assert process.stdout.readline() == "1\n"
    until(lambda: _waiting(process.stdout) > 60000)  # of the 65536 bytes of a pipe
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=patience(10)) == 130
    process.communicate()


def _waiting(pipe: IO[str] | None) -> int:
    """How many bytes nobody has read yet."""
    assert pipe
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
    return int(count)


_CREATES = """
import sys, threading, time
from sojourn.core.parallel import aside, together

def stuck():
    time.sleep(600)

threading.Timer(0.3, lambda: print("stuck", flush=True)).start()
{call}
"""


@pytest.mark.parametrize(
    "call", ["together([stuck, stuck])", "together([stuck] * 9, at_once=2)", "aside(stuck)()"]
)
def test_a_program_that_is_interrupted_ends_though_calls_are_stuck(call: str) -> None:
    """KeyboardInterrupt leaves every call of the Python API, and nothing keeps Python alive."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CREATES.format(call=call)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "stuck\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=patience(10))
    assert "KeyboardInterrupt" in err
    assert process.returncode == -signal.SIGINT


def test_a_signal_while_a_class_is_loaded(shell: Shell) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _IN_A_CLASS],
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert _end_of(process) == (130, "")
