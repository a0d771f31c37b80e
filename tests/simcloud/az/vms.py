"""Microsoft.Compute: single instances of scale sets, and their addresses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tests.simcloud.az.filters import paged
from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import Context, Handlers, Parts
from tests.simcloud.az.state import Resource, not_found
from tests.simcloud.az.tls import DIAGNOSTICS
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.life import Phase
from tests.simcloud.common.wire import Answer


class Machines:
    """Answers for instances."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Handlers:
        kind = "virtualMachineScaleSetVMs"
        return {
            f"{kind}.list": self._list,
            f"{kind}.get": self._get,
            f"{kind}.getInstanceView": self._view,
            f"{kind}.delete": self._delete,
            f"{kind}.powerOff": self._power_off,
            f"{kind}.start": self._start,
            f"{kind}.retrieveBootDiagnosticsData": self._console,
            f"{kind}.simulateEviction": self._evict,
            f"{kind}.update": self._update,
            "networkInterfaces.listVirtualMachineScaleSetNetworkInterfaces": self._cards,
            "publicIPAddresses.listVirtualMachineScaleSetPublicIPAddresses": self._addresses,
        }

    def _list(self, context: Context) -> Answer:
        given = context.request.parameters
        if given.get("$filter") or given.get("$select"):
            raise NotImplementedError("filters of instances are not known here")
        found = self._set(context).inner.instances
        view = given.get("$expand") == "instanceView"
        return paged(context, [each.content(view) for each in found])

    def _get(self, context: Context) -> Answer:
        view = context.request.parameters.get("$expand") == "instanceView"
        return reply(200, self._find(context).content(view))

    def _view(self, context: Context) -> Answer:
        return reply(200, self._find(context).view())

    def _update(self, context: Context) -> Answer:
        """Of what is an instance's own, only its protection is known here."""
        given = context.body.get("properties") or {}
        if set(given) - {"protectionPolicy"}:
            raise NotImplementedError("only the protection of an instance can be changed here")
        instance = self._find(context)
        instance.protection = dict(given.get("protectionPolicy") or {})
        return reply(200, instance.content(view=False))

    def _delete(self, context: Context) -> Answer:
        found = self._set(context)
        known = [e for e in found.inner.instances if str(e.number) == context["instanceId"]]
        if not known:
            return reply(204)
        force = context.request.parameters.get("forceDeletion") == "true"
        found.inner.delete(known, force)
        return self._begin(context, found, lambda: known[0].gone)

    def _power_off(self, context: Context) -> Answer:
        """It stays allocated, and costs."""
        instance = self._find(context)
        if instance.life.phase is Phase.RUNNING:
            instance.stopped = "stopped"
            instance.life.end(self._parts.timing.shutdown, then=Phase.STOPPED)
        return self._begin(context, instance.set.resource, lambda: instance.state == "stopped")

    def _start(self, context: Context) -> Answer:
        instance = self._find(context)
        if instance.life.phase is Phase.STOPPED:
            instance.evicted = 0.0
            instance.life.resume()
        return self._begin(context, instance.set.resource, lambda: instance.state == "running")

    def _evict(self, context: Context) -> Answer:
        instance = self._find(context)
        if not instance.spot:
            text = "The operation is allowed only on Azure Spot Virtual Machines."
            raise ArmError(409, "OperationNotAllowed", text)
        instance.set.evict(instance, notice=True)
        return reply(204)

    def _console(self, context: Context) -> Answer:
        """Where it is, at an address that nobody guesses."""
        instance = self._find(context)
        given = (instance.profile.get("diagnosticsProfile") or {}).get("bootDiagnostics") or {}
        if given.get("storageUri"):
            raise NotImplementedError("only diagnostics that Azure keeps are known here")
        if not given.get("enabled"):
            text = f"Boot diagnostics is not enabled for the VM '{instance.name}'."
            raise ArmError(409, "OperationNotAllowed", text)
        path = f"/bootdiagnostics/{instance.vm_id}.serialconsole.log?sig={uuid.uuid4().hex}"
        self._parts.diagnostics[path] = lambda: (
            instance.machine.console() if instance.machine else ""
        )
        said = {"serialConsoleLogBlobUri": f"https://{DIAGNOSTICS}{path}"}
        return reply(200, said)

    def _begin(self, context: Context, found: Resource, ready: Callable[[], bool]) -> Answer:
        parts = self._parts
        operation = parts.operations.begin(
            "Microsoft.Compute", found.location, context.version, 0.0, lambda: None, ready
        )
        return reply(202, None, parts.operations.headers(operation, "status", "result"))

    # Addresses

    def _cards(self, context: Context) -> Answer:
        found = [
            {
                "id": _card(instance, name),
                "name": name,
                "properties": {
                    "provisioningState": "Succeeded",
                    "primary": True,
                    "virtualMachine": {"id": instance.id},
                    "ipConfigurations": [
                        {
                            "id": f"{_card(instance, name)}/ipConfigurations/{inner}",
                            "name": inner,
                            "properties": {
                                "provisioningState": "Succeeded",
                                "privateIPAddress": instance.place[1],
                                "privateIPAllocationMethod": "Dynamic",
                                "primary": True,
                            },
                        }
                    ],
                },
            }
            for instance, name, inner, _ in self._configurations(context)
        ]
        return reply(200, {"value": found})

    def _addresses(self, context: Context) -> Answer:
        found = []
        for instance, name, inner, public in self._configurations(context):
            if not public or instance.failed:
                continue
            card = f"{_card(instance, name)}/ipConfigurations/{inner}"
            found.append(
                {
                    "id": f"{card}/publicIPAddresses/{public['name']}",
                    "name": public["name"],
                    "properties": {
                        "provisioningState": "Succeeded",
                        "publicIPAddressVersion": "IPv4",
                        "publicIPAllocationMethod": "Static",
                        "ipAddress": instance.public_address,
                        "ipConfiguration": {"id": card},
                    },
                }
            )
        return reply(200, {"value": found})

    def _configurations(self, context: Context) -> Iterator[tuple[Instance, str, str, Any]]:
        for instance in self._set(context).inner.instances:
            card = instance.profile["networkProfile"]["networkInterfaceConfigurations"][0]
            inner = card["properties"]["ipConfigurations"][0]
            public = inner["properties"].get("publicIPAddressConfiguration")
            yield instance, card["name"], inner["name"], public

    def _set(self, context: Context) -> Resource:
        path = context.id.split("/")
        return self._parts.resources.get("/".join(path[:9]))

    def _find(self, context: Context) -> Instance:
        for each in self._set(context).inner.instances:
            if str(each.number) == context["instanceId"]:
                found: Instance = each
                return found
        raise not_found(context.id)


def _card(instance: Instance, name: str) -> str:
    return f"{instance.id}/networkInterfaces/{name}"
