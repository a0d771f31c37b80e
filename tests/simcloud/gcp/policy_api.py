"""How callers read and write allow policies: versions, etags, conditions, members.

What a policy means does not belong here, see `policies`.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from tests.simcloud.gcp import cel
from tests.simcloud.gcp.policies import Policy
from tests.simcloud.gcp.project import Project
from tests.simcloud.gcp.wire import GCPError

_MEMBERS = re.compile(
    r"(allUsers|allAuthenticatedUsers|(user|group|domain|serviceAccount|deleted:serviceAccount|"
    r"projectOwner|projectEditor|projectViewer|principal|principalSet):.+)"
)
_MOST_MEMBERS = 1500


def shown(policy: Policy, version: int) -> dict[str, Any]:
    """As who asks for this version sees it: before the third, there are no conditions."""
    if version not in (0, 1, 3):
        raise _invalid("Requested policy version must be 0, 1 or 3.")
    bindings = copy.deepcopy(policy.bindings)
    conditional = any("condition" in each for each in bindings)
    if version < 3:
        for each in bindings:
            condition = each.pop("condition", None)
            if condition:
                digest = hashlib.sha256(str(condition).encode()).hexdigest()[:20]
                each["role"] += f"_withcond_{digest}"
    answer = {"version": 3 if conditional and version == 3 else 1, "etag": policy.etag}
    return {**answer, "bindings": bindings} if bindings else answer


def set_policy(project: Project, policy: Policy, request: Mapping[str, Any]) -> dict[str, Any]:
    """`setIamPolicy` of services but Cloud Storage."""
    given = request.get("policy")
    if given is None:
        raise _invalid("Policy must be given.")
    if request.get("updateMask"):
        raise NotImplementedError("updateMask is not known here")
    etag = given.get("etag")
    if etag and etag != policy.etag:
        message = (
            f"There were concurrent policy changes. Please retry the whole read-modify-write with "
            f"exponential backoff. The request's ETag '{etag}' did not match the current policy's "
            f"ETag '{policy.etag}'."
        )
        raise GCPError("ABORTED", message, 409, rpc="ABORTED")
    replace(project, policy, given)
    return shown(policy, 3)


def replace(project: Project, policy: Policy, given: Mapping[str, Any]) -> None:
    """Check a policy as Google does, and have it."""
    bindings = given.get("bindings", [])
    version = given.get("version", 0)
    conditional = any("condition" in each for each in [*bindings, *policy.bindings])
    if conditional and version != 3:
        raise _invalid(
            f"Specified policy version ({version}) cannot be less than the existing policy version "
            f"(3). For more information, please refer to "
            f"https://cloud.google.com/iam/docs/policies#versions."
        )
    if sum(len(each.get("members", [])) for each in bindings) > _MOST_MEMBERS:
        raise _invalid(f"The number of members in the policy is larger than {_MOST_MEMBERS}.")
    for binding in bindings:
        _check(project, binding)
    merged = _merged(bindings)
    project.policies.write(policy, merged, version)


def _merged(bindings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Bindings of the same role and condition are one."""
    found: dict[str, dict[str, Any]] = {}
    for binding in bindings:
        key = f"{binding['role']} {binding.get('condition')}"
        known = found.setdefault(key, {**binding, "members": []})
        known["members"] += [each for each in binding["members"] if each not in known["members"]]
    return list(found.values())


def _check(project: Project, binding: Mapping[str, Any]) -> None:
    role = binding.get("role", "")
    if not project.roles.known(role):
        if "_withcond_" in role:
            raise _invalid(f"Role {role} is of a policy that was read without its conditions.")
        raise _invalid(f"Role {role} is not supported for this resource.")
    for member in binding.get("members", []):
        _check_member(project, member)
    condition = binding.get("condition")
    if condition is not None:
        if not condition.get("title"):
            raise _invalid("Condition title must be specified.")
        try:
            cel.parse(condition.get("expression", ""))
        except cel.ConditionError as error:
            raise _invalid(f"Condition expression compilation failed: {error}") from None


def _check_member(project: Project, member: str) -> None:
    if not _MEMBERS.fullmatch(member):
        raise _invalid(f"Invalid member {member}: it must have a type such as serviceAccount:")
    kind, _, email = member.partition(":")
    if kind != "serviceAccount":
        return
    account = project.accounts.all.get(email)
    if account is None or account.known_at > project.clock.now():
        raise _invalid(f"Service account {email} does not exist.")


def _invalid(message: str) -> GCPError:
    return GCPError("INVALID_ARGUMENT", message, 400, rpc="INVALID_ARGUMENT")
