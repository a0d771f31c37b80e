"""The network of machines: the default VPC, or the one that the user chose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.vm.options import Network

__all__ = ["Networks", "Subnets", "check_network"]

_FIELD = "options.network"
_PART = re.compile(r"(vpc|subnet)-[0-9a-f]+")


@dataclass(frozen=True)
class Subnets:
    """Where machines go. `public`: whether they get public addresses; None: as the subnet says."""

    vpc: str
    ids: tuple[str, ...]
    zones: tuple[str, ...]  # of each
    public: bool | None = None


def check_network(wanted: Network) -> None:
    """Refuse what cannot be the name of one."""
    for part in wanted.parts:
        if not _PART.fullmatch(part):
            raise InvalidInput(
                _FIELD,
                f"must be a VPC such as vpc-1a2b3c4d, or subnets such as subnet-1a2b3c4d, "
                f"separated by commas, got {part!r}",
            )


class Networks:
    """Those of a region."""

    def __init__(self, account: Account, region: str) -> None:
        self._account = account
        self._region = region

    def look(self, wanted: Network) -> list[Any]:
        """The subnets that come into question."""
        if not wanted.parts:
            vpc = self._default_vpc()
            found = self._ec2("subnets", "describe_subnets", Filters=_is("vpc-id", vpc))
            return list(found["Subnets"])
        check_network(wanted)
        name = "vpc-id" if wanted.parts[0].startswith("vpc-") else "subnet-id"
        named = [{"Name": name, "Values": list(wanted.parts)}]
        found = list(self._ec2("subnets", "describe_subnets", Filters=named)["Subnets"])
        missing = set(wanted.parts) - {
            str(subnet[key]) for subnet in found for key in ("VpcId", "SubnetId")
        }
        if missing:
            raise InvalidInput(
                _FIELD, f"no subnet found in {self._region} for {', '.join(sorted(missing))}"
            )
        if len({subnet["VpcId"] for subnet in found}) > 1:
            raise InvalidInput(_FIELD, "must be subnets of one VPC")
        return found

    def choose(self, wanted: Network, known: list[Any], type: str, zones: set[str]) -> Subnets:
        """Those in which machines of a type can run, and reach the world."""
        here = [subnet for subnet in known if subnet["AvailabilityZone"] in zones]
        if not wanted.parts:
            return self._public(here, type, zones)
        if wanted.parts[0].startswith("vpc-"):
            fitting = [s for s in here if bool(s["MapPublicIpOnLaunch"]) != wanted.private]
        else:
            fitting = here
        if not fitting:
            kind = "private" if wanted.private else "public"
            raise InvalidInput(
                _FIELD,
                f"{wanted.name} has no {kind} subnet in a zone that offers {type}; zones that "
                f"offer it: {', '.join(sorted(zones))}",
            )
        return _subnets(fitting, public=not wanted.private)

    def _public(self, here: list[Any], type: str, zones: set[str]) -> Subnets:
        """Those from which a machine reaches the world: it needs a public address for that."""
        default = [subnet for subnet in here if subnet["DefaultForAz"]]
        public = default or [subnet for subnet in here if subnet["MapPublicIpOnLaunch"]]
        if not public:
            raise NotFound(
                f"The default VPC has no public subnet in a zone that offers {type}",
                hint="Run `aws ec2 create-default-subnet --availability-zone ZONE` to add one. "
                f"Zones that offer it: {', '.join(sorted(zones))}.",
            )
        return _subnets(public, public=None)

    def _default_vpc(self) -> str:
        found = self._ec2("the default network", "describe_vpcs", Filters=_is("is-default", "true"))
        if not found["Vpcs"]:
            raise NotFound(
                f"No default VPC in {self._region}",
                hint=f"Run `aws ec2 create-default-vpc --region {self._region}` to create one, or "
                "choose another VPC with `--option network=vpc-...`.",
            )
        return str(found["Vpcs"][0]["VpcId"])

    def _ec2(self, what: str, operation: str, **arguments: Any) -> Any:
        return self._account.call(what, "ec2", self._region, operation, **arguments)


def _subnets(found: list[Any], *, public: bool | None) -> Subnets:
    ordered = sorted((subnet["AvailabilityZone"], subnet["SubnetId"]) for subnet in found)
    zones, ids = zip(*ordered, strict=True)
    return Subnets(str(found[0]["VpcId"]), ids, zones, public)


def _is(name: str, value: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": [value]}]
