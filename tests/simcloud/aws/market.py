"""What can be launched where: capacity, prices, quotas. All of it is as a test says.

The wording is that of failed scaling activities. What is wrong with a request itself does not
belong here, see `launch`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tests.simcloud.common import market as common


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


class Market(common.Market["Refusal | str"]):
    """Everything can be had, until a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._prices: dict[str, float] = {}

    def set_price(self, type: str, dollars: float) -> None:
        self._prices[type] = dollars

    def take(self, wanted: Wanted) -> None:
        """Let it be launched, or refuse it."""
        why = self.refusal(wanted)
        if why is not None:
            raise wanted.refused(why)
        minimum = self._prices.get(wanted.type, 0.0)
        if wanted.spot and wanted.price and float(wanted.price) < minimum:
            raise wanted.refused(Refusal.PRICE, minimum)
        if not self.has_room(wanted):
            raise wanted.refused(Refusal.SPOT_CAPACITY if wanted.spot else Refusal.CAPACITY)
