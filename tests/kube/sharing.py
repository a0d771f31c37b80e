"""One cluster for all test runs of this computer that want one at the same time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kube import cluster, layout, places
from tests.kube.api import Api

__all__ = ["shared"]


@contextmanager
def shared() -> Iterator[Api]:
    """The cluster, until nobody uses it any more; one that was started by hand stays.

    Each user has a lock of those that many can have, which ends with its process at the latest.
    """
    gate = f"{layout.STATE.name}.gate"
    with places.lock_file(f"{layout.STATE.name}.users").open("w") as users:
        with places.locked(gate):
            fcntl.flock(users, fcntl.LOCK_SH)
            api = cluster.up(_say_nothing)
        try:
            yield api
        finally:
            with places.locked(gate):
                if _is_last(users.fileno()) and not cluster.kept():
                    cluster.down(_say_nothing)


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say_nothing(text: str) -> None:
    pass
