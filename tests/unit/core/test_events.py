from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn.core import events
from sojourn.core.events import (
    CloudEvent,
    Downloaded,
    Event,
    LogLine,
    Note,
    Progress,
    StatusChanged,
    StepEnded,
    StepStarted,
    Warned,
)

EVENTS: list[tuple[Event, dict[str, Any]]] = [
    (StepStarted("a"), {"type": "step-started", "step": "a", "phase": ""}),
    (
        StepEnded("a", 1.5, phase="b"),
        {"type": "step-ended", "step": "a", "seconds": 1.5, "error": "", "phase": "b"},
    ),
    (
        Progress("a", 1, -1),
        {"type": "progress", "step": "a", "done": 1, "total": -1, "unit": "bytes"},
    ),
    (
        Downloaded(2, 5, "/home/you"),
        {"type": "downloaded", "files": 2, "bytes": 5, "folder": "/home/you"},
    ),
    (Note("é\n"), {"type": "note", "message": "é\n"}),
    (Warned("w"), {"type": "warned", "message": "w"}),
    (
        StatusChanged("tpi-x", "failed", "why", 3),
        {
            "type": "status-changed",
            "id": "tpi-x",
            "state": "failed",
            "reason": "why",
            "exit_code": 3,
        },
    ),
    (
        LogLine(0, 1, "t", "text", id="tpi-x"),
        {
            "type": "log-line",
            "rank": 0,
            "attempt": 1,
            "time": "t",
            "text": "text",
            "partial": False,
            "id": "tpi-x",
        },
    ),
    (
        CloudEvent("t", "c", "d"),
        {"type": "cloud-event", "time": "t", "code": "c", "description": "d"},
    ),
]


@pytest.mark.parametrize(("event", "expected"), EVENTS)
def test_json(event: Event, expected: dict[str, Any]) -> None:
    assert json.loads(json.dumps(event.to_dict())) == expected
    assert next(iter(event.to_dict())) == "type"


def test_every_event_is_in_the_table() -> None:
    """The JSON form is a promise, so a new event is written down here as well."""
    classes = {getattr(events, name) for name in events.__all__} - {Event, events.Emit}
    assert {type(event) for event, _ in EVENTS} == classes
    assert set(Event.__subclasses__()) == classes
