"""The agent in the store, from where machines fetch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.agent.bundle import bundle
from sojourn.agent.wheels import locked
from sojourn.clouds.vm.paths import BOOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sojourn.core.context import Context
    from sojourn.storage.store import Store

__all__ = ["AgentFiles", "Luggage"]

_ON_MACHINE = "sojourn.clouds.vm.on_machine"


@dataclass(frozen=True)
class Luggage:
    """What an image needs of us. `package`: what of the cloud's own folder runs on machines."""

    pythons: Sequence[str]  # that the image may have: "312"
    architecture: str  # as `uname -m` has it
    package: str

    @property
    def hashes(self) -> list[str]:
        """Of the wheels in it, by which a machine knows them."""
        wheels = (wheel for each in self.pythons for wheel in locked(each, self.architecture))
        return sorted({wheel.sha256 for wheel in wheels})


class AgentFiles:
    """A zip for each Python that an image may have; they go with the store."""

    stage = 1
    title = "agent in the store"

    def __init__(self, open_store: Callable[[], Store], choose: Callable[[], Luggage]) -> None:
        self._open_store = open_store
        self._choose = choose

    def read(self, ctx: Context) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        store, luggage = self._open_store(), self._choose()
        for python in luggage.pythons:
            ctx.check()
            path = f"{BOOT}agent-{luggage.architecture}-{python}.zip"
            if not store.head(path):
                packages = (_ON_MACHINE, luggage.package)
                store.put(path, bundle(python, luggage.architecture, packages))

    def delete(self, ctx: Context) -> None:
        """The store goes last, and this with it."""
