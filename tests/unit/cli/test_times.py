"""Ages, and points in time that options take."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from sojourn.cli.times import age, moment
from sojourn.core.clock import utc
from sojourn.core.errors import InvalidInput

_NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        ({"seconds": -5}, "0s"),  # its clock is ahead of ours
        ({"seconds": 0}, "0s"),
        ({"seconds": 119}, "119s"),
        ({"minutes": 2}, "2m"),
        ({"minutes": 2, "seconds": 10}, "2m10s"),
        ({"minutes": 35, "seconds": 10}, "35m"),
        ({"hours": 2, "minutes": 59}, "179m"),
        ({"hours": 5, "minutes": 20}, "5h20m"),
        ({"hours": 30, "minutes": 20}, "30h"),
        ({"days": 3, "hours": 4}, "3d4h"),
        ({"days": 400}, "400d"),
    ],
)
def test_ages(ago: dict[str, int], shown: str) -> None:
    assert age(utc(_NOW - timedelta(**ago)), _NOW) == shown


@pytest.mark.parametrize("text", ["", "yesterday"])
def test_an_age_that_is_not_known(text: str) -> None:
    assert age(text, _NOW) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10m", "2026-01-31T11:50:00.000000Z"),
        ("1h30m", "2026-01-31T10:30:00.000000Z"),
        ("2d", "2026-01-29T12:00:00.000000Z"),
        ("0s", "2026-01-31T12:00:00.000000Z"),
        ("2026-01-31T11:00:00Z", "2026-01-31T11:00:00.000000Z"),
        ("2026-01-31T11:00:00.500+01:00", "2026-01-31T10:00:00.500000Z"),
        ("2026-01-31T11:00:00.500000", "2026-01-31T11:00:00.500000Z"),
        ("2026-01-31", "2026-01-31T00:00:00.000000Z"),
    ],
)
def test_moments(text: str, expected: str) -> None:
    assert utc(moment("since", text, _NOW)) == expected


def test_a_moment_before_all_time() -> None:
    assert utc(moment("since", "999999999999d", _NOW)) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("text", ["", "10x", "m", "-5m", "yesterday", "5m10"])
def test_no_moment(text: str) -> None:
    with pytest.raises(InvalidInput, match="since: must be a duration such as 10m"):
        moment("since", text, _NOW)
