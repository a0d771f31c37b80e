from __future__ import annotations

from typing import Any

import pytest

from sojourn.core.command import command_of
from sojourn.core.task import Task


@pytest.mark.parametrize(
    ("script", "fields", "command"),
    [
        ("#!/bin/sh\nexec wc -l data.csv\n", {}, "wc -l data.csv"),
        ("#!/bin/bash\n# counts\nset -eu\n\nmkdir x\nwc -l\n", {}, "mkdir x ..."),
        ("#!/bin/bash\n./train\n", {"arguments": ("--lr", "a b")}, "./train --lr 'a b'"),
        ("#!/bin/bash\n", {}, ""),
        ("#!/bin/bash\nsetup\n", {"stay": True}, ""),
    ],
)
def test_what_a_task_runs(script: str, fields: dict[str, Any], command: str) -> None:
    assert command_of(Task(script, **fields)) == command
