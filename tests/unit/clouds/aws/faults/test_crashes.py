"""The laptop's side is killed at a call: what it asked for last happens, and nothing after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from sojourn.core.errors import NotFound
from tests.simcloud.aws.calls import Call
from tests.unit.clouds.aws.faults.laptop import Laptop

pytestmark = pytest.mark.slow  # each is a process that loads the SDK

VERB = """
import sys
from sojourn.clouds.aws import resources
from tests.unit.clouds.aws.faults.laptop import Laptop

resources.bundle = lambda *_: b"the agent"
getattr(Laptop(None), sys.argv[1])()
"""


def crash(laptop: Laptop, verb: str, nth: int) -> str:
    """The name of the call at which it was killed; empty if there were not so many."""
    at = ""
    laptop.sim.calls.clear()
    process = subprocess.Popen(
        [sys.executable, "-c", VERB, verb],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    def tell(call: Call) -> None:
        nonlocal at
        if len(laptop.sim.calls) >= nth and not at:
            at = call.name
            process.kill()

    laptop.sim.watch(tell)
    process.wait()
    time.sleep(0.2)  # what was asked for last takes its effect
    laptop.sim.watch(lambda _: None)
    return at


@pytest.mark.parametrize("part", [0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 1.0])
def test_a_creation_that_was_killed_is_repeated_or_deleted(laptop: Laptop, part: float) -> None:
    nth = round(part * len(laptop.calls_of(laptop.create)))
    laptop.delete()
    for repeat in (True, False):
        at = crash(laptop, "create", nth)
        assert at
        if repeat:
            laptop.create()
            assert laptop.has_all(), at
        with suppress(NotFound):  # it was killed before the first effect
            laptop.delete()
        assert laptop.sim.inventory() == [], at


@pytest.mark.parametrize("part", [0.2, 0.4, 0.55, 0.7, 0.8, 0.9])
def test_a_deletion_that_was_killed_is_repeated(laptop: Laptop, part: float) -> None:
    laptop.create()
    nth = round(part * len(laptop.calls_of(laptop.delete)))
    laptop.create()
    at = crash(laptop, "delete", nth)
    assert at
    laptop.delete()
    assert laptop.sim.inventory() == [], at
