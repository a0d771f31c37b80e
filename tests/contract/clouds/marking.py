"""Marks on all that tests make in a real account, so that nothing else is ever swept away.

`use` of a cloud's `NAME_marks` works in a process that has the variable `SOJOURN_TEST_MARK`; those
that tests start get it by way of `sitecustomize`.
"""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "SOJOURN_TEST_MARK"


class Lasting:
    """As pytest's MonkeyPatch, in a process of its own, in which nothing has to be undone."""

    def setattr(self, target: object, name: str, value: object) -> None:
        setattr(target, name, value)

    def setitem(self, target: dict[str, Any], name: str, value: object) -> None:
        target[name] = value


def the_mark() -> str:
    return os.environ[VARIABLE]


def smallest_machines(patch: Any, types: dict[str, str]) -> None:
    """Tasks that name no machine type get no larger one than needed."""
    patch.setitem(types, "m", types["s"])


def site(cloud: str) -> str:
    """The `sitecustomize` of processes that tests start."""
    module = f"{cloud}_marks"
    return f"from tests.contract.clouds import {module}\n{module}.use()\n"
