"""Names of images that mean the same on every cloud that has them.

`docker://NAME` is a container image, `sojourn:NAME` a machine image that `sojourn image make` made.
"""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["MADE", "PREFIX", "check_name", "container_image", "is_reference", "made_image"]

PREFIX = "docker://"
MADE = "sojourn:"
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")  # all clouds take it in names of their own
_LONGEST = 255  # characters of a name without its tag and digest
_HOST = r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d))(:\d{1,5})?"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>({_HOST}/)?{_PART}(/{_PART})*)"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?",
    re.ASCII,
)


def container_image(image: str) -> str:
    """The name of the container image that an `image` is; empty if it is none.

    Refuses what cannot be one.
    """
    if not image.startswith(PREFIX):
        return ""
    given = image.removeprefix(PREFIX)
    if not is_reference(given):
        raise InvalidInput(
            "image",
            f"must be {PREFIX}[REGISTRY/]NAME[:TAG][@DIGEST] with a name in lower case, such as "
            f"{PREFIX}python:3.12-slim, got {image!r}",
        )
    return given


def is_reference(name: str) -> bool:
    """Whether it can be the name of a container image."""
    found = _REFERENCE.fullmatch(name)
    return found is not None and len(found["name"]) <= _LONGEST


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an image that is made."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "name",
            "must start with a letter and have up to 40 lower-case letters, digits and dashes, "
            f"got {name!r}",
        )


def made_image(image: str) -> str:
    """The name of the image of ours that an `image` is; empty if it is none.

    Refuses what cannot be one.
    """
    if not image.startswith(MADE):
        return ""
    name = image.removeprefix(MADE)
    try:
        check_name(name)
    except InvalidInput as error:
        raise InvalidInput("image", f"the name after {MADE} {error.problems[0].message}") from error
    return name
