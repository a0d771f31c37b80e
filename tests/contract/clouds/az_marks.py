"""Marks on all that tests make in a real Azure subscription: a tag. See `marking`."""

from __future__ import annotations

from typing import Any

from sojourn.clouds.az import machine_types, tags
from tests.contract.clouds.marking import Lasting, smallest_machines, the_mark

MARK = "sojourn:test"


def use(patch: Any = None) -> None:
    patch = patch or Lasting()
    mark, of_task = the_mark(), tags.tags_of
    patch.setattr(tags, "tags_of", lambda *given: {**of_task(*given), MARK: mark})
    smallest_machines(patch, machine_types._TYPES)
