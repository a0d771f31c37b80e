"""What EC2 refuses and moto does not, and what of it is done here: ending instances.

Checks of what is launched do not belong here, see `launch`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from tests.simcloud.aws import backends, codec, placement
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.fleet import USER, Fleet
from tests.simcloud.aws.launch import USER_DATA_LIMIT, Profiles
from tests.simcloud.aws.taken import Taking
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request

# Instances come from groups alone, and moto's own way of making and moving them would bypass them
_NOT_HERE = {
    "RebootInstances", "RequestSpotInstances", "RunInstances", "StartInstances", "StopInstances",
}  # fmt: skip

_OLDER = ("t2.", "m4.", "c4.", "p2.", "p3.", "g3.")  # families that are not built on Nitro


class EC2:
    """Checks before moto answers; each is called with the lock held."""

    def __init__(self, fleet: Fleet, profiles: Profiles, clock: Clock, timing: Timing) -> None:
        self._fleet = fleet
        self._profiles = profiles
        self._clock = clock
        self._timing = timing
        self._taking = Taking(fleet, clock, timing)
        self._ready: dict[str, float] = {}  # when security groups are known

    def answer(self, call: Call, request: Request) -> Answer:
        if call.operation in _NOT_HERE:
            raise NotImplementedError(f"{call.name} is not known here")
        backend = backends.ec2(call.region)
        if call.operation in placement.OPERATIONS:
            return placement.answer(call, request)
        if call.operation == "TerminateInstances":
            return self._terminate(call, request)
        if call.operation == "GetConsoleOutput":
            return self._console(call, request)
        if call.operation == "CreateImage":
            return self._taking.answer(call, request)
        if call.operation == "DescribeInstances":
            return self._describe(backend, request)
        if call.operation in ("CreateLaunchTemplate", "CreateLaunchTemplateVersion"):
            _check_user_data(request)
        if call.operation in ("DescribeLaunchTemplates", "DeleteLaunchTemplate"):
            _check_templates(backend, codec.parameters("ec2", call.operation, request))
        if call.operation == "DeleteSecurityGroup":
            _check_unused(backend, request.form)
        if call.operation == "CreateSecurityGroup":
            return self._make_group(backend, request)
        if "SecurityGroup" in call.operation:
            return self._about_groups(backend, request)
        return backends.call(call.service, request)

    def _describe(self, backend: Any, request: Request) -> Answer:
        """As moto does, which must not see the newest meanwhile; each has its own reservation."""
        newest, all_of_them = self._fleet.newest(), backend.reservations
        backend.reservations = {
            name: reservation
            for name, reservation in all_of_them.items()
            if not newest & {each.id for each in reservation.instances}
        }
        try:
            return backends.call("ec2", request)
        finally:
            backend.reservations = all_of_them

    def _make_group(self, backend: Any, request: Request) -> Answer:
        before = {group.id for group in backend.describe_security_groups()}
        answer = backends.call("ec2", request)
        for group in backend.describe_security_groups():
            if group.id not in before:
                self._ready[group.id] = self._clock.now() + self._timing.group_ready
                self._profiles.made(group.id, self._timing.group_usable)
        return answer

    def _about_groups(self, backend: Any, request: Request) -> Answer:
        """As moto does, which must not see the newest meanwhile."""
        newest = {name for name, ready in self._ready.items() if ready > self._clock.now()}
        hidden = [
            (network, network.pop(name))
            for network in backend.groups.values()
            for name in newest & network.keys()
        ]
        try:
            return backends.call("ec2", request)
        finally:
            for network, group in hidden:
                network[group.id] = group

    def _console(self, call: Call, request: Request) -> Answer:
        asked = codec.parameters("ec2", call.operation, request)
        found = self._fleet.find(asked["InstanceId"])
        if found is None:
            text = f"The instance ID '{asked['InstanceId']}' does not exist"
            raise AWSError("InvalidInstanceID.NotFound", text)
        if asked.get("Latest") and found.record.instance_type.startswith(_OLDER):
            text = "This instance type does not support retrieving the latest console logs."
            raise AWSError("UnsupportedOperation", text)
        text = found.machine.console() if found.machine else ""
        said = {"InstanceId": found.id, "Output": base64.b64encode(text.encode()).decode()}
        return codec.result("ec2", call.operation, said)

    def _terminate(self, call: Call, request: Request) -> Answer:
        asked = codec.parameters("ec2", call.operation, request)
        ids = asked["InstanceIds"]
        found = [self._fleet.find(each) for each in ids]
        missing = [name for name, each in zip(ids, found, strict=True) if each is None]
        if missing:
            named = ", ".join(missing)
            code = "InvalidInstanceID.NotFound"
            raise AWSError(code, f"The instance ID '{named}' does not exist")
        changes = []
        for instance in found:
            assert instance is not None
            before = _state(instance.record)
            if asked.get("SkipOsShutdown"):
                self._fleet.take(instance, USER)
            else:
                self._fleet.terminate(instance)
            changes.append(
                {
                    "InstanceId": instance.id,
                    "PreviousState": before,
                    "CurrentState": _state(instance.record),
                }
            )
        return codec.result("ec2", call.operation, {"TerminatingInstances": changes})


def _state(record: Any) -> dict[str, Any]:
    return {"Name": record.state, "Code": record.state_code}


def _check_user_data(request: Request) -> None:
    text = request.form.get("LaunchTemplateData.UserData", "")
    code = "InvalidUserData.Malformed"
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AWSError(code, "Invalid BASE64 encoding of user data.") from None
    if len(data) > USER_DATA_LIMIT:
        raise AWSError(code, f"User data is limited to {USER_DATA_LIMIT} bytes.")


def _check_templates(backend: Any, given: dict[str, Any]) -> None:
    """moto passes over ids that are not there, and has other codes."""
    names = {template.name for template in backend.launch_templates.values()}
    for name in [*given.get("LaunchTemplateNames", []), given.get("LaunchTemplateName")]:
        if name and name not in names:
            raise AWSError(
                "InvalidLaunchTemplateName.NotFoundException",
                "At least one of the launch templates specified in the request does not exist.",
            )
    for given_id in [*given.get("LaunchTemplateIds", []), given.get("LaunchTemplateId")]:
        if given_id and given_id not in backend.launch_templates:
            raise AWSError(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {given_id}, does not exist.",
            )


def _check_unused(backend: Any, given: dict[str, str]) -> None:
    name = given.get("GroupId") or given.get("GroupName", "")
    group = backend.get_security_group_by_name_or_id(name)
    if group is None:
        return
    if group.name == "default":
        message = f'the specified group: "{group.id}" name: "default" cannot be deleted by a user'
        raise AWSError("CannotDelete", message)
    used = any(group.id in {g.id for g in nic.group_set} for nic in backend.enis.values())
    referred = any(
        source.get("GroupId") == group.id
        for groups in backend.groups.values()
        for other in groups.values()
        if other.id != group.id
        for rule in (*other.ingress_rules, *other.egress_rules)
        for source in [rule.source_group or {}]
    )
    if used or referred:
        raise AWSError("DependencyViolation", f"resource {group.id} has a dependent object")
