"""Who gets in to machines by SSH, on every simulated cloud whose machines boot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

from sojourn import Handle, Machine, State, Warned
from sojourn.engine import answering
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.lab import WAITING, Lab, log_of
from tests.contract.clouds.vm_kit import LAPTOP, VmKit
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow
_FOREIGN = "192.0.2.0/24"


@pytest.fixture(params=["aws", *(pytest.param(n, marks=pytest.mark.full) for n in ("az", "gcp"))])
def kit(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[VmKit]:
    """All clouds have this in common, so that ordinary runs look at one of them."""
    module = import_module(f"tests.contract.clouds.{request.param}_kit")
    with in_use(module.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


def _sojourn(*words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "sojourn.cli", *words)
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(60)
    )


def _from(lab: Lab, networks: str) -> Handle:
    return lab.create(WAITING, options={"ssh_from": networks})


def test_options_ssh_from_decides_who_gets_in(lab: Lab) -> None:
    admitted = [_from(lab, ""), _from(lab, f"{_FOREIGN}, {LAPTOP}")]
    others = [_from(lab, "none"), _from(lab, _FOREIGN)]
    for handle in (*admitted, *others):
        until(lambda handle=handle: log_of(handle) == ["up"], 60)  # type: ignore[misc]
    for handle in admitted:
        done = _sojourn("exec", handle.id, "--", "echo", "inside")
        assert (done.returncode, done.stdout) == (0, "inside\n"), done.stderr
    for handle in others:
        for words in (("exec", handle.id, "--", "echo", "inside"), ("ssh", handle.id)):
            done = _sojourn(*words)
            assert done.returncode not in (0, 255), done.stderr
            assert done.stdout == ""
            assert "Could not connect to machine" in done.stderr
            assert "options.ssh_from" in done.stderr
    for handle in (*admitted, *others):
        handle.delete(fetch=False)


def test_a_machine_that_nobody_may_reach_is_made_all_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_OUT_OF_REACH_AFTER", 1.0)
    machine = Machine.create(
        cloud=lab.kit.cloud, options={"ssh_from": "none"}, on_event=lab.events.append
    )
    told = [event.message for event in lab.events if isinstance(event, Warned)]
    assert any("running, but cannot be reached from this computer" in each for each in told)
    assert machine.status().state is State.RUNNING
    machine.delete()
