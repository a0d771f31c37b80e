"""Settings files: named clouds, defaults and profiles, each value with the line it stands on.

    $XDG_CONFIG_HOME/sojourn/config.toml    the user's, ~/.config without the variable
    sojourn.toml                            a project's, in the current folder or above it

What does not belong here: what a setting means. Clouds and tasks know that.
"""

from __future__ import annotations

from sojourn.settings.document import Document
from sojourn.settings.files import OWN, PROJECT, documents, ignored_file, user_file

__all__ = ["OWN", "PROJECT", "Document", "documents", "ignored_file", "user_file"]
