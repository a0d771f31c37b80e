"""Places in buckets of the user's, and which of them are too close to each other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, NotFound, SojournError

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    from sojourn.core.task import Task

__all__ = ["PATH", "ancestors", "check_plain", "looking_at", "overlap", "parsed"]

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


def check_plain(task: Task, cloud: str, parse: Callable[[str], object]) -> None:
    """Refuse a container that cannot be one, where it has no options."""
    given = task.storage
    if given.container and given.container_opts:
        names = ", ".join(sorted(given.container_opts))
        raise InvalidInput("storage.container_opts", f"not supported by {cloud}: {names}")
    if given.container:
        parse(given.container)


@contextmanager
def looking_at(bucket: str, is_denied: Callable[[SojournError], bool]) -> Iterator[None]:
    """A bucket of the user's, which may not be there, or not be theirs to use."""
    try:
        yield
    except NotFound as error:
        message = f"bucket {bucket} not found; create it first"
        raise InvalidInput("storage.container", message) from error
    except SojournError as error:
        if not is_denied(error):
            raise
        message = f"access to bucket {bucket} denied; allow it, or choose another"
        raise InvalidInput("storage.container", message) from error


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
