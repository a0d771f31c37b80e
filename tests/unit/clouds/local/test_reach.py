"""Commands on a machine of this computer end with it, whatever they left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State, Task
from sojourn.core.errors import NotFound, Transient
from sojourn.core.interfaces import RemoteProcess
from sojourn.host.orphans import began
from tests.support.waiting import until


@pytest.fixture
def handle(own_folders: Path) -> Iterator[Handle]:
    made = sojourn.create(Task("#!/bin/sh\nsleep 300\n"))
    until(lambda: made.status().state is State.RUNNING and _answers(made))
    yield made
    made.delete(fetch=False, force=True)


def _answers(handle: Handle) -> bool:
    try:
        return handle.exec(["true"]).returncode == 0
    except Transient:
        return False


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _pid(process: RemoteProcess) -> int:
    """That it prints first."""
    return int(next(process.output())[1])


def _started(handle: Handle, script: str) -> tuple[RemoteProcess, int]:
    process = handle.popen(script)
    return process, _pid(process)


def _supervisor(handle: Handle, own_folders: Path) -> int:
    lock = next(own_folders.rglob("supervisor.lock"))
    return int(lock.read_text().split()[0])


_COMMANDS = {
    "the command": "echo $$; exec sleep 300",
    "one without our variables": "echo $$; exec env -i sleep 300",
    "a job of it": "sleep 300 & echo $!; wait",
    "a daemon": "setsid sh -c 'echo $$; exec sleep 300' & wait",
    "what it left behind": "sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' & sleep 0.1",
    "a daemon that it left": "setsid sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' & sleep 0.1",
}


@pytest.mark.parametrize("script", _COMMANDS.values(), ids=_COMMANDS)
@pytest.mark.parametrize("end", [Handle.stop, lambda handle: handle.delete(fetch=False)])
def test_it_ends_with_the_machine(
    handle: Handle, script: str, end: Callable[[Handle], None]
) -> None:
    process, pid = _started(handle, script)
    assert _lives(pid)
    end(handle)
    until(lambda: not _lives(pid))  # nobody looks at the task meanwhile
    process.close()


@pytest.mark.parametrize("script", _COMMANDS.values(), ids=_COMMANDS)
def test_it_ends_after_the_supervisor_was_killed(
    handle: Handle, script: str, own_folders: Path
) -> None:
    process, pid = _started(handle, script)
    os.kill(_supervisor(handle, own_folders), signal.SIGKILL)
    until(lambda: handle.status() and not _lives(pid))  # looking starts the next one
    process.close()


def test_it_ends_when_its_machine_is_lost(handle: Handle) -> None:
    process, pid = _started(handle, "echo $$; exec sleep 300")
    handle.interrupt(notice=False)
    until(lambda: not _lives(pid))
    assert process.wait() == 128 + signal.SIGKILL
    process.close()


@pytest.mark.parametrize("script", list(_COMMANDS.values())[:4], ids=list(_COMMANDS)[:4])
def test_it_ends_when_it_is_closed(handle: Handle, script: str) -> None:
    process, pid = _started(handle, script)
    process.close()
    until(lambda: not _lives(pid))
    process.close()


def test_a_pid_that_was_used_again_is_left_alone(handle: Handle, own_folders: Path) -> None:
    process, _ = _started(handle, "echo $$; sleep 300")
    process.close()
    (guests,) = (own_folders.parents[2] / "cache").rglob("guests")
    stranger = os.getpid()
    (guests / str(stranger)).write_text("1")
    assert began(stranger) not in ("", "1")
    handle.stop()
    assert _lives(stranger)


def test_output_ends_with_the_command_although_another_one_holds_it_open(handle: Handle) -> None:
    done = handle.exec("sleep 300 & echo done")
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_it_has_the_environment_of_the_script(own_folders: Path) -> None:
    script = "#!/bin/sh\nenv | sort > mine\npwd -P > where\nsleep 300\n"
    made = sojourn.create(Task(script, environment={"SECRET": "a\nb", "PATH": os.environ["PATH"]}))
    until(lambda: made.status().state is State.RUNNING and _answers(made))
    until(lambda: made.exec("test -s where").returncode == 0)
    mine, theirs = made.exec("cat mine").stdout, made.exec("env | sort").stdout
    assert b"SECRET=a\n" in mine

    def variables(text: bytes) -> list[bytes]:
        return [line for line in text.splitlines() if not line.startswith((b"_=", b"OLDPWD="))]

    assert variables(theirs) == variables(mine)
    assert made.exec("pwd -P").stdout == made.exec("cat where").stdout
    made.delete(fetch=False)


def test_a_machine_that_is_gone_is_told(handle: Handle) -> None:
    reach = handle._cloud.reach(handle._id, handle.status().ranks[0].machine)
    handle.stop()
    with pytest.raises(NotFound):
        reach.run(handle._ctx, ["true"])
    with pytest.raises(NotFound):
        reach.connect(handle._ctx, 80)


def test_a_port_on_which_nobody_listens(handle: Handle) -> None:
    with pytest.raises(Transient, match="Could not connect to port 9 of machine"):
        handle.connect(9)
