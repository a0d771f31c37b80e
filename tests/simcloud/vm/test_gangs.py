"""Gangs on clouds with machines: ranks reach each other, and fall and rise together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn import Handle, State
from tests.contract.clouds.lab import Lab, log_of
from tests.contract.clouds.vm_kit import LAPTOP
from tests.simcloud.vm.sides import Side, machine_of, sides
from tests.support.waiting import until

pytestmark = pytest.mark.slow
_EXAMPLE = Path(__file__).parents[3] / "examples" / "allreduce.py"
_PORT = 7000
_SERVING = f"""#!/usr/bin/env python3
import socket
server = socket.create_server(("", {_PORT}))
print("up", flush=True)
while True:
    server.accept()[0].close()
"""
_CONNECT = f"""
import socket, sys
try:
    socket.create_connection((sys.argv[1], {_PORT}), timeout=60).close()
    print("open")
except OSError as error:
    print("closed")
"""
# So that a slow test does not lose a machine that is no longer needed.
_NO_FURTHER = """\
        while state["step"] == 5 and not Path("/dev/shm/go").exists():
            time.sleep(0.05)
"""
everywhere = sides("aws", full=("az", "gcp"))


def _step(instance: Any) -> int:
    """Up to where the script on a machine has come."""
    found = "find /opt/sojourn/disk -name state.json -exec cat {} +"
    said = instance.machine.run("sh", "-c", found, check=False).stdout
    try:
        return int(json.loads(said)["step"])
    except ValueError:
        return 0


def _starts(handle: Handle, rank: int) -> list[int]:
    """The steps at which the script of a rank started."""
    lines = "\n".join(log_of(handle, rank=rank))
    return [int(step) for step in re.findall(r"starts at step (\d+)", lines)]


@everywhere
def test_all_ranks_go_on_from_the_same_step_after_a_machine_was_lost(side: Side, lab: Lab) -> None:
    pause = "        time.sleep(PAUSE)\n"
    script = _EXAMPLE.read_text().replace(pause, pause + _NO_FURTHER)
    assert _NO_FURTHER in script
    environment = {"STEPS": "10", "PAUSE": "0.3"}
    handle = lab.create(script, parallelism=3, gang=True, environment=environment, spot=0)
    lost = machine_of(side, handle, 1)
    until(lambda: _step(lost) >= 3, 90)
    side.kit.lose_agent(handle, 1)
    until(lambda: all(rank.attempt > 1 and rank.machine for rank in handle.status().ranks), 90)
    side.kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    starts = [_starts(handle, rank)[-1] for rank in range(3)]
    assert starts[0] >= 2
    assert starts == starts[:1] * 3
    assert [log_of(handle, rank=rank)[-1] for rank in range(3)] == [
        f"rank {rank} has 60" for rank in range(3)
    ]
    until(lambda: side.wanted() == [0])
    handle.delete()


@everywhere
def test_a_gang_whose_last_machine_never_comes_gives_up_and_so_does_its_group(
    side: Side, lab: Lab
) -> None:
    side.account.capacity(None, None, 2)
    handle = lab.create("echo up", parallelism=3, gang=True, gang_timeout=10)
    assert handle.wait().status is State.FAILED
    reports = handle.reports()
    assert [report.rank for report in reports] == [0, 1, 2]
    [why] = {report.reason for report in reports}
    # On a busy computer, the second machine may be late as well, and then tell so itself.
    told = re.fullmatch(
        r"the gang was not complete after 10s: no machine for ranks? (\d(?:, \d)?)", why
    )
    assert told
    never = {report.rank for report in reports if not report.started}
    assert never
    assert never <= set(map(int, told[1].split(", ")))
    until(lambda: not [each for each in side.account.instances() if _runs(each)])
    # One that comes after all finds nothing to do.
    side.account.capacity(None, None, True)
    until(lambda: side.wanted() == [0], 90)
    handle.delete()


def _runs(instance: Any) -> bool:
    return instance.machine is not None and instance.machine.alive


@everywhere
def test_ranks_reach_each_other_and_no_other_machine_reaches_them(side: Side, lab: Lab) -> None:
    with side.shared_network() as shared:
        gang = lab.create(_SERVING, parallelism=2, gang=True, **shared)
        other = lab.create(_SERVING, **shared)
        for handle, rank in ((gang, 0), (gang, 1), (other, 0)):
            until(lambda h=handle, r=rank: log_of(h, rank=r) == ["up"], 90)  # type: ignore[misc]
        first, second = (machine_of(side, gang, rank) for rank in range(2))
        stranger = machine_of(side, other, 0)
        assert first.place[0] == second.place[0] == stranger.place[0]
        assert _connects(first, second) == _connects(second, first) == "open"
        assert _connects(stranger, first) == _connects(stranger, second) == "closed"
        assert not side.account.admits(first, _PORT, LAPTOP)
        for handle in (gang, other):
            handle.delete(fetch=False)


def _connects(source: Any, target: Any) -> str:
    return str(source.machine.run("python3", "-c", _CONNECT, target.place[1]).stdout.strip())
