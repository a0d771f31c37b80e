"""What `sojourn doctor` can tell of an account without making anything in it.

EC2 tells whether one may do something without doing it; the other services do not, so of them
only reading is tried. Nothing here is a problem: who has an account need not use it for this.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.errors import code_of
from sojourn.clouds.aws.regions import region
from sojourn.core.errors import AuthError, NotFound, SojournError
from sojourn.core.finding import Finding
from sojourn.core.ids import TaskId
from sojourn.core.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.aws.account import Account

__all__ = ["look"]

_QUOTAS = {
    "L-1216C47A": "on demand",
    "L-34B43A08": "spot",
    "L-DB2E81BA": "on demand with T4 and other G",
    "L-417A185B": "on demand with V100 and other P",
}
# Operations that are not called as the permission for them.
_CALLED = {"s3:ListAllMyBuckets": "s3:ListBuckets"}
_UNSEEN = "permissions to create buckets, roles and groups not checked"


def look(account: Account) -> Iterator[Finding]:
    """Who the user is, where tasks go, and what seems to be missing."""
    here = region(Task("#!/bin/sh").region)
    try:
        who = account.call("identity", "sts", here, "get_caller_identity")
    except SojournError as error:
        yield Finding.failed("aws identity", error)
        return
    yield Finding("ok", "aws identity", f"{who['Arn']} in account {who['Account']}")
    own = account.session.region_name
    more = f"; your AWS settings name {own}" if own and own != here else ""
    yield Finding("ok", "aws region", f"{here} by default{more}")
    vpc, finding = _network(account, here)
    yield finding
    yield _permissions(account, here, vpc)
    yield from _quotas(account, here)


def _network(account: Account, here: str) -> tuple[str, Finding]:
    default = [{"Name": "is-default", "Values": ["true"]}]
    try:
        found = account.call("networks", "ec2", here, "describe_vpcs", Filters=default)["Vpcs"]
    except SojournError as error:
        return "", Finding.failed("aws network", error)
    if not found:
        make = f"run `aws ec2 create-default-vpc --region {here}` to create one"
        return "", Finding("note", "aws network", f"no default VPC; {make}")
    vpc = str(found[0]["VpcId"])
    return vpc, Finding("ok", "aws network", f"default VPC {vpc}")


def _permissions(account: Account, here: str, vpc: str) -> Finding:
    missing: list[str] = []
    odd: list[str] = []
    for action, arguments in _tries(vpc):
        service, operation = _CALLED.get(action, action).split(":")
        with _noting(action, missing, odd):
            account.call(action, service, here, _in_python(operation), **arguments)
    if missing:
        return Finding("note", "aws permissions", f"missing: {', '.join(missing)}; {_UNSEEN}")
    if odd:
        return Finding("note", "aws permissions", "; ".join(odd))
    return Finding("ok", "aws permissions", f"none missing; {_UNSEEN}")


def _tries(vpc: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is called, and would do nothing: to read, to try dry, or about what there is not."""
    id = TaskId.deterministic("sojourn-doctor")  # noqa: A001
    name, marks = str(id), tags.to_list({"Name": str(id), tags.ID: str(id)})

    def tagged(kind: str) -> dict[str, Any]:
        return {
            "DryRun": True,
            "TagSpecifications": [{"ResourceType": kind, "Tags": marks}],
        }

    yield "s3:ListAllMyBuckets", {"Prefix": "tpi-", "MaxBuckets": 1}
    yield "autoscaling:DescribeAutoScalingGroups", {"AutoScalingGroupNames": [name]}
    yield "iam:GetRole", {"RoleName": name}
    yield "iam:GetInstanceProfile", {"InstanceProfileName": name}
    for operation in ("SecurityGroups", "KeyPairs", "LaunchTemplates", "Subnets"):
        yield f"ec2:Describe{operation}", {"DryRun": True}
    yield "ec2:DescribeImages", {"DryRun": True, "Owners": ["self"]}
    yield "ec2:DescribeInstances", {"DryRun": True}
    yield "ec2:DescribeInstanceTypes", {"DryRun": True, "InstanceTypes": ["t2.micro"]}
    yield "ec2:DescribeInstanceTypeOfferings", {"DryRun": True}
    if vpc:
        group = {"GroupName": name, "Description": "Sojourn", "VpcId": vpc}
        yield "ec2:CreateSecurityGroup", {**group, **tagged("security-group")}
    yield "ec2:ImportKeyPair", {"KeyName": name, "PublicKeyMaterial": b"-", **tagged("key-pair")}
    template = {"LaunchTemplateName": name, "LaunchTemplateData": {"InstanceType": "t2.micro"}}
    yield "ec2:CreateLaunchTemplate", {**template, **tagged("launch-template")}


@contextmanager
def _noting(action: str, missing: list[str], odd: list[str]) -> Iterator[None]:
    try:
        yield
    except AuthError:
        missing.append(action)
    except NotFound:
        return  # it may be asked for, and is not there
    except SojournError as error:
        if code_of(error) != "DryRunOperation":
            odd.append(" ".join(str(error).split()))


def _quotas(account: Account, here: str) -> Iterator[Finding]:
    found = []
    for code, kind in _QUOTAS.items():
        try:
            answer = account.call(
                "quotas",
                "service-quotas",
                here,
                "get_service_quota",
                ServiceCode="ec2",
                QuotaCode=code,
            )
        except SojournError:
            continue  # one may do without knowing
        found.append(f"{answer['Quota']['Value']:.0f} {kind}")
    if found:
        yield Finding("ok", "aws quotas", f"vCPU limits in {here}: {', '.join(found)}")


def _in_python(operation: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_")
