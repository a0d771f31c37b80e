"""The launcher and the agent's side of it, together and for real, in the shells of images."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.agent import inside as beside
from sojourn.agent import neighbour
from sojourn.agent.neighbour import launcher
from sojourn.agent.process import CannotStart
from sojourn.core.errors import Transient
from tests.support.waiting import patience, until
from tests.unit.clouds.k8s.box import SHELLS, Box, require

Make = Callable[..., Box]
# A shell would change some of it on the way.
_SHOW = f"#!{sys.executable} -IS\nprint(open('/proc/self/environ').read(), end='')\n"


@pytest.fixture(params=SHELLS)
def make(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    require(request.param)
    monkeypatch.setattr(neighbour, "_LOOK_EVERY", 0.005)
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)
    boxes: list[Box] = []

    def made(
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        *,
        early: bool = False,
    ) -> Box:
        folder = tmp_path / f"box{len(boxes)}"
        folder.mkdir()
        box = Box(folder, request.param, before=before, variables=variables, early=early)
        boxes.append(box)
        return box

    yield made
    for box in boxes:
        box.close()


@pytest.fixture
def box(make: Make) -> Box:
    return make().ready()


def _code(script: neighbour.NeighbourScript) -> int | None:
    return script.wait(patience(10))


def test_a_script_prints_and_ends(box: Box) -> None:
    script = box.start('echo out; echo "$@" >&2; pwd; cat; exit 3', arguments=["a  b", "c'd", ""])
    assert _code(script) == 3
    assert box.woken.is_set()
    box.prints(f"out\na  b c'd \n{box.workdir}\n".encode())
    assert not script.out_of_memory
    script.kill()
    box.neighbour.end()
    assert box.ended() == 0


def test_the_log_of_the_container_has_all_that_the_script_prints(box: Box) -> None:
    """Binary, long, and to the last byte."""
    script = box.start("printf '\\000\\377'; seq 200000; echo to stderr >&2; printf end")
    assert _code(script) == 0
    script.kill()
    box.prints(b"end")
    box.neighbour.end()
    assert box.ended() == 0
    assert len(box.printed) > 1_000_000
    assert box.log.read_bytes() == box.printed


def test_the_log_of_the_container_goes_on_after_what_stayed_behind_is_killed(box: Box) -> None:
    script = box.start("sleep 1000 & echo first")
    assert _code(script) == 0
    box.prints(b"first")
    script.kill()
    box.neighbour._printed.write(b"last\n")  # type: ignore[union-attr]
    box.neighbour.end()
    assert box.ended() == 0
    assert box.log.read_bytes().endswith(b"last\n")


_KILLS_THE_PRINTER = """
for process in /proc/[0-9]*; do
    [ "$(cat $process/comm)" != cat ] || [ $process = /proc/$$ ] || kill -KILL ${process#/proc/}
done 2>/dev/null
seq 200000
"""


def test_a_log_that_takes_nothing_holds_nothing_up(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an image without a cat, or if the script kills the one that prints."""
    monkeypatch.setattr(neighbour, "_PRINTED_WITHIN", 0.0)
    script = box.start(_KILLS_THE_PRINTER)
    assert _code(script) == 0
    box.prints(b"\n200000\n")
    script.kill()
    box.neighbour.end()
    assert box.ended() == 0
    assert len(box.log.read_bytes()) < len(box.printed)


def test_the_environment_arrives_as_it_is(box: Box) -> None:
    """With names that the launcher or its shell has for itself, too."""
    given = {
        "QUOTES": 'it\'s "so" `id` $HOME \\',
        "LINES": "one\ntwo\n\n",
        "WORDS": "é 日本 \t x",
        "EMPTY": "",
        "run": "1",
        "script": "2",
        "code": "3",
        "word": "4",
        "UID": "5",
        "PPID": "6",
        "RANDOM": "7",
        "OPTIND": "not a number",
        "IFS": ":",
        "LC_ALL": "xx_XX.UTF-8",
        "BASH_ENV": "/nowhere",
    }
    script = box.start(_SHOW, given)
    assert _code(script) == 0
    until(lambda: box.printed.endswith(b"\0"))
    seen = dict(item.split("=", 1) for item in box.printed.decode().split("\0") if item)
    assert {name: seen[name] for name in given} == given
    assert not [name for name in seen if name.startswith("sojourn_")]


def test_variables_of_the_image_reach_the_script(make: Make) -> None:
    mine = dict.fromkeys(("run", "script", "uid", "key", "word", "code", "now"), "image")
    box = make(variables=mine).ready()
    script = box.start(_SHOW)
    assert _code(script) == 0
    until(lambda: box.printed.endswith(b"\0"))
    seen = dict(item.split("=", 1) for item in box.printed.decode().split("\0") if item)
    assert {name: seen.get(name) for name in mine} == mine


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("exit 0", 0),
        ("exit 127", 127),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("trap 'kill 0' EXIT; sleep 100 & exit 5", None),
    ],
)
def test_exit_codes_are_those_of_a_shell(box: Box, text: str, code: int | None) -> None:
    found = _code(box.start(text))
    assert found == code if code is not None else found in (5, 143)


def test_a_missing_interpreter_is_told(box: Box) -> None:
    with pytest.raises(CannotStart) as caught:
        box.start("#!/no/such/program -x\n")
    assert caught.value.code == 127
    assert "/no/such/program" in str(caught.value)
    box.neighbour.end()
    assert box.ended() == 0


def test_an_interpreter_may_be_followed_by_a_tab(box: Box) -> None:
    assert _code(box.start("#!/bin/sh\t-e\nfalse\n")) == 1


def test_a_program_that_env_does_not_find(box: Box) -> None:
    assert _code(box.start("#!/usr/bin/env no-such-program\n")) == 127


def test_what_stays_behind_is_killed(box: Box) -> None:
    script = box.start("(setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 1000 & echo on; exit 0")
    assert _code(script) == 0
    box.prints(b"on\n")
    script.kill()
    assert not script._lives(time.monotonic() + patience(5))


def test_a_script_that_ends_when_it_is_asked(box: Box) -> None:
    script = box.start("trap 'echo bye; exit 9' TERM; echo on; while :; do sleep 0.05; done")
    box.prints(b"on\n")
    began = time.monotonic()
    assert script.end(patience(20)) == 9
    assert time.monotonic() - began < patience(10)
    box.prints(b"bye\n")


def test_what_it_started_has_the_grace_too(box: Box) -> None:
    script = box.start(
        "(trap 'sleep 0.3; echo stored' TERM; echo on; while :; do sleep 0.05; done) &\nwait"
    )
    box.prints(b"on\n")
    assert script.end(0.8) == 143
    box.prints(b"stored\n")


def test_a_script_that_ignores_the_request_is_killed(box: Box) -> None:
    script = box.start("trap '' TERM; echo on; while :; do sleep 0.05; done")
    box.prints(b"on\n")
    assert script.end(0.2) == 137


def test_signals_for_process_1_do_not_end_anything(box: Box) -> None:
    """Kubernetes sends one to it when a pod has to go: the agent decides what happens then."""
    os.mkfifo(box.workdir / "go")
    script = box.start("echo on; read -r x <go; exit 4")
    box.prints(b"on\n")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(box.pid, number)
    assert script.wait(0.2) is None
    (box.workdir / "go").write_text("\n")
    assert _code(script) == 4


def test_a_signal_at_the_very_end_does_not_change_the_code(make: Make) -> None:
    for _ in range(3):
        box = make().ready()
        script = box.start("exit 0")
        os.kill(box.pid, signal.SIGTERM)
        assert _code(script) == 0


def test_a_script_that_kills_all_it_can_is_still_in_reach(box: Box) -> None:
    script = box.start("sleep 0.1; kill -9 -1; trap '' TERM; echo on; while :; do sleep 0.05; done")
    box.prints(b"on\n")
    assert script.wait(0) is None
    assert script.end(0.2) == 137


def test_what_others_left_behind_is_forgotten(box: Box) -> None:
    """A long task may leave behind more processes than a pod may have.

    In the end there are process 1, the one that prints, and the script itself.
    """
    script = box.start(
        "for i in 1 2 3 4 5 6 7 8; do (sleep 0.2 & ); done; sleep 0.1\n"
        "left() { set -- /proc/[0-9]*; [ $# -gt 3 ]; }; while left; do sleep 0.05; done; exit 3"
    )
    assert _code(script) == 3


def test_a_program_whose_first_thread_ends_still_runs(box: Box) -> None:
    """Linux calls it a zombie. It is still in reach."""
    script = box.start(
        f"#!{sys.executable}\n"
        """
import ctypes, platform, threading, time
threading.Thread(target=lambda: (time.sleep(0.5), print("on", flush=True), time.sleep(600))).start()
ctypes.CDLL(None).syscall({"x86_64": 60}.get(platform.machine(), 93), 0)  # exit of a thread
"""
    )
    box.prints(b"on\n")
    assert script.wait(0) is None
    assert script.end(0.2) == 143


def test_its_exit_code_counts_whatever_it_killed(box: Box) -> None:
    assert _code(box.start("sleep 0.1; kill -9 -1; exit 6")) == 6


def test_the_pipes_are_out_of_reach(box: Box) -> None:
    script = box.start(
        f"ls {box.folder}/run; rm -rf {box.folder}/run; mkdir {box.folder}/run\n"
        f"echo ended 0 0 >{box.folder}/run/status; exit 7"
    )
    assert _code(script) == 7
    box.prints(b"begin\n")
    assert b"status" not in box.printed
    script.kill()


def test_nonsense_and_floods_do_no_harm(box: Box) -> None:
    """Only by way of process 1 can a script still write there."""
    script = box.start(
        "i=0; while [ $i -lt 3000 ]; do i=$((i+1))\n"
        "echo 'ended x y\ngone\nready\nalive\n\nalive x'\n"
        "done >/proc/1/fd/3; head -c 300000 /dev/zero >/proc/1/fd/3; echo >/proc/1/fd/3\n"
        "echo done; exit 8"
    )
    assert _code(script) == 8
    box.prints(b"done\n")
    script.kill()
    assert script.wait(0) == 8


def test_much_output_waits_for_its_reader(box: Box) -> None:
    script = box.start("head -c 3000000 /dev/zero")
    assert _code(script) == 0
    until(lambda: len(box.printed) == 3_000_000)


def test_the_agent_dies_and_all_ends(make: Make) -> None:
    box = make(early=True)
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from sojourn.agent.neighbour import Neighbour\n"
        "n = Neighbour(Path(sys.argv[1])); n.prepare(); n.wait(60)\n"
        "file = Path(sys.argv[1], 'script')\n"
        "file.write_text('#!/bin/sh\\nsleep 1000 & sleep 1000')\n"
        "n.start(file, Path(sys.argv[1], 'workdir'), {}, [], lambda: None)\n"
        "print('on', flush=True); time.sleep(1000)\n"
    )
    agent = subprocess.Popen(
        [sys.executable, "-c", program, str(box.folder)], stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    assert agent.stdout.readline() == "on\n"
    agent.kill()
    agent.communicate()
    assert box.ended() == 0


def test_the_agent_dies_before_the_container_comes(tmp_path: Path, make: Make) -> None:
    """The image may be pulled for longer than the agent lives."""
    folder = tmp_path / "early"
    program = (
        "import sys\nfrom pathlib import Path\nfrom sojourn.agent.neighbour import Neighbour\n"
        "Neighbour(Path(sys.argv[1])).prepare()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
    shell = make(early=True).process.args
    assert isinstance(shell, list)
    command = [launcher(folder) if "sojourn" in part else part for part in shell]
    assert subprocess.run(command, check=False, timeout=patience(10)).returncode == 0


def test_an_agent_that_cannot_start_is_not_waited_for(make: Make) -> None:
    box = make(early=True)
    (box.folder / "run").mkdir()
    (box.folder / "run" / "over").touch()
    assert box.ended() == 0


def test_a_pod_that_goes_before_the_agent_is_there(make: Make) -> None:
    box = make(early=True)
    until(lambda: _catches(box.pid, signal.SIGTERM))
    os.kill(box.pid, signal.SIGTERM)
    assert box.ended() == 0


def _catches(pid: int, number: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) & (1 << (number - 1)))
    return False


def test_a_container_that_is_gone_was_killed(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour, "_PRESUMED_DEAD", 0.05)
    script = box.start("echo on; sleep 1000")
    box.prints(b"on\n")
    os.kill(box.pid, signal.SIGKILL)
    assert _code(script) == 137
    assert script.out_of_memory
    assert box.woken.is_set()
    script.kill()


def test_a_container_that_is_gone_before_the_script_is_no_fault_of_the_script(box: Box) -> None:
    os.kill(box.pid, signal.SIGKILL)
    box.process.wait()
    with pytest.raises(Transient, match="ended before the script began"):
        box.start("exit 0")


def test_a_container_runs_one_script(box: Box) -> None:
    assert _code(box.start("exit 0")) == 0
    assert box.neighbour.used
    with pytest.raises(Transient, match="already"):
        box.start("exit 0")


def test_another_user(make: Make) -> None:
    """The workdir is theirs, and what they must not change is not."""
    box = make(before=["setpriv", "--reuid=12345", "--regid=23456", "--clear-groups"], early=True)
    (box.workdir / "sub").mkdir()
    (box.workdir / "sub" / "old").write_text("x")
    (box.workdir / "link").symlink_to("/etc/passwd")
    box.neighbour.prepare()
    box.ready()
    script = box.start(
        "id -u; id -g; echo new >sub/old && echo y >sub/new; rm sub/old\n"
        f"echo x >{box.folder}/no; :"
    )
    assert _code(script) == 0
    box.prints(b"12345\n23456\n")
    assert not (box.folder / "no").exists()
    assert (box.workdir / "sub" / "new").stat().st_uid == 12345
    assert Path("/etc/passwd").stat().st_uid == 0
    begin = (box.folder / "run" / "begin").stat()
    assert (begin.st_uid, begin.st_mode & 0o777) == (12345, 0o600)
    assert script.end(patience(5)) == 0


def test_an_agent_that_cannot_give_things_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are some user, and not the same."""
    monkeypatch.setattr(os, "geteuid", lambda: 65532)
    (tmp_path / "workdir").mkdir()
    (tmp_path / "workdir" / "file").write_text("x")
    (tmp_path / "workdir" / "run").write_text("x")
    (tmp_path / "workdir" / "run").chmod(0o700)
    (tmp_path / "workdir" / "link").symlink_to("/nowhere")
    neighbour._give(tmp_path, tmp_path / "workdir", (1000, 1000))
    modes = [(tmp_path / "workdir" / n).stat().st_mode & 0o777 for n in ("", "file", "run")]
    assert modes == [0o777, 0o666, 0o777]


def test_no_sleep_in_the_image(make: Make, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("dash", "busybox", "bash"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "/nowhere")
    box = make(before=[shutil.which("env") or "env", f"PATH={tmp_path}/bin"], early=True)
    box.neighbour.prepare()
    box.ready()
    script = box.start("command -v sleep; echo $PATH; exit 3")
    assert _code(script) == 3
    box.prints(f"{tmp_path}/bin\n".encode())


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    environment=st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(
            lambda name: name not in ("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH")
        ),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
        max_size=5,
    ),
    arguments=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
        max_size=4,
    ),
)
def test_any_environment_and_arguments(
    tmp_path: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    """What the shell is told to do, by itself: it needs no container."""
    file = tmp_path / "script"
    file.write_text(
        f"#!{sys.executable} -IS\nimport os, sys\n"
        "given = b'\\0'.join(os.fsencode(item) for item in sys.argv[1:])\n"
        "sys.stdout.buffer.write(given + b'\\0\\0\\0')\n"
        "sys.stdout.buffer.write(open('/proc/self/environ', 'rb').read())\n"
    )
    file.chmod(0o755)
    inside = tmp_path / "inside"
    text = beside.inside(tmp_path, environment)
    inside.write_bytes(text.encode("utf-8", "surrogateescape"))
    command = ["sh", "-c", f". {inside}", "sh", str(file), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    told = b"\0".join(item.encode() for item in arguments)
    assert done.stdout.startswith(told + b"\0\0\0")
    variables = done.stdout[len(told) + 3 :]
    seen = dict(item.split(b"=", 1) for item in variables.split(b"\0") if item)
    assert {name: seen[name.encode()].decode() for name in environment} == environment
