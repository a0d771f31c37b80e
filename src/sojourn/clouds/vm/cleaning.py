"""Cleaning a machine, from the laptop: what an image of it must not have is removed there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sojourn.clouds.vm.reach import ON_MACHINE
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.vm.known import Known
    from sojourn.clouds.vm.task_context import Offers
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, KeyPair, Reach
    from sojourn.core.task import Task

__all__ = ["Cleaner", "keys_of"]

_COMMAND = f'{ON_MACHINE}.cleaning "$@"'
_LINES = 5  # of what it printed, for an error
_KEPT = 16 << 10  # bytes


A = TypeVar("A")
K = TypeVar("K", bound="Known[Any]")
S = TypeVar("S", bound="Offers[Any]")


class Cleaner(Generic[A, K, S]):
    """What the images of all clouds have in common whose machines boot."""

    def __init__(self, cloud: Cloud, account: A, locations: K, offers: S) -> None:
        self._cloud = cloud
        self._account = account
        self._locations = locations
        self._offers = offers

    def check(self, ctx: Context, task: Task) -> None:
        """Of most clouds, all machines will do."""

    def clean(self, ctx: Context, id: TaskId, machine: str) -> None:
        keys = keys_of(self._cloud.scaler(id).keys(ctx), self._cloud.data(id).load(ctx))
        _clean(ctx, self._cloud.reach(id, machine), keys)


def keys_of(pair: KeyPair | None, task: Task) -> list[str]:
    """The public keys that a task lets in, without their comments."""
    given = [pair.public if pair else "", task.options.get("ssh_key", "")]
    return [words[1] for words in map(str.split, given) if len(words) > 1]


def _clean(ctx: Context, reach: Reach, keys: Sequence[str]) -> None:
    """Remove all of the task from a machine; it cannot be reached after it."""
    process = reach.run(ctx, ["/bin/sh", "-c", _COMMAND, "sh", *keys])
    try:
        process.close_input()
        said = b""
        for _, data in process.output():
            said = (said + data)[-_KEPT:]
        code = process.wait()
    finally:
        process.close()
    if code:
        last = said.decode(errors="replace").splitlines()[-_LINES:]
        lines = "".join(f"\n  {line}" for line in last)
        raise SojournError(f"Could not clean the machine: exit code {code}{lines}")
