"""A cloud that fails at its n-th call, before or after the call had its effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sojourn import clouds
from sojourn.core.errors import SojournError, Transient
from sojourn.core.interfaces import Cloud

_CALLS = {
    "read",
    "create",
    "delete",
    "scale",
    "fleet",
    "alone",
    "save",
    "load",
    "push",
    "pull",
    "records",
}


class Faults:
    """When to fail. `calls` counts them, so that a test can go through all."""

    def __init__(
        self, at: int = -1, *, after: bool = False, error: type[SojournError] = Transient
    ) -> None:
        self.at = at
        self.error = error
        self.after = after
        self.calls = 0

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls != self.at:
            return method(*args, **more)
        if self.after:
            method(*args, **more)
        raise self.error(f"injected fault at call {self.at}, {method.__qualname__}")


class FaultyCloud:
    """The cloud it wraps, with all that it hands out wrapped as well."""

    def __init__(self, cloud: Cloud, faults: Faults) -> None:
        self._cloud = cloud
        self._faults = faults
        self.name = cloud.name
        self.features = cloud.features

    def check(self, *args: Any) -> Any:
        return self._cloud.check(*args)

    def tasks(self, ctx: Any) -> Iterator[Any]:
        return self._cloud.tasks(ctx)

    def states(self, *args: Any) -> Any:
        return self._cloud.states(*args)

    def resources(self, *args: Any) -> list[Any]:
        return [_Faulty(resource, self._faults) for resource in self._cloud.resources(*args)]

    def scaler(self, id: Any) -> Any:
        return _Faulty(self._cloud.scaler(id), self._faults)

    def data(self, id: Any) -> Any:
        return _Faulty(self._cloud.data(id), self._faults)


@contextmanager
def failing(faults: Faults) -> Iterator[None]:
    """All clouds that are loaded meanwhile have these faults."""
    load = clouds.load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clouds, "load", lambda name: FaultyCloud(load(name), faults))
        yield


class _Faulty:
    def __init__(self, real: Any, faults: Faults) -> None:
        self._real = real
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._real, name)
        if name not in _CALLS:
            return member
        return lambda *args, **more: self._faults.call(member, *args, **more)
