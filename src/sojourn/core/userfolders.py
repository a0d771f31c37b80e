"""The folders of a user that the XDG Base Directory Specification names."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_home", "config_home", "data_home", "state_home"]


def data_home() -> Path:
    """$XDG_DATA_HOME, or ~/.local/share: what must not be lost."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_home() -> Path:
    """$XDG_CACHE_HOME, or ~/.cache: what can be fetched or made again."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_home() -> Path:
    """$XDG_CONFIG_HOME, or ~/.config: what the user set."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_home() -> Path:
    """$XDG_STATE_HOME, or ~/.local/state: what one computer remembers."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if os.path.isabs(value) else Path.home() / fallback
