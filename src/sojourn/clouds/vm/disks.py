"""The size of a machine's disk: what the user wants, or what the image needs if that is more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["disk_size", "note_on_disk"]


def disk_size(task: Task, least: int) -> int:
    """In GB; -1: as large as the image says. `least`: what the image needs, 0 if nobody knows."""
    return max(task.disk_size, least) if task.disk_size > 0 else -1


def note_on_disk(task: Task, least: int, image: str) -> list[str]:
    """What to tell the user of it."""
    if disk_size(task, least) == task.disk_size:
        return []
    return [f"disk_size: using {least} GB, which the image {image!r} needs"]
