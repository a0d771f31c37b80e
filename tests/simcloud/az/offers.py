"""Why a machine cannot be had: as a test says, or since a quota is used up.

The wording is Azure's. What is wrong with a request itself does not belong here, see `profile`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tests.simcloud.az.catalogue import Quotas, Size, quotas_of
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.market import Market

_GUIDE = "Read more about improving likelihood of allocation success at"


class Refusal(enum.Enum):
    """Reasons for which Azure refuses any number of machines: code, text, and whether at once."""

    CAPACITY = (
        "AllocationFailed",
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this "
        f"region. {_GUIDE} http://aka.ms/allocation-guidance",
        False,
    )
    CONSTRAINTS = (
        "OverconstrainedAllocationRequest",
        "Allocation failed. VM(s) with the following constraints cannot be allocated, because the "
        "condition is too restrictive. Please remove some constraints and try again. Constraints "
        "applied are:\n  - Preemptible VMs (VM might be preempted by another VM with a higher "
        "priority)\n  - VM Size\n",
        False,
    )
    SIZE = (
        "SkuNotAvailable",
        "The requested VM size for resource 'Following SKUs have failed for Capacity "
        "Restrictions: {type}' is currently not available in location '{zone}'. Please try "
        "another size or deploy to a different location or different zone. See "
        "https://aka.ms/azureskunotavailable for details.",
        True,
    )
    QUOTA = (
        "OperationNotAllowed",
        "Operation could not be completed as it results in exceeding approved {type} Cores quota. "
        "Additional details - Deployment Model: Resource Manager, Location: {zone}, Current "
        "Limit: 0, Current Usage: 0, Additional Required: 1, (Minimum) New Limit Required: 1. "
        "Submit a request for Quota increase at https://aka.ms/ProdportalCRP/ by specifying "
        "parameters listed in the 'Details' section for deployment to succeed.",
        True,
    )


@dataclass(frozen=True)
class Wanted:
    """A machine that is about to be made."""

    type: str
    zone: str  # the location
    spot: bool
    price: float = -1  # the most that is paid for a spot machine an hour

    def refused(self, why: Refusal) -> ArmError:
        code, text, _ = why.value
        return ArmError(409, code, text.format(type=self.type, zone=self.zone))


class Offers(Market[Refusal]):
    """Some reasons are told at once, others when the machine is to be made."""

    def __init__(self) -> None:
        super().__init__()
        self._at_once: Market[Refusal] = Market()
        self._prices: dict[str, float] = {}

    def refuse(self, why: Refusal, type: str | None, zone: str | None, times: int | None) -> None:
        if why.value[2]:
            self._at_once.refuse(why, type, zone, times)
        else:
            super().refuse(why, type, zone, times)

    def allow(self) -> None:
        super().allow()
        self._at_once.allow()

    def set_price(self, type: str, dollars: float) -> None:
        self._prices[type] = dollars

    def check(self, wanted: Wanted) -> None:
        """What a request is answered with, before anything is made."""
        why = self._at_once.refusal(wanted)
        if why:
            raise wanted.refused(why)
        price = self._prices.get(wanted.type, 0.0)
        if wanted.spot and 0 <= wanted.price < price:
            raise ArmError(
                409,
                "OperationNotAllowed",
                f"Unable to perform operation: the max price '{wanted.price}' USD is lower than "
                f"the current price '{price}' USD for Azure Spot VM size '{wanted.type}'.",
            )

    def allocate(self, wanted: Wanted) -> ArmError | None:
        """Take room for a machine, or say why there is none."""
        why = self.refusal(wanted)
        if why:
            return wanted.refused(why)
        if not self.has_room(wanted):
            return wanted.refused(Refusal.CONSTRAINTS if wanted.spot else Refusal.CAPACITY)
        return None


def check_size(wanted: Wanted, size: Size | None) -> None:
    """Refuse at once what is offered nowhere."""
    if size is None:
        text = f"The value {wanted.type} provided for the VM size is not valid."
        raise ArmError(400, "InvalidParameter", text, target="vmSize")
    if size.retired:
        raise wanted.refused(Refusal.SIZE)


def check_quota(
    quotas: Quotas, usage: dict[str, int], wanted: Wanted, size: Size, more: int
) -> None:
    """`usage`: the cores that are used in this location, by the names of quotas."""
    for name in quotas_of(size, wanted.spot):
        used, required = usage.get(name, 0), size.cores * more
        limit = quotas.limit(name, wanted.zone)
        if used + required > limit:
            label = "LowPriorityCores" if wanted.spot else f"{name} Cores"
            raise ArmError(
                409,
                "OperationNotAllowed",
                f"Operation could not be completed as it results in exceeding approved {label} "
                f"quota. Additional details - Deployment Model: Resource Manager, Location: "
                f"{wanted.zone}, Current Limit: {limit}, Current Usage: {used}, Additional "
                f"Required: {required}, (Minimum) New Limit Required: {used + required}. Submit a "
                f"request for Quota increase at https://aka.ms/ProdportalCRP/ by specifying "
                f"parameters listed in the 'Details' section for deployment to succeed.",
            )
