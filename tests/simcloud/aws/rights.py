"""Which permissions a call needs: actions, the resources they are about, what conditions can see.

Whether the caller has them does not belong here, see `policy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from tests.simcloud.aws import backends, launch
from tests.simcloud.aws.backends import ACCOUNT
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.groups import Group, Groups
from tests.simcloud.aws.market import LaunchRefusedError
from tests.simcloud.aws.wire import bucket_and_key
from tests.simcloud.common.wire import Request

_S3_ACTIONS = {
    "AbortMultipartUpload": "AbortMultipartUpload",
    "CompleteMultipartUpload": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteObject": "DeleteObject",
    "GetObject": "GetObject",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListParts": "ListMultipartUploadParts",
    "PutObject": "PutObject",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "UploadPart": "PutObject",
}
# Of EC2: the kind of resource, and the parameters that name it, if it exists already
_EC2_RESOURCES = {
    "AuthorizeSecurityGroupEgress": ("security-group", "GroupId"),
    "AuthorizeSecurityGroupIngress": ("security-group", "GroupId"),
    "CreateLaunchTemplate": ("launch-template", ""),
    "CreatePlacementGroup": ("placement-group", "GroupName"),
    "CreateSecurityGroup": ("security-group", ""),
    "DeleteKeyPair": ("key-pair", "KeyName"),
    "DeleteSnapshot": ("snapshot", "SnapshotId"),
    "DeregisterImage": ("image", "ImageId"),
    "DeleteLaunchTemplate": ("launch-template", "LaunchTemplateId"),
    "DeletePlacementGroup": ("placement-group", "GroupName"),
    "DeleteSecurityGroup": ("security-group", "GroupId"),
    "GetConsoleOutput": ("instance", "InstanceId"),
    "ImportKeyPair": ("key-pair", "KeyName"),
    "TerminateInstances": ("instance", r"InstanceId\.\d+"),
}
_WITHOUT_OWNER = ("image", "snapshot")  # in their ARNs
_ROLE = re.compile(r"Role(Policy)?$")


@dataclass(frozen=True)
class Need:
    """One permission; the context is by key in lower case."""

    action: str
    resource: str = "*"
    context: Mapping[str, list[str]] = field(default_factory=dict)


def needed(call: Call, request: Request, groups: Groups) -> list[Need]:
    """All that the caller must be allowed to."""
    if call.name == "sts:GetCallerIdentity":
        return []
    if call.service == "s3":
        return list(_of_s3(call, request))
    if call.service == "ec2":
        return list(_of_ec2(call, request.form))
    if call.service == "iam":
        return list(_of_iam(call, request.form))
    if call.service == "autoscaling":
        return list(_of_autoscaling(call, request.form, groups))
    return [Need(call.name)]


def _of_s3(call: Call, request: Request) -> Iterator[Need]:
    bucket, key = bucket_and_key(request)
    action = f"s3:{_S3_ACTIONS.get(call.operation, call.operation)}"
    whole = f"arn:aws:s3:::{bucket}" if bucket else "*"
    if call.operation == "DeleteObjects":
        for name, version in _deleted(request.body):
            yield from _to_delete(f"{whole}/{name}", bool(version))
    elif call.operation in ("CopyObject", "UploadPartCopy"):
        source = unquote(request.headers["x-amz-copy-source"]).lstrip("/")
        yield Need("s3:GetObject", f"arn:aws:s3:::{source.partition('?versionId=')[0]}")
        yield Need("s3:PutObject", f"{whole}/{key}")
    elif call.operation == "DeleteObject":
        yield from _to_delete(f"{whole}/{key}", "versionId" in request.parameters)
    elif key:
        versioned = "versionId" in request.parameters
        yield Need(f"{action}Version" if versioned else action, f"{whole}/{key}")
    else:
        yield Need(action, whole, {"s3:prefix": [request.parameters.get("prefix", "")]})


def _to_delete(object: str, versioned: bool) -> Iterator[Need]:
    """S3 says that the first is always needed; and the second for a version, also for "null"."""
    yield Need("s3:DeleteObject", object)
    if versioned:
        yield Need("s3:DeleteObjectVersion", object)


def _deleted(body: bytes) -> list[tuple[str, str]]:
    found = []
    for element in ElementTree.fromstring(body).iter():
        if element.tag.endswith("Object"):
            said = {child.tag.rpartition("}")[2]: child.text or "" for child in element}
            found.append((said["Key"], said.get("VersionId", "")))
    return found


def _of_ec2(call: Call, given: Mapping[str, str]) -> Iterator[Need]:
    if call.operation == "CreateImage":
        yield from _to_take_image(call, given)
        return
    kind, parameter = _EC2_RESOURCES.get(call.operation, ("", ""))
    if not kind:
        yield Need(call.name)
        return
    owner = "" if kind in _WITHOUT_OWNER else ACCOUNT
    where = f"arn:aws:ec2:{call.region}:{owner}:{kind}"
    named = [v for name, v in given.items() if parameter and re.fullmatch(parameter, name)]
    if "LaunchTemplateName" in given and call.operation == "DeleteLaunchTemplate":
        known = backends.ec2(call.region).launch_template_name_to_ids
        named.append(known.get(given["LaunchTemplateName"], "*"))
    tags = {
        given[name]: given.get(name.removesuffix("Key") + "Value", "")
        for name in given
        if re.fullmatch(r"TagSpecification\.\d+\.Tag\.\d+\.Key", name)
    }
    asked = _tag_context("aws:requesttag", tags)
    for name in named or ["*"]:
        present = _tag_context("aws:resourcetag", _tags_of(call.region, name))
        present |= {k.replace("aws:", "ec2:", 1): v for k, v in present.items()}
        yield Need(call.name, f"{where}/{name}", {**asked, **present})
    if call.operation == "CreateSecurityGroup" and "VpcId" in given:
        yield Need(call.name, f"arn:aws:ec2:{call.region}:{ACCOUNT}:vpc/{given['VpcId']}")
    if tags:
        yield Need("ec2:CreateTags", f"{where}/*", {**asked, "ec2:createaction": [call.operation]})


def _to_take_image(call: Call, given: Mapping[str, str]) -> Iterator[Need]:
    """To make images and snapshots, of this instance, with these tags."""
    machine = given.get("InstanceId", "*")
    present = _tag_context("aws:resourcetag", _tags_of(call.region, machine))
    where = f"arn:aws:ec2:{call.region}"
    yield Need(call.name, f"{where}:{ACCOUNT}:instance/{machine}", present)
    tagged = any(name.startswith("TagSpecification.") for name in given)
    for kind in _WITHOUT_OWNER:
        yield Need(call.name, f"{where}::{kind}/*")
        if tagged:
            yield Need(
                "ec2:CreateTags", f"{where}::{kind}/*", {"ec2:createaction": ["CreateImage"]}
            )


def _tags_of(region: str, id: str) -> dict[str, str]:
    return {
        tag["key"]: tag["value"]
        for tag in backends.ec2(region).describe_tags({"resource-id": [id]})
    }


def _tag_context(prefix: str, tags: Mapping[str, str]) -> dict[str, list[str]]:
    context = {f"{prefix}/{key}".lower(): [value] for key, value in tags.items()}
    if tags and prefix == "aws:requesttag":
        context["aws:tagkeys"] = list(tags)
    return context


def _of_iam(call: Call, given: Mapping[str, str]) -> Iterator[Need]:
    if call.operation == "SimulatePrincipalPolicy":
        yield Need(call.name, given["PolicySourceArn"])
        return
    iam = backends.iam()
    role = _arn_of_iam("role", given, "RoleName", iam.roles.values())
    if "InstanceProfile" in call.operation and "InstanceProfileName" in given:
        known = iam.instance_profiles.values()
        resource = _arn_of_iam("instance-profile", given, "InstanceProfileName", known)
        yield Need(call.name, resource)
        if call.operation == "AddRoleToInstanceProfile":
            yield Need("iam:PassRole", role, {"iam:passedtoservice": ["ec2.amazonaws.com"]})
    elif _ROLE.search(call.operation):
        resource = role
        yield Need(call.name, role)
    else:
        resource = "*"
        yield Need(call.name)
    if call.operation.startswith("Create") and any(name.startswith("Tags.") for name in given):
        yield Need(call.name.replace("Create", "Tag", 1), resource)


def _arn_of_iam(kind: str, given: Mapping[str, str], parameter: str, known: Iterable[Any]) -> str:
    """Of what is not there the path is not known either, unless it is to be made."""
    name = given.get(parameter, "*")
    for each in known:
        if each.name == name:
            return str(each.arn)
    return f"arn:aws:iam::{ACCOUNT}:{kind}{given.get('Path', '/')}{name}"


def _of_autoscaling(call: Call, given: Mapping[str, str], groups: Groups) -> Iterator[Need]:
    if call.operation.startswith("Describe"):
        yield Need(call.name)
        return
    names = [value for name, value in given.items() if name.endswith(".ResourceId")]
    names += [given["AutoScalingGroupName"]] if "AutoScalingGroupName" in given else []
    tags = {
        given[name]: given.get(name.removesuffix("Key") + "Value", "")
        for name in given
        if re.fullmatch(r"Tags\.member\.\d+\.Key", name)
    }
    asked = _tag_context("aws:requesttag", tags)
    found = [groups.find(call.region, name) for name in names]
    if "InstanceId" in given:
        found.append(groups.holding(call.region, given["InstanceId"]))
        names.append("*")
    for name, group in zip(names, found, strict=True):
        yield Need(call.name, _arn(call.region, name, group), {**asked, **_about(group)})
    if any(name.startswith("LifecycleHookSpecificationList.") for name in given):
        yield Need("autoscaling:PutLifecycleHook", _arn(call.region, names[0], None), asked)
    if any(name.startswith("LaunchTemplate.") for name in given):
        yield from _to_launch(call.region, given)


def _arn(region: str, name: str, group: Group | None) -> str:
    where = f"arn:aws:autoscaling:{region}:{ACCOUNT}:autoScalingGroup"
    return group.arn if group else f"{where}:*:autoScalingGroupName/{name}"


def _about(group: Group | None) -> dict[str, list[str]]:
    tags = {key: value for key, (value, _) in group.tags.items()} if group else {}
    context = _tag_context("aws:resourcetag", tags)
    return context | {k.replace("aws:", "autoscaling:", 1): v for k, v in context.items()}


def _to_launch(region: str, given: Mapping[str, str]) -> Iterator[Need]:
    """Who gives a group a template must be allowed to launch with it, and to pass on its role."""
    reference = {
        name.removeprefix("LaunchTemplate."): value
        for name, value in given.items()
        if name.startswith("LaunchTemplate.")
    }
    where = f"arn:aws:ec2:{region}:{ACCOUNT}"
    yield Need("ec2:RunInstances", f"{where}:instance/*")
    try:
        template, version = launch.find_template(region, reference)
    except LaunchRefusedError:
        return
    yield Need("ec2:RunInstances", f"{where}:launch-template/{template.id}")
    profile = version.data.get("IamInstanceProfile", {})
    for known in backends.iam().instance_profiles.values():
        if known.name == profile.get("Name") or known.arn == profile.get("Arn"):
            for role in known.roles:
                yield Need("iam:PassRole", role.arn, {"iam:passedtoservice": ["ec2.amazonaws.com"]})
