"""A cloud that fails at any single call of any verb: repeating converges, deleting leaves nothing.

The calls are counted first, on a run without faults, and then each of them fails in turn, once
before and once after it had its effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

import sojourn
from sojourn import clouds
from sojourn.core.errors import CapacityError, Transient
from tests.contract.clouds.faults import Faults, FaultyCloud
from tests.contract.clouds.lab import Lab

SCRIPT = "mkdir -p output; echo result > output/file"
Verb = Callable[[Lab], object]


class Laboratory:
    """Runs verbs on a cloud with faults."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lab = lab
        self._patch = monkeypatch
        self._load = clouds.load

    def calls(self, verb: Verb) -> int:
        """How many calls a verb makes when nothing fails."""
        faults = self._with(Faults())
        verb(self._lab)
        self._patch.setattr(clouds, "load", self._load)
        return faults.calls

    def fails(self, verb: Verb, at: int, after: bool) -> None:
        """A verb with a fault; it may survive it, but if not, only by that very error."""
        self._with(Faults(at, after=after))
        with suppress(Transient):
            verb(self._lab)
        self._patch.setattr(clouds, "load", self._load)

    def refused(self, verb: Verb, at: int) -> str | None:
        """The hint of a verb with a fault that no repetition mends; None if it survives it."""
        self._with(Faults(at, error=CapacityError))
        try:
            verb(self._lab)
        except CapacityError as error:
            return error.hint
        finally:
            self._patch.setattr(clouds, "load", self._load)
        return None

    def _with(self, faults: Faults) -> Faults:
        self._patch.setattr(clouds, "load", lambda name: FaultyCloud(self._load(name), faults))
        return faults


@pytest.fixture
def laboratory(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    (lab.workdir / "data").write_text("data")
    return Laboratory(lab, monkeypatch)


def create(lab: Lab) -> sojourn.Handle:
    return lab.create(SCRIPT, name="faulty")


def delete(lab: Lab) -> None:
    sojourn.get("tpi-faulty").delete()


def stop(lab: Lab) -> None:
    sojourn.get("tpi-faulty").stop()


def start(lab: Lab) -> None:
    sojourn.get("tpi-faulty").start()


def pull(lab: Lab) -> None:
    sojourn.get("tpi-faulty").pull()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_create(lab: Lab, laboratory: Laboratory, after: bool) -> None:
    calls = laboratory.calls(create)
    delete(lab)
    for at in range(1, calls + 1):
        laboratory.fails(create, at, after)
        assert lab.kit.leaks() == [], f"after a fault at call {at}"
    assert create(lab).wait().exit_code == 0
    delete(lab)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", [stop, start, pull], ids=["stop", "start", "pull"])
def test_verbs(lab: Lab, laboratory: Laboratory, verb: Verb, after: bool) -> None:
    handle = create(lab)
    for at in range(1, laboratory.calls(verb) + 1):
        laboratory.fails(verb, at, after)
        verb(lab)
    handle.start()
    assert handle.wait().exit_code == 0
    handle.delete()
    assert lab.output() == {"file": "result\n"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_delete(lab: Lab, laboratory: Laboratory, after: bool) -> None:
    create(lab).wait()
    calls = laboratory.calls(delete)
    for at in range(1, calls + 1):
        (lab.workdir / "output/file").unlink()
        create(lab).wait()
        laboratory.fails(delete, at, after)
        for handle in sojourn.list_tasks():
            handle.delete()
        assert lab.kit.leaks() == [], f"after a fault at call {at}"
        assert lab.output() == {"file": "result\n"}, f"lost by a fault at call {at}"


def test_run_without_an_upload(lab: Lab, laboratory: Laboratory) -> None:
    """An error that no repetition mends leaves nothing behind, or the hint says what and how to
    delete it."""

    def run(lab: Lab) -> None:
        lab.run("echo done", storage=sojourn.Storage())

    for at in range(1, laboratory.calls(run) + 1):
        hint = laboratory.refused(run, at)
        left = sojourn.list_tasks()
        for handle in left:
            told = hint is None or re.search(rf"sojourn delete (--force )?{handle.id}", hint)
            assert told, f"at call {at}: {hint}"
            handle.delete(force=True, fetch=False)
        assert lab.kit.leaks() == [], f"after a fault at call {at}"
