"""The service account that a user gives as `permission_set`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.clouds.gcp.credentials import SCOPE
from sojourn.clouds.vm.identity import lacking, unchecked
from sojourn.core.errors import AuthError, InvalidInput, SojournError

if TYPE_CHECKING:
    from sojourn.clouds.gcp.account import Account

__all__ = ["Profile", "check_profile", "check_rights", "notes_on", "parse_profile"]

_PAGE = "docs/gcp.md"
_LEAVING = "compute.instanceGroupManagers.update"

_PREFIX = "https://www.googleapis.com/auth/"
# The short names that gcloud has.
_ALIASES = {
    "bigquery": ["bigquery"],
    "cloud-platform": ["cloud-platform"],
    "cloud-source-repos": ["source.full_control"],
    "cloud-source-repos-ro": ["source.read_only"],
    "compute-ro": ["compute.readonly"],
    "compute-rw": ["compute"],
    "datastore": ["datastore"],
    "logging-write": ["logging.write"],
    "monitoring": ["monitoring"],
    "monitoring-read": ["monitoring.read"],
    "monitoring-write": ["monitoring.write"],
    "pubsub": ["pubsub"],
    "service-control": ["servicecontrol"],
    "service-management": ["service.management.readonly"],
    "sql-admin": ["sqlservice.admin"],
    "storage-full": ["devstorage.full_control"],
    "storage-ro": ["devstorage.read_only"],
    "storage-rw": ["devstorage.read_write"],
    "taskqueue": ["taskqueue"],
    "trace": ["trace.append"],
    "userinfo-email": ["userinfo.email"],
    "default": [
        "devstorage.read_only",
        "logging.write",
        "monitoring.write",
        "pubsub",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    ],
}
_EMAIL = re.compile(r"[a-z0-9-]+@(project_id|[a-z0-9.-]+)\.(iam\.)?gserviceaccount\.com")
_ANY_PROJECT = "@project_id."  # as pages have it; it cannot be the ID of a project
_STORES = {SCOPE, f"{_PREFIX}devstorage.read_write", f"{_PREFIX}devstorage.full_control"}
_GROUPS = {SCOPE, f"{_PREFIX}compute"}
_EXAMPLE = "name@project.iam.gserviceaccount.com,scopes=storage-rw,compute-rw"


@dataclass(frozen=True)
class Profile:
    """An account, and what its tokens on machines are good for."""

    email: str
    scopes: tuple[str, ...] = (SCOPE,)


def parse_profile(given: str, project: str) -> Profile:
    """Read what the user gave; refuses what machines could not work with.

    `project_id` stands for the project. Scopes with which machines could not leave their group
    get the one that lets them: else they would be replaced for ever.
    """
    found = _parse(given)
    email = found.email.replace(_ANY_PROJECT, f"@{project}.")
    more = () if _GROUPS & set(found.scopes) else (f"{_PREFIX}compute",)
    return Profile(email, (*found.scopes, *more))


def check_profile(given: str) -> None:
    """Refuse what cannot be an account and scopes."""
    _parse(given)


def _parse(given: str) -> Profile:
    email, _, rest = given.partition(",")
    if not _EMAIL.fullmatch(email.strip()) or (rest and not rest.strip().startswith("scopes=")):
        raise InvalidInput(
            "permission_set",
            f"must be the email of a service account, and scopes, such as {_EXAMPLE}, "
            f"got {given!r}",
        )
    if not rest:
        return Profile(email.strip())
    names = [name.strip() for name in rest.strip().removeprefix("scopes=").split(",")]
    scopes = tuple(dict.fromkeys(scope for name in names for scope in _scopes(name)))
    if not _STORES & set(scopes):
        raise InvalidInput(
            "permission_set",
            "machines cannot write to their bucket with these scopes; add storage-rw",
        )
    return Profile(email.strip(), scopes)


def _scopes(name: str) -> list[str]:
    if name.startswith("https://"):
        return [name]
    if name not in _ALIASES:
        raise InvalidInput(
            "permission_set",
            f"unknown scope {name!r}; specify a URL, or one of: {', '.join(_ALIASES)}",
        )
    return [f"{_PREFIX}{scope}" for scope in _ALIASES[name]]


def notes_on(given: str, project: str) -> list[str]:
    """What the user should know of it."""
    used, written = parse_profile(given, project), _parse(given)
    notes = []
    if used.email != written.email:
        notes.append(f"Using {used.email}: project_id in permission_set stands for your project")
    if used.scopes != written.scopes:
        notes.append(
            "Adding the scope compute-rw to those of permission_set: without it, machines could "
            "not leave their group and would be replaced until you delete the task"
        )
    return notes


def check_rights(account: Account, email: str) -> list[str]:
    """Refuse an account that may not let machines leave their group, if Google tells; else there
    is a warning.

    It is asked about the project: the group is not made yet, and rights to it come from there. What
    a condition says of the group's name is left to the first machine. Rights to the bucket can
    come with the bucket, such as those of editors of the project.
    """
    asked = {
        "principal": email,
        "fullResourceName": f"//cloudresourcemanager.googleapis.com/projects/{account.project}",
        "permission": _LEAVING,
    }
    try:
        answer = account.call(
            "permission_set",
            "policytroubleshooter",
            "POST",
            "v3/iam:troubleshoot",
            {"accessTuple": asked},
        )
    except AuthError as error:
        return [unchecked(email, error.hint.rstrip(".") or error.message, [_LEAVING], _PAGE)]
    except SojournError as error:
        return [unchecked(email, error.message, [_LEAVING], _PAGE)]
    state = answer.get("overallAccessState")
    if state == "CANNOT_ACCESS":
        raise lacking(email, [_LEAVING], f"{_PAGE}#what-machines-may-do")
    if state == "CAN_ACCESS":
        return []
    return [unchecked(email, "Google Cloud could not tell", [_LEAVING], _PAGE)]
