from __future__ import annotations

from typing import Any

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from sojourn.taskfiles.changes import Fields, changed

TASK = Task("#!/bin/sh", environment={"A": "1"}, storage=Storage("w", "o"), timeout=60)


def test_every_field_can_be_changed() -> None:
    fields = {*Task.__dataclass_fields__, *Storage.__dataclass_fields__} - {"runner"}
    assert set(Fields.__annotations__) == fields
    with pytest.raises(InvalidInput, match="runner"):
        changed(TASK, {"runner": None})


def test_fields_of_the_task_and_of_its_storage() -> None:
    new = changed(TASK, {"timeout": "1h", "output": "results", "environment": {"B": "2"}})
    assert (new.timeout, new.storage) == (3600, Storage("w", "results"))
    assert new.environment == {"A": "1", "B": "2"}
    assert changed(TASK, {"storage": Storage("x"), "output": "y"}).storage == Storage("x", "y")
    assert changed(TASK, {}) is TASK


@pytest.mark.parametrize("name", ["tags", "mounts", "options"])
def test_other_maps_are_replaced(name: str) -> None:
    task = changed(TASK, {name: {"a": "1"}})
    assert getattr(changed(task, {name: {"b": "2"}}), name) == {"b": "2"}
    with pytest.raises(InvalidInput, match=f"{name}: must be a map of strings to strings"):
        changed(TASK, {name: {"a": 1}})


def test_all_problems_at_once() -> None:
    wrong: dict[str, Any] = {"wrokdir": ".", "output": "../x", "parallelism": 0, "environment": 1}
    with pytest.raises(InvalidInput) as caught:
        changed(TASK, wrong)
    assert [p.path for p in caught.value.problems] == [
        "wrokdir",
        "storage.output",
        "parallelism",
        "environment",
    ]
    assert caught.value.problems[0].message == "unknown field; did you mean workdir?"
