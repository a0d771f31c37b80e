"""The small files that a task brings into its workdir, beside what was pushed.

The agent writes them. As long as the script leaves them alone, they are no results.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from sojourn.core.gang import relative
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import FILE, FOLDER, Entry, Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.storage.join import Base

__all__ = ["with_given"]


def with_given(base: Base, files: Mapping[str, str]) -> Base:
    """What an attempt that begins anew finds in its workdir; only good to compare with."""
    found = dict(base)
    for path, text in relative(files).items():
        folder = posixpath.dirname(path)
        while folder and folder not in found:
            found[folder] = Entry(folder, FOLDER, 0o755, 0)
            folder = posixpath.dirname(folder)
        data = text.encode("utf-8", "surrogateescape")
        parts = (Part("", 0, len(data), digest_of(data)),) if data else ()
        found[path] = Entry(path, FILE, 0o644, 0, len(data), parts)
    return found
