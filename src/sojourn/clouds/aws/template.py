"""How a machine of a task is made."""

from __future__ import annotations

import base64
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sojourn.clouds.aws import listing, tags
from sojourn.clouds.aws.errors import ignoring
from sojourn.clouds.aws.on_machine.settings import Settings
from sojourn.clouds.aws.placement import is_placed
from sojourn.clouds.aws.profile import arn_of
from sojourn.clouds.aws.resources import SecurityGroup
from sojourn.clouds.aws.store_address import options_for_machines, url_of
from sojourn.clouds.aws.task_context import AwsResource
from sojourn.clouds.aws.user_data import user_data
from sojourn.clouds.vm.disks import disk_size
from sojourn.clouds.vm.machine_settings import machine_settings
from sojourn.clouds.vm.paths import BOOT, PROBLEMS
from sojourn.clouds.vm.waiting import until_known
from sojourn.core.errors import NotFound
from sojourn.storage.store import StoreAddress

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["DEADLINE", "HOOK", "LaunchTemplate"]

DEADLINE = "deadline"  # the name of the group's scheduled action
_NOTICE = 120.0  # seconds, of a spot interruption
HOOK = "last-words"  # what holds up the end of a machine until it has stored its work


class LaunchTemplate(AwsResource):
    """How a machine of this task is made."""

    stage = 2
    kind = "launch template"

    def find(self) -> bool:
        named = [{"Name": "launch-template-name", "Values": [self._name]}]
        return bool(self._call("describe_launch_templates", Filters=named)["LaunchTemplates"])

    def create(self, ctx: Context) -> None:
        with ignoring("InvalidLaunchTemplateName.AlreadyExistsException"):
            self._call(
                "create_launch_template",
                LaunchTemplateName=self._name,
                LaunchTemplateData=self._data(ctx),
                TagSpecifications=self._tagged("launch-template"),
            )

    def delete(self, ctx: Context) -> None:
        with suppress(NotFound):
            if self.find():  # who may delete ours only may not even ask for what is not there
                self._call("delete_launch_template", LaunchTemplateName=self._name)

    def _data(self, ctx: Context) -> dict[str, Any]:
        context, offer = self._context, self._context.offer
        data: dict[str, Any] = {
            "ImageId": offer.image.id,
            "InstanceType": offer.type,
            "KeyName": context.name,
            **self._network(ctx),
            "IamInstanceProfile": self._profile(),
            "UserData": self._user_data(),
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": tags.to_list(context.tags)}
                for kind in ("instance", "volume")
            ],
        }
        data["BlockDeviceMappings"] = [
            {"DeviceName": device, "Ebs": self._disk(device)} for device in offer.image.disks
        ]
        if is_placed(context):
            data["Placement"] = {"GroupName": context.name}
        if context.require_task().spot >= 0:
            market: dict[str, Any] = {"SpotInstanceType": "one-time"}
            if context.require_task().spot > 0:
                market["MaxPrice"] = _price(context.require_task().spot)
            data["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": market}
        return data

    def _network(self, ctx: Context) -> dict[str, Any]:
        groups = [until_known(ctx, SecurityGroup(self._context).group)]
        if self._context.offer.group:
            groups.append(self._context.offer.group)
        public = self._context.offer.network.public
        if public is None:
            return {"SecurityGroupIds": groups}
        card = {"DeviceIndex": 0, "AssociatePublicIpAddress": public, "Groups": groups}
        return {"NetworkInterfaces": [{**card, "DeleteOnTermination": True}]}

    def _disk(self, device: str) -> dict[str, Any]:
        """Whatever the image says, no disk outlives its machine."""
        size = disk_size(self._context.require_task(), self._context.offer.image.size)
        if size <= 0 or device != self._context.offer.image.root_device:
            return {"DeleteOnTermination": True}
        sized = {"VolumeSize": size, "VolumeType": "gp3", "Encrypted": True}
        return {**sized, "DeleteOnTermination": True}

    def _profile(self) -> dict[str, str]:
        given = self._context.require_task().permission_set
        return {"Arn": arn_of(given)} if given else {"Name": self._name}

    def _user_data(self) -> str:
        context, location = self._context, self._context.location
        store = StoreAddress(url_of(location), options_for_machines(context.account, location))
        wanted = context.require_task()
        settings = Settings(
            machine_settings(
                context.name,
                store,
                wanted,
                user=context.offer.image.user,
                marks=listing.can_mark(wanted),
                page="docs/aws.md",
                wheels=context.luggage().hashes,
                notice=_NOTICE if wanted.spot >= 0 else 0.0,
            ),
            region=location.region,
            bucket_region=location.bucket_region,
            boot=self._url(BOOT),
            problems=self._url(PROBLEMS),
            autoscaling=self._endpoint("autoscaling"),
            ec2=self._endpoint("ec2"),
            tag=tags.ID,
            hook=HOOK,
        )
        return base64.b64encode(user_data(settings).encode()).decode()

    def _url(self, path: str) -> str:
        """Of a path in the store, for a machine that has nothing but Python yet."""
        location = self._context.location
        inside = quote(f"{location.folder}/{path}" if location.folder else path)
        endpoint = str(self._context.account.client("s3", location.bucket_region).meta.endpoint_url)
        if "endpoint" in options_for_machines(self._context.account, location):
            return f"{endpoint.rstrip('/')}/{location.bucket}/{inside}"
        if "." in location.bucket:  # in the name of a host, its certificate would not match
            return f"https://s3.{location.bucket_region}.amazonaws.com/{location.bucket}/{inside}"
        return f"https://{location.bucket}.s3.{location.bucket_region}.amazonaws.com/{inside}"

    def _endpoint(self, service: str) -> str:
        client = self._context.account.client(service, self._context.location.region)
        return str(client.meta.endpoint_url).rstrip("/") + "/"


def _price(dollars: float) -> str:
    """As AWS takes it: Python writes small ones with an exponent."""
    return f"{Decimal(str(dollars)):f}"
