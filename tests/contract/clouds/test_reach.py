"""Commands on machines, and their ports."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.core.errors import InvalidInput, NotFound, Transient
from sojourn.core.interfaces import RemoteProcess, Terminal
from tests.contract.clouds.lab import WAITING, Lab, answers, log_of
from tests.support.waiting import patience, until

_CLI = (sys.executable, "-m", "sojourn.cli")


@pytest.fixture
def handle(lab: Lab) -> Iterator[Handle]:
    """A task whose script has begun, on a machine that can be reached."""
    made = lab.create(WAITING, environment={"MINE": "a 'b'\n$c"})
    until(lambda: log_of(made) == ["up"] and answers(made))
    yield made
    made.delete(fetch=False)


class Output:
    """What a command has printed, read as it comes."""

    def __init__(self, process: RemoteProcess) -> None:
        self.text = ""
        self._pieces = process.output()

    def until(self, pattern: str) -> re.Match[str]:
        while not (found := re.search(pattern, self.text)):
            piece = next(self._pieces, None)
            assert piece, f"{pattern!r} is not in {self.text!r}"
            self.text += piece[1].decode().replace("\r\n", "\n")
        return found

    def rest(self) -> str:
        self.text += "".join(data.decode() for _, data in self._pieces)
        return self.text


def test_streams_and_exit_code(handle: Handle) -> None:
    done = handle.exec(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert done.args == ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert handle.exec("exit 0").returncode == 0


def test_arguments_arrive_as_they_are(handle: Handle) -> None:
    words = ["", "a b", "'\"$HOME`x`\\", "*", "--", "-n", "two\nlines", "é☃"]
    done = handle.exec(["printf", r"%s\0", *words])
    assert done.stdout.decode().split("\0")[:-1] == words


def test_environment_and_workdir_are_those_of_the_script(handle: Handle) -> None:
    done = handle.exec('echo "$MINE|$SOJOURN_RANK|$SOJOURN_ATTEMPT|$TPI_TASK"; cat output/attempts')
    assert done.stdout.decode() == "a 'b'\n$c|0|1|true\n1\n"
    handle.exec("echo more >> output/attempts")
    assert handle.exec("cat output/attempts").stdout == b"1\nmore\n"


def test_large_input_and_output_at_once(handle: Handle) -> None:
    data = os.urandom(1 << 20) * 50
    done = handle.exec(["cat"], input=data)
    assert done.returncode == 0
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


def test_a_command_that_does_not_read_its_input(handle: Handle) -> None:
    assert handle.exec(["true"], input=bytes(10 << 20)).returncode == 0
    assert handle.exec("exit 7", input=bytes(10 << 20)).returncode == 7
    assert handle.exec("head -c 3", input=b"x" * (256 << 10)).stdout == b"xxx"


def test_a_program_that_there_is_not(handle: Handle) -> None:
    done = handle.exec(["no-such-program-here"])
    assert done.returncode == 127
    assert b"no-such-program-here" in done.stderr


def test_a_file_that_is_no_program(handle: Handle) -> None:
    assert handle.exec(["./output/attempts"]).returncode == 126


def test_a_signal_of_its_own_is_in_the_exit_code(handle: Handle) -> None:
    assert handle.exec("kill -KILL $$").returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on(handle: Handle, number: signal.Signals) -> None:
    with closing(handle.popen("echo up; exec sleep 300")) as process:
        Output(process).until("up")
        process.signal(number)
        assert process.wait() == 128 + number
        process.signal(number)  # of one that has ended


def test_a_signal_can_be_handled(handle: Handle) -> None:
    script = "trap 'echo caught; exit 7' TERM; echo up; while :; do sleep 0.1; done"
    with closing(handle.popen(script)) as process:
        output = Output(process)
        output.until("up")
        process.signal(signal.SIGTERM)
        output.until("caught")
        assert process.wait() == 7


def test_input_piece_by_piece(handle: Handle) -> None:
    with closing(handle.popen("while read line; do echo got $line; done; echo end")) as process:
        output = Output(process)
        for word in ("one", "two"):
            process.write(f"{word}\n".encode())
            output.until(f"got {word}")
        process.close_input()
        assert output.rest().endswith("end\n")
        assert process.wait() == 0
        with pytest.raises(BrokenPipeError):
            process.write(b"more")


def test_a_terminal(handle: Handle) -> None:
    shown = Terminal(rows=31, columns=97, name="vt100")
    script = (
        "test -t 0 && test -t 1 && test -t 2 && echo yes; echo $TERM; stty size; read x; exit 4"
    )
    with closing(handle.popen(script, terminal=shown)) as process:
        output = Output(process)
        output.until("yes\nvt100\n31 97\n")
        process.resize(40, 120)
        process.write(b"x\n")
        output.rest()
        assert process.wait() == 4
    assert handle.exec("test -t 0 || test -t 1 || echo none").stdout == b"none\n"


def test_a_terminal_is_resized(handle: Handle) -> None:
    script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.1; done"
    with closing(handle.popen(script, terminal=Terminal())) as process:
        output = Output(process)
        output.until("up")
        process.resize(41, 121)
        output.until("41 121")


def test_keys_of_a_terminal(handle: Handle) -> None:
    """Ctrl-C interrupts what runs in it, and not more; Ctrl-D ends it."""
    with closing(handle.popen(["sh", "-i"], terminal=Terminal())) as process:
        output = Output(process)
        process.write(b"sh -c 'echo a$((1 + 1))b; exec sleep 300'\n")  # up when it has the keys
        output.until("a2b")
        process.write(b"\x03")
        process.write(b"echo c$((2 + 2))d\n")
        output.until("c4d")
        process.write(b"\x04")
        output.rest()
        process.wait()


def test_closing_ends_a_command(handle: Handle) -> None:
    process = handle.popen(
        "trap '' TERM HUP INT; echo up; while :; do touch alive; sleep 0.1; done"
    )
    Output(process).until("up")
    process.close()
    process.close()
    until(lambda: _is_still(handle, "alive"))


def _is_still(handle: Handle, name: str) -> bool:
    """Whether nobody has touched a file for a while."""
    return bool(handle.exec(f"rm -f {name}; sleep 0.5; test ! -e {name}").returncode == 0)


def test_stopping_the_task_ends_a_command(handle: Handle, lab: Lab) -> None:
    before = len(lab.kit.processes())
    with closing(handle.popen("echo up; exec sleep 300")) as process:
        Output(process).until("up")
        handle.stop()
        assert process.wait() != 0
    assert before >= len(lab.kit.processes())
    with pytest.raises(NotFound, match=f"Task {handle.id} is stopped"):
        handle.exec(["true"])
    handle.start()
    until(lambda: handle.status().state is State.RUNNING and answers(handle))
    assert handle.exec("echo $SOJOURN_ATTEMPT").stdout == b"2\n"


def test_a_lost_machine_ends_a_command(handle: Handle, lab: Lab) -> None:
    with closing(handle.popen("echo up; exec sleep 300")) as process:
        Output(process).until("up")
        lab.kit.lose_agent(handle, 0)
        assert process.wait() != 0


def test_ranks(lab: Lab) -> None:
    handle = lab.create("echo up; sleep 300", parallelism=2)
    until(lambda: log_of(handle) == ["up", "up"] and answers(handle) and answers(handle, 1))
    for rank in (0, 1):
        assert handle.exec("echo $SOJOURN_RANK", rank=rank).stdout == f"{rank}\n".encode()
    for rank, limit in ((2, "at most 1"), (-1, "at least 0")):
        with pytest.raises(InvalidInput, match=f"rank: must be {limit}, got {rank}"):
            handle.exec(["true"], rank=rank)
    handle.delete(fetch=False)


def test_a_task_that_has_ended(lab: Lab) -> None:
    handle = lab.create("exit 3")
    handle.wait()
    with pytest.raises(NotFound, match=f"Task {handle.id} has ended: failed"):
        handle.exec(["true"])
    with pytest.raises(NotFound, match=f"Task {handle.id} has ended: failed"):
        handle.connect(80)
    handle.delete(fetch=False)
    with pytest.raises(NotFound, match=f"Task {handle.id} not found"):
        handle.exec(["true"])


def test_a_rank_that_has_ended_beside_one_that_runs(lab: Lab) -> None:
    handle = lab.create("test $SOJOURN_RANK = 0 || sleep 300", parallelism=2)
    until(lambda: handle.status().ranks[0].state is State.SUCCEEDED)
    with pytest.raises(NotFound, match=f"Rank 0 of {handle.id} has ended: succeeded"):
        handle.exec(["true"])
    until(lambda: answers(handle, 1))
    handle.delete(fetch=False)


@pytest.mark.parametrize("command", [[], ()])
def test_no_command(handle: Handle, command: list[str]) -> None:
    with pytest.raises(InvalidInput, match="command: must not be empty"):
        handle.exec(command)


_SERVER = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(server.getsockname()[1]))
os.rename("port", "ready")
print("up", flush=True)
while True:
    taken, _ = server.accept()
    size, _, data = taken.recv(65536).partition(b" ")
    while len(data) < int(size):
        data += taken.recv(65536)
    taken.sendall(data[::-1])
    taken.close()
"""


def test_a_port(lab: Lab) -> None:
    (lab.workdir / "server.py").write_text(_SERVER)
    handle = lab.create("command -v python3 || { echo none; exit; }\nexec python3 server.py")
    until(lambda: log_of(handle)[-1:] in (["up"], ["none"]))
    if log_of(handle)[-1] == "none":
        handle.delete(fetch=False)
        pytest.skip("the machine has no python3")
    until(lambda: answers(handle))
    port = int(handle.exec("cat ready").stdout)
    for size in (3, 10 << 20):
        data = os.urandom(size)
        with closing(handle.connect(port)) as connection:
            connection.write(b"%d %b" % (size, data))
            assert b"".join(iter(connection.read, b"")) == data[::-1]
            assert connection.read() == b""
    with pytest.raises(InvalidInput, match="port: must be between 1 and 65535, got 0"):
        handle.connect(0)
    handle.delete(fetch=False)


def test_a_port_on_which_nobody_listens(handle: Handle) -> None:
    with pytest.raises(Transient, match="port 9"), closing(handle.connect(9)) as connection:
        assert connection.read() == b""


def test_the_command_line(handle: Handle, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 50
    script = "cat; echo err >&2; echo $SOJOURN_RANK >&2; exit 5"
    done = subprocess.run(
        [*_CLI, "exec", handle.id, "--rank", "0", "--", "sh", "-c", script],
        input=data,
        capture_output=True,
        timeout=patience(120),
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (5, b"err\n0\n")
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


_Verb = Callable[[Handle], object]


@pytest.mark.parametrize("verb", [Handle.delete, lambda handle: handle.delete(force=True)])
def test_deleting_the_task_ends_a_command(lab: Lab, verb: _Verb) -> None:
    handle = lab.create(WAITING)
    until(lambda: log_of(handle) == ["up"] and answers(handle))
    with closing(handle.popen("echo up; exec sleep 300")) as process:
        Output(process).until("up")
        verb(handle)
        assert process.wait() != 0
    assert sojourn.list_tasks() == []
