"""What machines are told is read as it was written, also by and of another version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sojourn.clouds.gcp.on_machine.settings import Settings
from tests.unit.clouds.vm.told import PLACES

_SETTINGS = Settings(**PLACES, zone="us-west1-b", group="https://x/group")


def test_it_is_on_one_level_and_read_as_it_was_written() -> None:
    data = json.loads(json.dumps(_SETTINGS.as_data()))
    assert {"id", "ttl", "boot", "group"} <= data.keys()
    assert "common" not in data
    assert Settings.parse({**data, "unheard of": 1}) == _SETTINGS


@pytest.mark.parametrize(("name", "value"), [("marks", False), ("gang", 0), ("container", "")])
def test_what_came_later_may_be_missing(name: str, value: Any) -> None:
    data = _SETTINGS.as_data()
    del data[name]
    wanted = replace(_SETTINGS.common, **{name: value})
    assert Settings.parse(data) == replace(_SETTINGS, common=wanted)
