"""The network of machines: one of the task's own, or a subnet that the user chose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.clouds.vm.options import network_of
from sojourn.core.errors import AuthError, InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account
    from sojourn.core.task import Task

__all__ = ["check_network", "chosen_subnet"]

_FIELD = "options.network"
_FORM = re.compile(
    r"(?P<network>/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network"
    r"/virtualNetworks/[^/]+)/subnets/[^/]+",
    re.IGNORECASE,
)


def chosen_subnet(task: Task) -> str:
    """The id of the subnet that the user chose; empty: none."""
    given = network_of(task)
    if not given.parts:
        return ""
    if not _FORM.fullmatch(given.name):
        raise InvalidInput(
            _FIELD,
            "must be the ID of a subnet, such as /subscriptions/SUBSCRIPTION/resourceGroups/GROUP"
            "/providers/Microsoft.Network/virtualNetworks/NETWORK/subnets/NAME, "
            f"got {given.name!r}",
        )
    return given.name


def check_network(account: Account, task: Task, region: str) -> None:
    """Refuse a subnet that is not there, or elsewhere, if we may know."""
    subnet = chosen_subnet(task)
    found = _FORM.fullmatch(subnet)
    if not found:
        return
    try:
        network = account.call(_FIELD, "GET", found["network"])
        account.call(_FIELD, "GET", subnet)
    except NotFound as error:
        raise InvalidInput(_FIELD, f"subnet {subnet} not found") from error
    except AuthError:
        return
    where = str(network["location"]).replace(" ", "").lower()
    if where != region:
        raise InvalidInput(_FIELD, f"the network is in {where}, but the task is in {region}")
