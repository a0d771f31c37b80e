"""Marks on all that tests make in a real AWS account, so that nothing else is ever swept away.

`use` works in a process that has the variable `SOJOURN_TEST_MARK`; those that tests start get it by
way of `sitecustomize`, see `aws_real_kit`.
"""

from __future__ import annotations

import os
from typing import Any

from sojourn.clouds.aws import machine_types, tags

MARK = "sojourn:test"
VARIABLE = "SOJOURN_TEST_MARK"


def use(patch: Any = None) -> None:
    """Tag what is made with the mark, and make no larger machines than needed."""
    mark = os.environ[VARIABLE]
    of_task = tags.tags_of
    set_attribute = patch.setattr if patch else setattr
    set_item = patch.setitem if patch else dict.__setitem__
    set_attribute(tags, "tags_of", lambda *given: {**of_task(*given), MARK: mark})
    set_item(machine_types._TYPES, "m", machine_types._TYPES["s"])
