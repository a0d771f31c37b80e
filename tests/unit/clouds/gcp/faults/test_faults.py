"""A fault at every single call of every verb: doing it again converges, and nothing is left."""

from __future__ import annotations

import pytest

from tests.unit.clouds.gcp.faults.laptop import Laptop
from tests.unit.clouds.vm import repeating
from tests.unit.clouds.vm.repeating import kinds

pytestmark = pytest.mark.slow


@kinds
def test_a_creation_that_fails_leaves_nothing_or_can_be_repeated(laptop: Laptop, kind: str) -> None:
    repeating.creation_leaves_nothing_or_is_repeated(laptop, kind)


@kinds
def test_a_deletion_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    repeating.deletion_is_repeated(laptop, kind)


@kinds
def test_a_stop_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    repeating.stop_is_repeated(laptop, kind)


@kinds
def test_a_start_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    repeating.start_is_repeated(laptop, kind)


@kinds
def test_a_look_that_fails_changes_nothing(laptop: Laptop, kind: str) -> None:
    repeating.look_changes_nothing(laptop, kind)
