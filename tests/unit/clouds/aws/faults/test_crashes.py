"""The laptop's side is killed at a call: what it asked for last happens, and nothing after it."""

from __future__ import annotations

import pytest

from tests.unit.clouds.aws.faults.laptop import Laptop
from tests.unit.clouds.vm import crashing

pytestmark = pytest.mark.slow  # many processes


@pytest.mark.parametrize("repeated", [True, False], ids=["repeated", "deleted"])
def test_a_creation_that_is_killed_at_any_call(laptop: Laptop, repeated: bool) -> None:
    crashing.creation_that_is_killed(laptop, repeated=repeated)


def test_a_deletion_that_is_killed_at_any_call(laptop: Laptop) -> None:
    crashing.deletion_that_is_killed(laptop)


@pytest.mark.parametrize(("verb", "back"), [("stop", "start"), ("start", "stop")])
def test_a_change_that_is_killed_at_any_call(laptop: Laptop, verb: str, back: str) -> None:
    crashing.change_that_is_killed(laptop, verb, back)
