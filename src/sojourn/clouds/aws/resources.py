"""What is made in AWS for a task beside its store and its group."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import policy, tags
from sojourn.clouds.aws.errors import ignoring
from sojourn.clouds.aws.security_groups import given_group
from sojourn.clouds.aws.task_context import AwsResource
from sojourn.clouds.vm import keys
from sojourn.clouds.vm.options import ssh_from
from sojourn.clouds.vm.waiting import PATIENCE, patiently, until_known
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["KeyPair", "Role", "SecurityGroup"]

_POLICY = "task"
_SSH = 22
_BOUNDARY = "SOJOURN_AWS_PERMISSIONS_BOUNDARY"  # the ARN of a policy, where accounts demand one


class Role(AwsResource):
    """What machines may do, and the profile by which they get it."""

    kind = "role"

    def find(self) -> bool:
        found = False
        for operation, name in (
            ("get_role", "RoleName"),
            ("get_instance_profile", "InstanceProfileName"),
        ):
            try:
                self._call(operation, **{name: self._name})
                found = True
            except NotFound:
                continue
        return found

    def create(self, ctx: Context) -> None:
        if not self._context.location.contained:  # else it comes with the folder
            self.make(ctx)

    def make(self, ctx: Context) -> None:
        together([partial(self._make_role, ctx), partial(self._make_profile)])
        until_known(ctx, self._join)

    def _make_role(self, ctx: Context) -> None:
        boundary = os.environ.get(_BOUNDARY)
        more = {"PermissionsBoundary": boundary} if boundary else {}
        self._unless_there(
            "create_role",
            **more,
            RoleName=self._name,
            Path=tags.ROLE_PATH,
            AssumeRolePolicyDocument=json.dumps(policy.FOR_MACHINES),
            Description="Machines of a Sojourn task",
            Tags=tags.to_list(self._context.tags),
        )
        allowed = json.dumps(policy.machine_policy(self._context.id, self._context.location))
        given = {
            "RoleName": self._name,
            "PolicyName": _POLICY,
            "PolicyDocument": allowed,
        }
        until_known(ctx, lambda: self._call("put_role_policy", **given))

    def _make_profile(self) -> None:
        self._unless_there(
            "create_instance_profile",
            InstanceProfileName=self._name,
            Path=tags.ROLE_PATH,
            Tags=tags.to_list(self._context.tags),
        )

    def _join(self) -> None:
        name = self._name
        with ignoring("LimitExceeded"):  # it takes one role, and has it
            self._call("add_role_to_instance_profile", InstanceProfileName=name, RoleName=name)

    def delete(self, ctx: Context) -> None:
        if not self._context.is_contained:  # else it goes with the folder
            self.remove()

    def remove(self) -> None:
        name = self._name
        if not self.find():
            return  # who gave a profile may not be allowed to more than this question
        for operation, arguments in (
            (
                "remove_role_from_instance_profile",
                {"InstanceProfileName": name, "RoleName": name},
            ),
            ("delete_instance_profile", {"InstanceProfileName": name}),
            ("delete_role_policy", {"RoleName": name, "PolicyName": _POLICY}),
            ("delete_role", {"RoleName": name}),
        ):
            try:
                self._call(operation, **arguments)
            except NotFound:
                continue

    def _unless_there(self, operation: str, **arguments: Any) -> None:
        with ignoring("EntityAlreadyExists"):
            self._call(operation, **arguments)

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._context.account.call(self.title, "iam", "us-east-1", operation, **arguments)


class SecurityGroup(AwsResource):
    """Lets SSH in and everything out; in a gang, all that comes from its own machines as well."""

    kind = "security group"

    def find(self) -> bool:
        return bool(self._groups())

    def connects(self) -> bool:
        """Whether it lets in what comes from its own machines, as that of a gang does."""
        return any(
            pair.get("GroupId") == group["GroupId"]
            for group in self._described()
            for rule in group.get("IpPermissions", ())
            for pair in rule.get("UserIdGroupPairs", ())
        )

    def _groups(self) -> list[str]:
        return [str(group["GroupId"]) for group in self._described()]

    def _described(self) -> list[Any]:
        """All that are ours; others may have one of the same name, in this network or another."""
        ours = [
            {"Name": "group-name", "Values": [self._name]},
            {"Name": f"tag:{tags.ID}", "Values": [self._name]},
        ]
        return list(self._call("describe_security_groups", Filters=ours)["SecurityGroups"])

    def group(self) -> str:
        """Its id. Absent: raises NotFound."""
        for group in self._groups():
            return group
        raise NotFound(f"No {self.title} found")

    def create(self, ctx: Context) -> None:
        group, networks = self._made(), self._networks()
        rules = [_ssh(networks)] if networks else []
        if self._context.require_task().gang:
            rules.append({"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]})
        for rule in rules:  # one after the other: if one is there, AWS refuses all of a call
            given = {"GroupId": group, "IpPermissions": [rule]}
            with ignoring("InvalidPermission.Duplicate"):
                until_known(ctx, partial(self._call, "authorize_security_group_ingress", **given))

    def _networks(self) -> tuple[str, ...]:
        """Who gets in by SSH; where the user's own group decides it, nobody by this one."""
        wanted = self._context.require_task()
        own = given_group(wanted) and "ssh_from" not in wanted.options
        return () if own else ssh_from(wanted)

    def _made(self) -> str:
        try:
            made = self._call(
                "create_security_group",
                GroupName=self._name,
                Description="Sojourn",
                VpcId=self._context.offer.network.vpc,
                TagSpecifications=self._tagged("security-group"),
            )
            return str(made["GroupId"])
        except Conflict:
            for group in self._groups():
                return group
            raise

    def delete(self, ctx: Context) -> None:
        if not self._context.is_contained:  # else it goes with the folder
            self.remove(ctx)

    def remove(self, ctx: Context) -> None:
        with suppress(NotFound):
            for group in self._groups():
                patiently(
                    ctx,
                    partial(self._call, "delete_security_group", GroupId=group),
                    lambda error: isinstance(error, Conflict),  # the last machine has not gone yet
                    every=2,
                    within=PATIENCE * 5,
                )


def _ssh(networks: tuple[str, ...]) -> dict[str, Any]:
    rule = {
        "IpProtocol": "tcp",
        "FromPort": _SSH,
        "ToPort": _SSH,
        "IpRanges": [{"CidrIp": each} for each in networks if ":" not in each],
        "Ipv6Ranges": [{"CidrIpv6": each} for each in networks if ":" in each],
    }
    return {key: value for key, value in rule.items() if value}


class KeyPair(AwsResource):
    """Opens the machines to whoever can read the store's seed."""

    kind = "key pair"

    def find(self) -> bool:
        named = [{"Name": "key-name", "Values": [self._name]}]
        return bool(self._call("describe_key_pairs", Filters=named)["KeyPairs"])

    def create(self, ctx: Context) -> None:
        pair = keys.make_key_pair(self._context.store(), self._context.id)
        with ignoring("InvalidKeyPair.Duplicate"):  # it is there, of the same seed
            self._call(
                "import_key_pair",
                KeyName=self._name,
                PublicKeyMaterial=pair.public.encode(),
                TagSpecifications=self._tagged("key-pair"),
            )

    def delete(self, ctx: Context) -> None:
        try:
            self._call("delete_key_pair", KeyName=self._name)
        except NotFound:
            return
