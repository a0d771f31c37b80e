"""How a machine of a task is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp.on_machine.settings import Settings
from sojourn.clouds.gcp.profile import Profile, parse_profile
from sojourn.clouds.gcp.resources import address_of
from sojourn.clouds.gcp.store_address import for_machines, url_in
from sojourn.clouds.gcp.task_context import GoogleResource
from sojourn.clouds.gcp.user_data import startup_script
from sojourn.clouds.vm.disks import disk_size
from sojourn.clouds.vm.keys import make_key_pair
from sojourn.clouds.vm.listing import can_mark
from sojourn.clouds.vm.machine_settings import machine_settings, time_of
from sojourn.clouds.vm.paths import BOOT, PROBLEMS
from sojourn.clouds.vm.waiting import patiently, until_known
from sojourn.core.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["InstanceTemplate"]

_TEMPLATES = "global/instanceTemplates"
_NOTICE = 30.0  # seconds, of a preemption


_GRACE = 15.0  # seconds for the script: of Google's 30, the rest is for its work to be stored


class InstanceTemplate(GoogleResource):
    """How a machine of this task is made."""

    stage = 2
    kind = "instance template"

    def find(self) -> bool:
        self._call("GET", self._path)
        return True

    def create(self, ctx: Context) -> None:
        body = {
            "name": self._name,
            "description": "Machines of a Sojourn task",
            "properties": self._properties(),
        }

        def make() -> None:
            try:
                self._change(ctx, "POST", _TEMPLATES, body)
            except Conflict:
                until_known(ctx, self.find)  # from an earlier try, or somebody makes it now

        # A new account is not known everywhere yet.
        patiently(
            ctx, make, lambda e: isinstance(e, InvalidInput) and "serviceAccount" in e.message
        )

    def delete(self, ctx: Context) -> None:
        try:
            self._change(ctx, "DELETE", self._path)
        except NotFound:
            return

    @property
    def _path(self) -> str:
        return f"{_TEMPLATES}/{self._name}"

    def _properties(self) -> dict[str, Any]:
        context, offer = self._context, self._context.offer
        profile = self._profile()
        properties: dict[str, Any] = {
            "machineType": offer.type.name,
            "labels": context.labels,
            "tags": {"items": [self._name]},
            "disks": [self._disk()],
            "networkInterfaces": [offer.network.interface()],
            "serviceAccounts": [{"email": profile.email, "scopes": list(profile.scopes)}],
            "metadata": {"items": self._metadata()},
            "scheduling": self._scheduling(),
        }
        if offer.type.accelerator:
            properties["guestAccelerators"] = [
                {
                    "acceleratorType": offer.type.accelerator,
                    "acceleratorCount": offer.type.count,
                }
            ]
        return properties

    def _disk(self) -> dict[str, Any]:
        params: dict[str, Any] = {
            "sourceImage": self._context.offer.image.path,
            "diskType": "pd-balanced",
            "labels": self._context.labels,
        }
        size = disk_size(self._context.require_task(), self._context.offer.image.size)
        if size > 0:
            params["diskSizeGb"] = str(size)
        return {"boot": True, "autoDelete": True, "initializeParams": params}

    def _metadata(self) -> list[dict[str, str]]:
        """Only the key of the task opens its machines, whatever the project says."""
        pair = make_key_pair(self._context.store(), self._context.id)
        values = {
            "startup-script": self._script(),
            "ssh-keys": f"{self._context.offer.image.user}:{pair.public}",
            "block-project-ssh-keys": "TRUE",
            "enable-oslogin": "FALSE",
        }
        return [{"key": key, "value": value} for key, value in values.items()]

    def _scheduling(self) -> dict[str, Any]:
        """Google deletes a machine whose time is over, whatever becomes of us and of it."""
        wanted, gpus = self._context.require_task(), self._context.offer.type.has_gpus
        # Else one that ends itself might come back.
        scheduling: dict[str, Any] = {"automaticRestart": False}
        if wanted.timeout:
            seconds = int(time_of(wanted.timeout).total_seconds())
            scheduling["maxRunDuration"] = {"seconds": str(seconds)}
        if wanted.timeout or wanted.spot >= 0:
            scheduling["instanceTerminationAction"] = "DELETE"
        if wanted.spot >= 0:
            scheduling["provisioningModel"] = "SPOT"
        if wanted.spot >= 0 or gpus:
            scheduling["onHostMaintenance"] = "TERMINATE"
        return scheduling

    def _profile(self) -> Profile:
        given = self._context.require_task().permission_set
        if given:
            return parse_profile(given, self._context.account.project)
        return Profile(address_of(self._name, self._context.account.project))

    def _script(self) -> str:
        context, location = self._context, self._context.location
        account, wanted = context.account, context.require_task()
        settings = Settings(
            machine_settings(
                context.name,
                for_machines(account, location),
                wanted,
                user=context.offer.image.user,
                marks=can_mark(wanted),
                page="docs/gcp.md",
                wheels=context.luggage().hashes,
                grace=_GRACE,
                notice=_NOTICE if wanted.spot >= 0 else 0.0,
            ),
            zone=location.zone,
            boot=url_in(account, location, BOOT),
            problems=url_in(account, location, PROBLEMS),
            group=account.url("compute", f"compute/v1/projects/{account.project}/{context.group}"),
        )
        return startup_script(settings)
