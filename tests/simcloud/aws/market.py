"""What can be launched where: capacity, prices, quotas. All of it is as a test says.

The wording is that of failed scaling activities. What is wrong with a request itself does not
belong here, see `launch`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class LaunchRefusedError(Exception):
    """An instance cannot be launched; says why, as AWS does."""


class Refusal(enum.Enum):
    """Reasons for which AWS refuses any number of launches."""

    QUOTA = (
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the "
        "instance bucket that the specified instance type belongs to. Please visit "
        "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
    )
    SPOT_QUOTA = (
        "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - "
        "Max spot instance count exceeded."
    )
    UNSUPPORTED = (
        "Your requested instance type ({type}) is not supported in your requested Availability "
        "Zone ({zone}). Please retry your request by not specifying an Availability Zone or "
        "choosing {others}."
    )
    PRICE = (
        "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of {price} "
        "is lower than the minimum required Spot request fulfillment price of {minimum}."
    )
    IMAGE = "The image id '[{image}]' does not exist"
    SPOT_CAPACITY = (
        "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
        "capacity available that matches your request."
    )
    CAPACITY = (
        "We currently do not have sufficient {type} capacity in the Availability Zone you "
        "requested ({zone}). Our system will be working on provisioning additional capacity. You "
        "can currently get {type} capacity by not specifying an Availability Zone in your request "
        "or choosing {others}."
    )


@dataclass(frozen=True)
class Wanted:
    """An instance that is about to be launched."""

    type: str
    zone: str
    others: tuple[str, ...]  # other zones of the region
    image: str
    spot: bool
    price: str = ""  # the most that is paid for a spot instance

    def refused(self, why: Refusal | str, minimum: float = 0.0) -> LaunchRefusedError:
        text = why.value if isinstance(why, Refusal) else why
        return LaunchRefusedError(
            text.format(
                type=self.type,
                zone=self.zone,
                others=", ".join(self.others),
                image=self.image,
                price=self.price or "0.001",
                minimum=minimum,
            )
        )


@dataclass
class _Rule:
    type: str | None
    zone: str | None
    left: int | None  # launches; None: any number
    why: Refusal | str | None = None  # None: there is no capacity

    def concerns(self, wanted: Wanted) -> bool:
        return self.type in (None, wanted.type) and self.zone in (None, wanted.zone)


class Market:
    """Everything can be had, until a test says otherwise."""

    def __init__(self) -> None:
        self._capacity: list[_Rule] = []
        self._refusals: list[_Rule] = []
        self._prices: dict[str, float] = {}

    def set_capacity(self, type: str | None, zone: str | None, available: bool | int) -> None:
        """The newest word on a type or zone counts."""
        left = None if available is True else int(available)
        self._capacity.insert(0, _Rule(type, zone, left))

    def refuse(
        self, why: Refusal | str, type: str | None, zone: str | None, times: int | None
    ) -> None:
        self._refusals.append(_Rule(type, zone, times, why))

    def allow(self) -> None:
        """Take back all refusals."""
        self._refusals.clear()

    def set_price(self, type: str, dollars: float) -> None:
        self._prices[type] = dollars

    def take(self, wanted: Wanted) -> None:
        """Let it be launched, or refuse it."""
        for rule in self._refusals:
            if rule.concerns(wanted) and rule.left != 0:
                assert rule.why is not None
                rule.left = rule.left and rule.left - 1
                raise wanted.refused(rule.why)
        minimum = self._prices.get(wanted.type, 0.0)
        if wanted.spot and wanted.price and float(wanted.price) < minimum:
            raise wanted.refused(Refusal.PRICE, minimum)
        for rule in self._capacity:
            if rule.concerns(wanted):
                if rule.left == 0:
                    spot = Refusal.SPOT_CAPACITY
                    raise wanted.refused(spot if wanted.spot else Refusal.CAPACITY)
                rule.left = rule.left and rule.left - 1
                return
