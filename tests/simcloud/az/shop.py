"""What callers can ask about what Azure offers: sizes, quotas, images, and the terms of plans."""

from __future__ import annotations

import re
from typing import Any

from tests.simcloud.az import names
from tests.simcloud.az.catalogue import IMAGES, SIZES, Size
from tests.simcloud.az.compute import Compute
from tests.simcloud.az.parts import Context, Handlers, Parts
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer


class Shop:
    """Answers for skus, usages, images and agreements."""

    def __init__(self, parts: Parts, compute: Compute, accepted: set[str]) -> None:
        self._parts = parts
        self._compute = compute
        self._accepted = accepted

    def handlers(self) -> Handlers:
        images = "virtualMachineImages"
        return {
            "resourceSkus.list": self._sizes,
            "usageOperations.list": self._usages,
            f"{images}.listPublishers": self._images,
            f"{images}.listOffers": self._images,
            f"{images}.listSkus": self._images,
            f"{images}.list": self._images,
            f"{images}.get": self._image,
            "marketplaceAgreements.get": self._terms,
            "marketplaceAgreements.create": self._accept,
        }

    def _sizes(self, context: Context) -> Answer:
        text = context.request.parameters.get("$filter", "")
        asked = re.fullmatch("location eq '([^']+)'", text)
        if text and not asked:
            raise ArmError(400, "BadRequest", f"The filter '{text}' is not supported.")
        places = [asked[1].lower()] if asked else list(names.LOCATIONS)
        found = [_size(size, place) for size in SIZES.values() for place in places]
        return reply(200, {"value": found})

    def _usages(self, context: Context) -> Answer:
        location = context["location"].lower()
        names.check_location("Microsoft.Compute/locations", location)
        used = self._compute.usage(location)
        families = sorted({size.family for size in SIZES.values()})
        found = [
            {
                "unit": "Count",
                "currentValue": used.get(name, 0),
                "limit": self._compute.quotas.limit(name, location),
                "name": {"value": name, "localizedValue": label},
            }
            for name, label in (
                ("cores", "Total Regional vCPUs"),
                ("lowPriorityCores", "Total Regional Low-priority vCPUs"),
                *((family, f"{family} vCPUs") for family in families),
            )
        ]
        return reply(200, {"value": found})

    def _images(self, context: Context) -> Answer:
        """Publishers, offers, skus or versions: whatever comes after those that are given."""
        given = [context.call.parameters.get(name) for name in ("publisherName", "offer", "skus")]
        asked = [each.lower() for each in given if each]
        found: dict[str, None] = {}
        for image in IMAGES:
            levels = (image.publisher, image.offer, image.sku)
            if [each.lower() for each in levels[: len(asked)]] == asked:
                more = image.versions if len(asked) == 3 else (levels[len(asked)],)
                found |= dict.fromkeys(more)
        if asked and not found:
            raise ArmError(404, "NotFound", "Artifact: VMImage was not found.")
        chosen = list(found)
        if context.request.parameters.get("$orderby", "").lower() == "name desc":
            chosen.reverse()
        chosen = chosen[: int(context.request.parameters.get("$top", "1000"))]
        said = [
            {"location": context["location"], "name": each, "id": f"{context.id}/{each}"}
            for each in chosen
        ]
        return reply(200, said)

    def _image(self, context: Context) -> Answer:
        asked = [context[name].lower() for name in ("publisherName", "offer", "skus")]
        version = context["version"]
        for image in IMAGES:
            if [e.lower() for e in (image.publisher, image.offer, image.sku)] != asked:
                continue
            if version not in (*image.versions, "latest"):
                break
            properties: dict[str, Any] = {
                "osDiskImage": {"operatingSystem": "Linux"},
                "hyperVGeneration": image.generation,
                "architecture": image.architecture,
                "dataDiskImages": [],
            }
            if image.plan:
                properties["plan"] = {
                    "publisher": image.publisher,
                    "product": image.offer,
                    "name": image.sku,
                }
            name = image.versions[-1] if version == "latest" else version
            said = {
                "id": f"{context.id.rpartition('/')[0]}/{name}",
                "name": name,
                "location": context["location"],
                "properties": properties,
            }
            return reply(200, said)
        raise ArmError(404, "NotFound", f"Artifact: VMImage {':'.join(asked)} was not found.")

    def _terms(self, context: Context) -> Answer:
        return reply(200, self._agreement(context))

    def _accept(self, context: Context) -> Answer:
        """A caller sends the terms back that it was told, accepted."""
        properties = context.body.get("properties") or {}
        if properties.get("signature") != self._agreement(context)["properties"]["signature"]:
            text = "The terms that were sent are not the ones that are to be accepted."
            raise ArmError(400, "BadRequest", text)
        if properties.get("accepted"):
            self._accepted.add(_plan(context))
        else:
            self._accepted.discard(_plan(context))
        return reply(200, self._agreement(context))

    def _agreement(self, context: Context) -> dict[str, Any]:
        plan = _plan(context)
        if not any(f"{i.publisher}/{i.offer}/{i.sku}".lower() == plan for i in IMAGES if i.plan):
            raise ArmError(404, "NotFound", f"The plan {plan} was not found.")
        return {
            "id": context.id,
            "name": context["planId"],
            "type": "Microsoft.MarketplaceOrdering/offertypes",
            "properties": {
                "publisher": context["publisherId"],
                "product": context["offerId"],
                "plan": context["planId"],
                "licenseTextLink": "https://example.invalid/terms",
                "retrieveDatetime": self._parts.clock.today().isoformat(),
                "signature": f"SIGNATURE{abs(hash(plan))}",
                "accepted": plan in self._accepted,
            },
        }


def _plan(context: Context) -> str:
    return "/".join(context[name] for name in ("publisherId", "offerId", "planId")).lower()


def _size(size: Size, location: str) -> dict[str, Any]:
    able = {
        "vCPUs": str(size.cores),
        "MemoryGB": str(size.memory),
        "LowPriorityCapable": str(size.spot),
        "PremiumIO": str(size.premium),
        "CpuArchitectureType": size.architecture,
        "HyperVGenerations": "V1,V2",
    }
    if size.gpus:
        able["GPUs"] = str(size.gpus)
    said: dict[str, Any] = {
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": "Standard",
        "size": size.name.partition("_")[2],
        "family": size.family,
        "locations": [location],
        "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
        "capabilities": [{"name": name, "value": value} for name, value in able.items()],
        "restrictions": [],
    }
    if size.retired:
        said["restrictions"] = [
            {
                "type": "Location",
                "values": [location],
                "restrictionInfo": {"locations": [location]},
                "reasonCode": "NotAvailableForSubscription",
            }
        ]
    return said
