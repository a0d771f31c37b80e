"""What a cloud warns of when it checks a task."""

from __future__ import annotations

from sojourn.core.context import Context
from sojourn.core.events import Event, Warned
from sojourn.core.interfaces import Cloud
from sojourn.core.task import Task

__all__ = ["warnings_of"]


def warnings_of(cloud: Cloud, task: Task) -> list[str]:
    """The warnings before a creation; front ends show these without being asked, plans too."""
    events: list[Event] = []
    list(cloud.check(Context(events.append), task))
    return [event.message for event in events if isinstance(event, Warned)]
