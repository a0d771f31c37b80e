"""How steps are shown: with `~` for the home, and in the past tense once they are over."""

from __future__ import annotations

from pathlib import Path

__all__ = ["done", "short"]

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
