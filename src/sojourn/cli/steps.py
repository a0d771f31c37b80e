"""How words are shown: `~` for the home, names for ids, the past tense for steps that are over."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["brief", "done", "name", "short"]

# An id where a message tells of a task: at its beginning, after these words, or in a command. What
# belongs to a task in a cloud has the same name, and keeps it.
_TOLD = re.compile(r"(^|[Tt]ask |Keeping |`sojourn [^`]*?)\b(tpi-[a-z0-9-]+)", re.MULTILINE)

_PAST = {
    "Asking": "Asked",
    "Cleaning": "Cleaned",
    "Creating": "Created",
    "Deleting": "Deleted",
    "Downloading": "Downloaded",
    "Installing": "Installed",
    "Interrupting": "Interrupted",
    "Making": "Made",
    "Registering": "Registered",
    "Removing": "Removed",
    "Running": "Ran",
    "Starting": "Started",
    "Stopping": "Stopped",
    "Storing": "Stored",
    "Uploading": "Uploaded",
    "Waiting": "Waited",
}


def done(step: str) -> str:
    """The step in the past tense."""
    verb, space, rest = step.partition(" ")
    return f"{_PAST[verb]}{space}{rest}" if verb in _PAST else f"{step}: done"


def short(step: str) -> str:
    """The step with `~` for the user's home."""
    return step.replace(f" {Path.home()}/", " ~/")


def brief(text: str) -> str:
    """A message with `~` for the user's home, and with names of tasks, which commands take."""
    return _TOLD.sub(lambda found: found[1] + name(found[2]), short(text))


def name(id: str) -> str:
    """The name of a task, if that is enough."""
    from sojourn.api.finding import name_of  # few messages tell of a task

    return name_of(id)
