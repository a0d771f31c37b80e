from __future__ import annotations

import json

import pytest

from sojourn.core.report import Outcome, Report


@pytest.mark.parametrize(
    ("outcome", "text", "final"),
    [
        (Outcome.SUCCEEDED, "succeeded", True),
        (Outcome.FAILED, "failed", True),
        (Outcome.TIMED_OUT, "timed-out", True),
        (Outcome.PREEMPTED, "preempted", False),
        (Outcome.LOST, "lost", False),
    ],
)
def test_outcomes(outcome: Outcome, text: str, final: bool) -> None:
    assert (str(outcome), f"{outcome}", outcome.final) == (text, text, final)


@pytest.mark.parametrize("outcome", Outcome)
def test_round_trip(outcome: Outcome) -> None:
    report = Report(
        3, 2, outcome, "why é", 137, "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", 7, 5
    )
    read = Report.from_dict(json.loads(json.dumps(report.to_dict())))
    assert read == report
    assert read.outcome is outcome


@pytest.mark.parametrize(
    "lie",
    [
        {"reason": 1},
        {"started": None},
        {"exit_code": "0"},
        {"exit_code": -1},
        {"exit_code": 256},
        {"exit_code": True},
        {"lost": "1"},
        {"rank": 1.5},
        {"segments": []},
    ],
)
def test_what_is_no_report_is_refused(lie: dict[str, object]) -> None:
    honest = Report(0, 1, Outcome.FAILED, "why", 3).to_dict()
    Report.from_dict(honest)
    with pytest.raises(ValueError, match="must be"):
        Report.from_dict(honest | lie)


def test_to_dict() -> None:
    assert Report(0, 1, Outcome.FAILED, "exit code 3", 3).to_dict() == {
        "rank": 0,
        "attempt": 1,
        "outcome": "failed",
        "reason": "exit code 3",
        "exit_code": 3,
        "started": "",
        "ended": "",
        "segments": -1,
        "lost": 0,
    }


def test_other_versions() -> None:
    newer = {"rank": 0, "attempt": 1, "outcome": "lost", "reason": "r", "future": 1}
    assert Report.from_dict(newer) == Report(0, 1, Outcome.LOST, "r")
