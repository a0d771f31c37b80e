"""Remove what tests left in a real Azure subscription: resource groups with the tag `sojourn:test`.

python -m tests.contract.clouds.sweep_az [--yes] [--mark MARK]

All that a task has is in its resource group, and goes with it. Without --yes it only shows what
there is. Of the product it uses the login and its calls alone: it has to look in the subscription
that the tests used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from sojourn.clouds.az.account import Account
from sojourn.core.errors import NotFound, SojournError
from tests.contract.clouds import sweeping
from tests.contract.clouds.az_marks import MARK
from tests.contract.clouds.sweeping import Found, Sweeper

_SETS = "providers/Microsoft.Compute/virtualMachineScaleSets"
_OFF = ("PowerState/deallocated", "PowerState/deallocating", "PowerState/stopped")


class Sweep(Sweeper):
    """What is in the subscription, in all regions."""

    refusal = SojournError
    patience = 1800.0  # seconds: groups with machines take minutes

    def __init__(self, mark: str = "") -> None:
        super().__init__(mark)
        self._account = Account()

    def found(self) -> Iterator[Found]:
        for group in self._groups():
            remove = partial(self._remove, group)
            yield Found(f"resource group {group['name']}", remove)

    def _groups(self) -> Iterator[Any]:
        query = {"$filter": f"tagName eq '{MARK}'"}
        for group in self._account.pages("resource groups", "resourceGroups", query):
            if self.is_ours((group.get("tags") or {}).get(MARK)):
                yield group

    def _remove(self, group: Any) -> None:
        if group["properties"]["provisioningState"] != "Deleting":
            self._account.call("resource group", "DELETE", group["id"])

    def machines(self) -> Iterator[Any]:
        """Those that are there, and have not ended."""
        for group in self._groups():
            path = f"{group['id']}/{_SETS}/{group['name']}/virtualMachines"
            try:
                found = list(self._account.pages("machines", path, {"$expand": "instanceView"}))
            except NotFound:
                continue  # the task has no scale set
            yield from (item for item in found if not _ended(item))


def _ended(machine: Any) -> bool:
    view = machine["properties"].get("instanceView") or {}
    codes = {status.get("code") for status in view.get("statuses") or ()}
    failed = machine["properties"]["provisioningState"] in ("Deleting", "Failed")
    return failed or not codes.isdisjoint(_OFF)


def main(arguments: list[str]) -> int:
    return sweeping.run(__doc__, arguments, lambda _, mark: Sweep(mark))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
