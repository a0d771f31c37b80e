"""Tasks whose image is a container's, on machines with a real Podman or Docker."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sojourn import Handle, State
from sojourn.core.interfaces import Terminal
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.lab import Lab, log_of
from tests.contract.clouds.vm_kit import VmKit
from tests.simcloud.machines import containers
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow
_SECRET = "not-for-everybody"
_WAITING = """#!/bin/sh
mkdir -p output
echo $SOJOURN_ATTEMPT >> output/attempts
echo up
until test -f /dev/shm/go; do sleep 0.05; done
exit 3
"""


def _make(name: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A kit of that cloud."""
    return import_module(f"tests.contract.clouds.{name}_kit").make(tmp_path_factory)


@pytest.fixture
def cloud() -> str:
    return "aws"


@pytest.fixture
def engine() -> str:
    return "podman"


@pytest.fixture
def kit(
    cloud: str,
    engine: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[VmKit]:
    """A cloud whose machines have an engine for containers."""
    reason = Host.ssh_unavailable() or containers.unavailable(engine)
    if reason:
        pytest.skip(reason)
    with in_use(_make(cloud, tmp_path_factory), monkeypatch) as kit:
        containers.install(kit.host.image, engine)
        yield kit


def _machine(kit: VmKit) -> RunningMachine:
    [machine] = [each for each in kit.host.machines if each.alive]
    return machine


def _outcomes(handle: Handle) -> list[str]:
    return [report.outcome.value for report in handle.reports()]


@pytest.mark.parametrize(
    ("cloud", "engine"),
    [
        ("aws", "podman"),
        ("aws", "docker"),
        pytest.param("gcp", "podman", marks=pytest.mark.full),
        pytest.param("az", "podman", marks=pytest.mark.full),
    ],
)
def test_a_task_in_a_container(kit: VmKit, lab: Lab, engine: str, tmp_path: Path) -> None:
    (lab.workdir / "given").write_text("from home\n")
    handle = lab.create(
        _WAITING, image=f"docker://{containers.SMALL}", environment={"MINE": _SECRET}
    )
    lab.until_stored(handle, "attempts", tmp_path / "look")
    done = handle.exec('echo "$MINE $FROM_IMAGE $TPI_TASK"; cat given; ls /opt/sojourn; exit 7')
    assert done.returncode == 7
    assert done.stdout.decode() == f"{_SECRET} yes true\nfrom home\ndisk\n"
    machine = _machine(kit)
    assert _SECRET not in machine.run(engine, "inspect", "sojourn-script").stdout
    assert not [each for each in machine.processes() if _SECRET in " ".join(each.argv)]
    kit.lose_agent(handle, 0)
    until(lambda: log_of(handle, attempt=2) == ["up"], 60)
    kit.appear("go")
    assert handle.wait().status is State.FAILED
    assert _outcomes(handle) == ["lost", "failed"]
    assert handle.reports()[-1].exit_code == 3
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


@pytest.fixture
def handle(kit: VmKit, lab: Lab) -> Iterator[Handle]:
    """A task whose script has begun."""
    made = lab.create(
        _WAITING, image=f"docker://{containers.SMALL}", environment={"MINE": "a 'b'\n$c"}
    )
    until(lambda: log_of(made) == ["up"], 60)
    yield made
    made.delete(fetch=False)


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_commands_in_a_container(handle: Handle) -> None:
    words = ["", "a b", "'\"$HOME`x`\\", "*", "--", "-n", "two\nlines", "é☃"]
    done = handle.exec(["printf", r"%s\0", *words])
    assert done.stdout.decode().split("\0")[:-1] == words
    done = handle.exec('echo "$MINE|$SOJOURN_RANK"; echo err >&2')
    assert (done.stdout, done.stderr) == (b"a 'b'\n$c|0\n", b"err\n")
    assert handle.exec(["cat"], input=bytes(5 << 20)).stdout == bytes(5 << 20)
    assert handle.exec("exit 7", input=bytes(5 << 20)).returncode == 7
    assert handle.exec(["no-such-program-here"]).returncode == 127
    with closing(handle.popen("trap 'echo caught; exit 9' TERM; echo on; sleep 300 & wait")) as one:
        pieces = one.output()
        assert next(pieces)[1] == b"on\n"
        one.signal(signal.SIGTERM)
        assert b"".join(data for _, data in pieces) == b"caught\n"
        assert one.wait() == 9
    with closing(handle.popen("exec sleep 4321")):
        until(lambda: b"sleep 4321" in handle.exec("ps").stdout)
    until(lambda: b"sleep 4321" not in handle.exec("ps").stdout)


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_terminal_in_a_container(handle: Handle) -> None:
    terminal = Terminal(rows=33, columns=77, name="vt100")
    text = 'stty size; echo "$TERM $SOJOURN_RANK"; pwd; exit 5'
    with closing(handle.popen(["sh", "-c", text], terminal=terminal)) as process:
        said = b"".join(data for _, data in process.output()).decode().split()
        assert process.wait() == 5
    assert said == ["33", "77", "vt100", "0", "/opt/sojourn/disk/workdir"]


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_notice_reaches_a_script_in_a_container(kit: VmKit, lab: Lab) -> None:
    script = """#!/bin/sh
    mkdir -p output
    test -f output/saved && exit 0
    trap 'echo last words; echo saved > output/saved; exit 0' TERM
    echo ready
    while true; do sleep 0.05; done
    """
    handle = lab.create(script, image=f"docker://{containers.SMALL}")
    until(lambda: log_of(handle) == ["ready"], 60)
    machine = _machine(kit)
    machine.power_button()
    assert machine.wait(patience(60))
    assert handle.wait().status is State.SUCCEEDED
    assert _outcomes(handle) == ["preempted", "succeeded"]
    assert log_of(handle, attempt=1)[-1] == "last words"
    handle.delete()
    assert lab.output() == {"saved": "saved\n"}


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_an_agent_that_dies_takes_the_container_with_it(
    kit: VmKit, lab: Lab, engine: str, tmp_path: Path, handle: Handle
) -> None:
    lab.until_stored(handle, "attempts", tmp_path / "look")
    machine = _machine(kit)
    machine.run("pkill", "-KILL", "-f", "on_machine.agent")
    until(lambda: handle.status().ranks[0].attempt == 2, 60)
    until(lambda: log_of(handle, attempt=2) == ["up"], 60)
    assert len(machine.run(engine, "ps", "--all", "--quiet").stdout.split()) == 1
    assert [each for each in kit.host.machines if each.alive] == [machine]


def test_an_image_with_a_user_of_its_own(lab: Lab) -> None:
    (lab.workdir / "given").write_text("from home\n")
    script = "#!/bin/sh\nid -u\ncat given\nmkdir output\necho made >output/file\necho x >>given\n"
    handle = lab.create(script, image=f"docker://{containers.PERSON}")
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["1234", "from home"]
    handle.delete()
    assert lab.output() == {"file": "made\n"}


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_files_at_any_path_are_in_the_container(lab: Lab) -> None:
    files = {'/srv/a b, "c":d/HPL.dat': "HPL\n", "/etc/own.conf": "own\n", "in/seed": "42\n"}
    script = "#!/bin/sh\n" + "".join(f"cat '{path}'\n" for path in files)
    result = lab.create(
        f"{script}ls -d /srv/*/* | wc -l\n", image=f"docker://{containers.PERSON}", files=files
    )
    assert result.wait().status is State.SUCCEEDED
    assert [line.strip() for line in log_of(result)] == ["HPL", "own", "42", "1"]
    result.delete()


@pytest.mark.parametrize("engine", ["podman", "docker"])
@pytest.mark.parametrize(
    ("image", "script", "told"),
    [
        (containers.ABSENT, "#!/bin/sh", "could not pull the container image .*manifest unknown"),
        (containers.SECRET, "#!/bin/sh", "could not pull the container image .*auth"),
        (containers.SHELLLESS, "#!/bin/sh", "could not start a container of .*/bin/sh"),
        (containers.SMALL, "#!/bin/bash", "/bin/bash, from its first line, not found"),
    ],
)
def test_what_cannot_run_fails_the_rank_with_the_reason(
    lab: Lab, image: str, script: str, told: str
) -> None:
    handle = lab.create(f"{script}\necho here\n", image=f"docker://{image}")
    assert handle.wait().status is State.FAILED
    [report] = handle.reports()
    handle.delete()
    assert re.search(told, report.reason), report.reason


def test_a_machine_image_without_docker(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These have apt-get, but it knows no packages."""
    with in_use(_make("aws", tmp_path_factory), monkeypatch) as kit:
        handle = Lab(kit, tmp_path).create("#!/bin/sh\n", image="docker://python:3.12")
        assert handle.wait().status is State.FAILED
        [report] = handle.reports()
        handle.delete()
    assert "the machine image has no Docker, and" in report.reason
    assert "choose a VM image that has it with options.vm_image" in report.reason
