"""A fault at every single call of every verb: doing it again converges, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from sojourn.core.errors import NotFound, SojournError
from tests.unit.clouds.az.faults.laptop import Laptop

pytestmark = pytest.mark.slow

KINDS: dict[str, dict[str, Any]] = {
    "refused": {"code": "AuthorizationFailed", "status": 403},
    "done and refused": {"code": "AuthorizationFailed", "status": 403, "after": True},
    "unanswered": {"cut": True},
    "done and unanswered": {"cut": True, "after": True},
}
# Every third call meets one kind; that every call meets every kind takes longer.
EACH_IN_TURN = "any"
kinds = pytest.mark.parametrize(
    "kind", [EACH_IN_TURN, *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS)]
)


def faulty(laptop: Laptop, given: str, verb: Callable[[], object]) -> Iterator[str]:
    """Do it with a fault at the first call, the second, and so on; gives what was hit, and how."""
    for nth in range(1, 200, 3 if given == EACH_IN_TURN else 1):
        kind = list(KINDS)[nth % len(KINDS)] if given == EACH_IN_TURN else given
        laptop.sim.calls.clear()
        laptop.sim.fail("*", nth=nth, **KINDS[kind])
        try:
            verb()
            outcome = "it was done all the same"
        except SojournError as error:
            outcome = str(error)
        struck = len(laptop.sim.calls) >= nth
        laptop.sim.heal()
        if not struck:
            return
        yield f"{kind} at {nth}, {laptop.sim.calls[nth - 1].name}: {outcome}"
    raise AssertionError("a verb with so many calls?")


@kinds
def test_a_creation_that_fails_leaves_nothing_or_can_be_repeated(laptop: Laptop, kind: str) -> None:
    seen = 0
    for what in faulty(laptop, kind, laptop.create):
        left = laptop.sim.inventory()
        if "all the same" not in what:
            assert not left or "Could not remove" in what or "AuthorizationFailed" not in what, (
                what,
                left,
            )
        laptop.create()
        assert laptop.has_all(), what
        laptop.delete()
        assert laptop.sim.inventory() == [], what
        seen += 1
    assert seen > (10 if kind == EACH_IN_TURN else 30)


@kinds
def test_a_deletion_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    laptop.create()
    seen = 0
    for what in faulty(laptop, kind, laptop.delete):
        with suppress(NotFound):  # the last call had its effect
            laptop.delete()
        assert laptop.sim.inventory() == [], what
        laptop.create()
        seen += 1
    assert seen > (5 if kind == EACH_IN_TURN else 15)
    assert laptop.sim.inventory() == []


@kinds
def test_a_stop_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    laptop.create()
    for what in faulty(laptop, kind, laptop.stop):
        laptop.stop()
        assert laptop.machines() == (), what
        laptop.start()
    laptop.delete()
    assert laptop.sim.inventory() == []


@kinds
def test_a_start_that_fails_can_be_repeated(laptop: Laptop, kind: str) -> None:
    laptop.create()
    laptop.stop()
    for what in faulty(laptop, kind, laptop.start):
        laptop.start()
        assert laptop.has_all(), what
        laptop.stop()
    laptop.delete()
    assert laptop.sim.inventory() == []


@kinds
def test_a_look_that_fails_changes_nothing(laptop: Laptop, kind: str) -> None:
    laptop.create()
    for what in faulty(laptop, kind, laptop.status):
        assert laptop.has_all(), what
        assert laptop.status().state.value == "provisioning", what
    laptop.delete()
    assert laptop.sim.inventory() == []
