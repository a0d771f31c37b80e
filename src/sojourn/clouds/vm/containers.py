"""Places in buckets of the user's, and which of them are too close to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    import re

__all__ = ["PATH", "ancestors", "overlap", "parsed"]

PATH = r"(/(?P<folder>[\w.=+@:/-]*))?"  # what may follow the name of a bucket


def parsed(
    text: str, pattern: re.Pattern[str], longest: int, kind: str = "bucket"
) -> tuple[str, str | None]:
    """The bucket and the folder that a container names: `name` leaves the folder to us, `name/` is
    all of the bucket.

    One place is always written in one way: without slashes at its ends or empty parts.
    """
    found = pattern.fullmatch(text)
    parts = (found["folder"] or "").strip("/").split("/") if found else ()
    if not found or len(text) > longest or {".", ".."} & set(parts) or "" in parts[1:]:
        article = f"a {kind} or {kind}/path"
        raise InvalidInput(
            "storage.container",
            f"must be {article} of letters, digits and . _ - = + @ :, got {text!r}",
        )
    return found[kind], None if found["folder"] is None else "/".join(parts)


def overlap(one: str, other: str) -> bool:
    """Whether two folders of a bucket are the same, or one of them is inside the other."""
    parts, others = _parts(one), _parts(other)
    least = min(len(parts), len(others))
    return parts[:least] == others[:least]


def ancestors(folder: str) -> list[str]:
    """The folders that a folder is in, beginning with the whole bucket."""
    parts = _parts(folder)
    return ["/".join(parts[:count]) for count in range(len(parts))]


def _parts(folder: str) -> list[str]:
    return [part for part in folder.split("/") if part]
