"""Identity and Access Management, Resource Manager and Service Usage of the project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from tests.simcloud.gcp import policy_api
from tests.simcloud.gcp.accounts import Account, member_of
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.policies import Policy, Resource
from tests.simcloud.gcp.project import NUMBER, PROJECT, SERVICES, Project
from tests.simcloud.gcp.roles import Custom
from tests.simcloud.gcp.wire import GCPError, error_info

_ID = re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]")
_ROLE_ID = re.compile(r"[a-zA-Z0-9_.]{3,64}")
QUOTA = 100  # service accounts


class IAM:
    """All methods that are known; each is called with the lock held."""

    def __init__(self, project: Project, policies: Callable[[], Iterable[Policy]]) -> None:
        self._project = project
        self._policies = policies  # all but those of the project and of accounts
        self._methods: Mapping[str, Callable[[Call], Any]] = {
            "cloudresourcemanager:projects.get": self._get_project,
            "cloudresourcemanager:projects.getIamPolicy": self._get_policy,
            "cloudresourcemanager:projects.setIamPolicy": self._set_policy,
            "cloudresourcemanager:projects.testIamPermissions": self._test,
            "iam:projects.roles.create": self._make_role,
            "iam:projects.roles.delete": self._delete_role,
            "iam:projects.roles.get": self._get_role,
            "iam:projects.roles.patch": self._patch_role,
            "iam:projects.roles.undelete": self._undelete_role,
            "iam:projects.serviceAccounts.create": self._create,
            "iam:projects.serviceAccounts.delete": self._delete,
            "iam:projects.serviceAccounts.get": self._get,
            "iam:projects.serviceAccounts.getIamPolicy": self._get_account_policy,
            "iam:projects.serviceAccounts.list": self._list,
            "iam:projects.serviceAccounts.setIamPolicy": self._set_account_policy,
            "iam:projects.serviceAccounts.testIamPermissions": self._test_on_account,
            "iamcredentials:projects.serviceAccounts.generateAccessToken": self._impersonate,
            "policytroubleshooter:iam.troubleshoot": self._troubleshoot,
            "serviceusage:services.enable": self._enable,
            "serviceusage:services.get": self._get_service,
        }

    def answer(self, call: Call) -> Any:
        method = self._methods.get(call.name)
        if method is None:
            raise NotImplementedError(f"{call.name} is not known here")
        return method(call)

    # Service accounts

    def _create(self, call: Call) -> dict[str, Any]:
        body = call.body or {}
        name, given = str(body.get("accountId", "")), body.get("serviceAccount", {})
        if not _ID.fullmatch(name):
            raise _invalid(
                "Account ID must be between 6 and 30 characters, start with a lowercase letter, "
                "and contain only lowercase letters, digits and hyphens."
                if name
                else "The account ID is required."
            )
        email = f"{name}@{PROJECT}.iam.gserviceaccount.com"
        if email in self._project.accounts.all:
            message = f"Service account {name} already exists within project projects/{PROJECT}."
            raise GCPError("ALREADY_EXISTS", message, 409)
        if len(self._own()) >= QUOTA:
            message = "Maximum number of service accounts on project reached."
            info = error_info("RESOURCE_EXHAUSTED", "iam.googleapis.com")
            raise GCPError("RESOURCE_EXHAUSTED", message, 429, details=[info])
        ready = self._project.clock.now() + self._project.timing.account_ready
        account = self._project.accounts.add(email, PROJECT, ready)
        account.display_name = str(given.get("displayName", ""))
        account.description = str(given.get("description", ""))
        if len(account.display_name) > 100 or len(account.description) > 256:
            raise _invalid("displayName and description are limited to 100 and 256 characters.")
        return _described(account)

    def _get(self, call: Call) -> dict[str, Any]:
        return _described(self._found(call.places["name"]))

    def _list(self, call: Call) -> dict[str, Any]:
        found = [_described(each) for each in self._own()]
        size = min(call.asked_number("pageSize", 20), 100)
        start = int(call.asked("pageToken") or 0)
        answer: dict[str, Any] = {"accounts": found[start : start + size]} if found else {}
        if start + size < len(found):
            answer["nextPageToken"] = str(start + size)
        return answer

    def _delete(self, call: Call) -> dict[str, Any]:
        account = self._found(call.places["name"])
        del self._project.accounts.all[account.email]
        others = [each.policy for each in self._project.accounts.all.values()]
        self._project.policies.forget([*self._policies(), *others], account.email, account.uid)
        return {}

    def _get_account_policy(self, call: Call) -> dict[str, Any]:
        version = call.asked_number("options.requestedPolicyVersion", 1)
        return policy_api.shown(self._found(call.places["resource"]).policy, version)

    def _set_account_policy(self, call: Call) -> dict[str, Any]:
        policy = self._found(call.places["resource"]).policy
        return policy_api.set_policy(self._project, policy, call.body or {})

    def _test_on_account(self, call: Call) -> dict[str, Any]:
        account = self._found(call.places["resource"])
        return self._held(call, Resource(call.places["resource"], policies=(account.policy,)))

    def _impersonate(self, call: Call) -> dict[str, Any]:
        """A token of an account for somebody who may have it."""
        body, account = call.body or {}, self._found(call.places["name"])
        if not body.get("scope"):
            raise _invalid("Request must have scopes.")
        text, lasts = self._project.accounts.make_token(account, tuple(body["scope"]))
        ends = self._project.clock.today() + timedelta(seconds=lasts)
        return {"accessToken": text, "expireTime": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _own(self) -> list[Account]:
        """Those that were made in the project, by their addresses."""
        ending = f"@{PROJECT}.iam.gserviceaccount.com"
        accounts = self._project.accounts.all
        return [accounts[email] for email in sorted(accounts) if email.endswith(ending)]

    def _found(self, name: str) -> Account:
        """The one that a path names; it may have `-` for the project."""
        _, project, _, given = name.split("/")
        account = self._project.accounts.find(given)
        if account is None or project not in ("-", account.project, NUMBER):
            raise GCPError("NOT_FOUND", f"Unknown service account: {name}", 404)
        return account

    # Roles

    def _make_role(self, call: Call) -> dict[str, Any]:
        body = call.body or {}
        given, role_id = body.get("role", {}), str(body.get("roleId", ""))
        name = f"projects/{PROJECT}/roles/{role_id}"
        if not _ROLE_ID.fullmatch(role_id):
            raise _invalid("The role ID must be 3 to 64 letters, digits, underscores and periods.")
        known = self._project.roles.custom.get(name)
        if known and known.deleted:
            message = (
                f"You can't create a role with role_id ({role_id}) where there is an existing role "
                f"with that role_id in a deleted state."
            )
            raise GCPError("FAILED_PRECONDITION", message, 400, rpc="FAILED_PRECONDITION")
        if known:
            message = f"A role named {role_id} in projects/{PROJECT} already exists."
            raise GCPError("ALREADY_EXISTS", message, 409)
        role = Custom(name, set(given.get("includedPermissions", [])), given.get("title", ""))
        self._project.roles.custom[name] = role
        return _role(role)

    def _get_role(self, call: Call) -> dict[str, Any]:
        return _role(self._found_role(call))

    def _delete_role(self, call: Call) -> dict[str, Any]:
        """It is kept for 7 days, and its id for 37."""
        role = self._found_role(call)
        role.deleted = True
        return _role(role)

    def _undelete_role(self, call: Call) -> dict[str, Any]:
        role = self._found_role(call)
        role.deleted = False
        return _role(role)

    def _patch_role(self, call: Call) -> dict[str, Any]:
        role, body = self._found_role(call), call.body or {}
        changed = set(call.asked("updateMask").split(",")) - {""} or body.keys()
        if strange := changed - {"includedPermissions", "title"}:
            raise NotImplementedError(f"changes of {sorted(strange)} of a role are not known here")
        if role.deleted:
            message = f"The role {role.name} is deleted. It must be undeleted first."
            raise GCPError("FAILED_PRECONDITION", message, 400, rpc="FAILED_PRECONDITION")
        if "includedPermissions" in changed:
            role.permissions = set(body.get("includedPermissions", []))
        if "title" in changed:
            role.title = str(body.get("title", ""))
        return _role(role)

    def _found_role(self, call: Call) -> Custom:
        role = self._project.roles.custom.get(call.places["name"])
        if role is None:
            message = f"The role named {call.places['name']} was not found."
            raise GCPError("NOT_FOUND", message, 404)
        return role

    # The project

    def _get_project(self, call: Call) -> dict[str, Any]:
        assert call.method
        if call.method.document.endswith(".v3"):
            return {
                "name": f"projects/{NUMBER}",
                "projectId": PROJECT,
                "state": "ACTIVE",
                "displayName": PROJECT,
            }
        return {"projectNumber": NUMBER, "projectId": PROJECT, "lifecycleState": "ACTIVE"}

    def _get_policy(self, call: Call) -> dict[str, Any]:
        options = (call.body or {}).get("options", {})
        version = int(options.get("requestedPolicyVersion", 1))
        return policy_api.shown(self._project.policies.project, version)

    def _set_policy(self, call: Call) -> dict[str, Any]:
        policy = self._project.policies.project
        return policy_api.set_policy(self._project, policy, call.body or {})

    def _test(self, call: Call) -> dict[str, Any]:
        return self._held(call, self._project.itself)

    def _held(self, call: Call, resource: Resource) -> dict[str, Any]:
        asked = (call.body or {}).get("permissions", [])
        may, who = self._project.policies.may, member_of(call.who)
        held = [each for each in asked if may(who, each, resource)]
        return {"permissions": held} if held else {}

    def _troubleshoot(self, call: Call) -> dict[str, Any]:
        """Of the project, by its policy alone: there is nothing above it."""
        asked = call.body["accessTuple"]
        whole = f"//cloudresourcemanager.googleapis.com/projects/{PROJECT}"
        if asked["fullResourceName"] != whole:
            raise NotImplementedError("only the project is known here")
        policies, who = self._project.policies, member_of(asked["principal"])
        if not policies.may(
            member_of(call.who), "resourcemanager.projects.getIamPolicy", self._project.itself
        ):
            return {"accessTuple": asked, "overallAccessState": "UNKNOWN_INFO"}
        if policies.may(who, asked["permission"], self._project.itself):
            state = "CAN_ACCESS"
        elif policies.may_somewhere(who, asked["permission"]):
            state = "UNKNOWN_CONDITIONAL"
        else:
            state = "CANNOT_ACCESS"
        return {"accessTuple": asked, "overallAccessState": state}

    # APIs

    def _get_service(self, call: Call) -> dict[str, Any]:
        service = call.places["name"].rpartition("/")[2]
        state = "ENABLED" if self._project.enabled(service.partition(".")[0]) else "DISABLED"
        name = f"projects/{NUMBER}/services/{service}"
        return {"name": name, "parent": f"projects/{NUMBER}", "state": state}

    def _enable(self, call: Call) -> dict[str, Any]:
        service = call.places["name"].rpartition("/")[2].partition(".")[0]
        if service not in SERVICES:
            raise GCPError("NOT_FOUND", f"Service {service} was not found", 404)
        ready = self._project.clock.now() + self._project.timing.api_ready
        self._project.enabled_at[service] = ready
        return {"name": f"operations/acf.{service}", "done": True}


def _described(account: Account) -> dict[str, Any]:
    name = f"projects/{account.project}/serviceAccounts/{account.email}"
    return {
        "name": name,
        "projectId": account.project,
        "uniqueId": account.uid,
        "email": account.email,
        "oauth2ClientId": account.uid,
        "etag": "MDEwMjE5MjA=",
        **({"displayName": account.display_name} if account.display_name else {}),
        **({"description": account.description} if account.description else {}),
    }


def _role(role: Custom) -> dict[str, Any]:
    return {
        "name": role.name,
        "title": role.title,
        "includedPermissions": sorted(role.permissions),
        "etag": "BwYAAAAAAAA=",
        **({"deleted": True} if role.deleted else {}),
    }


def _invalid(message: str) -> GCPError:
    return GCPError("INVALID_ARGUMENT", message, 400)
