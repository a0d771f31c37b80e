from __future__ import annotations

import pytest

from sojourn.terraform.plugin.durations import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("500ms", 0.5), (".5s", 0.5)],
)
def test_durations_are_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "0s", "5 m", "1d", "5m!", "1h x"])
def test_anything_else_is_none(text: str) -> None:
    assert seconds(text) is None
