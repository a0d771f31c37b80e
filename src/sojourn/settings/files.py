"""Which settings files there are: the user's own, and that of the project around this folder."""

from __future__ import annotations

import os
from pathlib import Path

from sojourn.core.userfolders import config_home
from sojourn.settings.document import Document, read_document

__all__ = ["OWN", "PROJECT", "documents", "ignored_file", "user_file"]

PROJECT = "sojourn.toml"
OWN = "~/.config/sojourn/config.toml"  # for people
_TABLES = ("clouds", "defaults", "profiles")


def user_file() -> Path:
    """The one of the user, whether or not it exists."""
    return config_home() / "sojourn" / "config.toml"


def documents() -> list[Document]:
    """All that exist; the last one wins. Anything that is not a setting is refused."""
    found = [read_document(user_file())]
    nearest = _project_file()
    if nearest and _is_trusted(nearest):
        found.append(read_document(nearest, project=True))
    every = [document for document in found if document is not None]
    for document in every:
        _check_tables(document)
    return every


def ignored_file() -> Path | None:
    """The project's file, if it belongs to another user.

    Settings decide what is uploaded, and with whose credentials: nobody else may, least of all in
    folders such as /tmp, where anyone can create a file.
    """
    nearest = _project_file()
    return None if nearest is None or _is_trusted(nearest) else nearest


def _project_file() -> Path | None:
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return None
    for folder in (here, *here.parents):
        if os.path.lexists(folder / PROJECT):
            return folder / PROJECT
    return None


def _is_trusted(path: Path) -> bool:
    try:
        owners = {path.lstat().st_uid, path.stat().st_uid}
    except OSError:
        return True  # reading it says what is wrong
    return owners <= {0, os.getuid(), _who_became_root()}


def _who_became_root() -> int:
    """The user that sudo was called by; if there is none, root itself."""
    called = os.environ.get("SUDO_UID", "")
    return int(called) if os.getuid() == 0 and called.isdecimal() else os.getuid()


def _check_tables(document: Document) -> None:
    for name in document.data:
        if name not in _TABLES:
            raise document.problem((name,), f"unknown table (available: {', '.join(_TABLES)})")
        document.table(name)
