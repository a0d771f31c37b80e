"""Whose runners they are, by an address, and what to say if a token does not let us at them."""

from __future__ import annotations

import urllib.parse
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.core.errors import AuthError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.forges.http import Http

__all__ = ["explained", "names_in", "require_token"]


def names_in(repo: str) -> list[str]:
    """The names that the path of an address is made of."""
    path = urllib.parse.urlsplit(repo).path.removesuffix(".git")
    return [name for name in path.split("/") if name]


@contextmanager
def explained(http: Http, names: Sequence[str], rights: str) -> Iterator[None]:
    """Say what a token needs that cannot do what it is asked to."""
    try:
        yield
    except NotFound as error:  # forges do not tell of what the token may not see
        raise NotFound(
            f"{'/'.join(names)} not found on {http.host}, or not visible to the token", hint=rights
        ) from error
    except AuthError as error:
        error.hint = error.hint or rights
        raise


def require_token(token: str) -> None:
    """For a runner that leaves: nothing that its machine has by itself is enough."""
    if not token:
        raise AuthError("only a token of the repository's owner can remove a runner")
