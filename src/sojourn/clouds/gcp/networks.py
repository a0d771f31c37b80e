"""The network of machines: the project's default one, or the one that the user chose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.vm.options import Network

__all__ = ["NetworkPaths", "find_network", "parse_network"]

_FIELD = "options.network"
_PART = r"[a-z]([a-z0-9-]*[a-z0-9])?"
_FORM = re.compile(rf"(?P<network>{_PART})(/(?P<subnet>{_PART}))?")


@dataclass(frozen=True)
class NetworkPaths:
    """Where machines go; without a subnet, Google chooses the one of the region."""

    network: str
    subnet: str = ""
    private: bool = False

    def interface(self) -> dict[str, Any]:
        """As an instance template has it."""
        card: dict[str, Any] = {"network": self.network}
        if self.subnet:
            card["subnetwork"] = self.subnet
        if not self.private:
            card["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]
        return card


def parse_network(given: Network) -> re.Match[str]:
    """The names of one that is given; refuses what cannot be any."""
    found = _FORM.fullmatch(given.name)
    if not found:
        raise InvalidInput(
            _FIELD, f"must be a network, or network/subnet, of the project, got {given.name!r}"
        )
    return found


def find_network(account: Account, region: str, given: Network) -> NetworkPaths:
    """The network that a task is to use; refuses what is not there."""
    if not given.parts:
        return NetworkPaths(_default(account))
    found = parse_network(given)
    try:
        network = account.compute(_FIELD, "GET", f"global/networks/{found['network']}")
    except NotFound as error:
        raise InvalidInput(
            _FIELD, f"network {found['network']} not found in project {account.project}"
        ) from error
    path = f"projects/{account.project}/global/networks/{found['network']}"
    return NetworkPaths(path, _subnet(account, region, network, found["subnet"]), given.private)


def _subnet(account: Account, region: str, network: Any, wanted: str | None) -> str:
    """The one that is named, or the only one of the region."""
    here = [
        url.rpartition("/")[2]
        for url in network.get("subnetworks", ())
        if f"/regions/{region}/" in url
    ]
    if wanted and wanted not in here:
        raise InvalidInput(
            _FIELD, f"{network['name']} has no subnet {wanted} in {region}; {_those(here)}"
        )
    if not wanted and network.get("autoCreateSubnetworks"):
        return ""
    if not wanted and len(here) != 1:
        raise InvalidInput(
            _FIELD, f"specify a subnet, as in {network['name']}/SUBNET; {_those(here)} in {region}"
        )
    return f"projects/{account.project}/regions/{region}/subnetworks/{wanted or here[0]}"


def _those(here: list[str]) -> str:
    return f"there are: {', '.join(sorted(here))}" if here else "there is none"


def _default(account: Account) -> str:
    try:
        account.compute("the default network", "GET", "global/networks/default")
    except NotFound as error:
        raise NotFound(
            f"No default network in project {account.project}",
            hint="Run `gcloud compute networks create default` to create one, or choose another "
            "with `--option network=NAME`.",
        ) from error
    return f"projects/{account.project}/global/networks/default"
