"""Names of container images: `docker://NAME`, which means the same on every cloud that has them."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["PREFIX", "container_image"]

PREFIX = "docker://"
_LONGEST = 255  # characters of a name without its tag and digest
_HOST = r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d))(:\d{1,5})?"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>({_HOST}/)?{_PART}(/{_PART})*)"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def container_image(image: str) -> str:
    """The name of the container image that an `image` is; empty if it is none.

    Refuses what cannot be one.
    """
    if not image.startswith(PREFIX):
        return ""
    given = image.removeprefix(PREFIX)
    found = _REFERENCE.fullmatch(given)
    if not found or len(found["name"]) > _LONGEST:
        raise InvalidInput(
            "image",
            f"must be {PREFIX}[REGISTRY/]NAME[:TAG][@DIGEST] with a name in lower case, such as "
            f"{PREFIX}python:3.12-slim, got {image!r}",
        )
    return given
