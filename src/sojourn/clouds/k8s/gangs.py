"""What a gang has beside its machines: names by which they find each other, and a fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.resources import Made

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["GangPolicy", "GangService"]


class GangService(Made):
    """Gives each pod of a gang a name in the cluster's DNS; it has no address itself."""

    kind = "Service"

    def create(self, ctx: Context) -> None:
        spec = {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.machines(self._objects.id),
        }
        self._create({"metadata": self._metadata(), "spec": spec})


class GangPolicy(Made):
    """Only machines of the same task reach those of a gang.

    Commands and forwarded ports come from the node itself, which no policy keeps out.
    """

    kind = "NetworkPolicy"

    def create(self, ctx: Context) -> None:
        selector = {"matchLabels": names.machines(self._objects.id)}
        spec = {
            "podSelector": selector,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": selector}]}],
        }
        self._create({"metadata": self._metadata(), "spec": spec})
