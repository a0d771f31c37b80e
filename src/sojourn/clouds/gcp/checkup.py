"""What `sojourn doctor` can tell of a project without making anything in it.

Nothing here is a problem: who has a project need not use it for this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp.regions import region_of, zone
from sojourn.core.errors import NotFound, SojournError
from sojourn.core.finding import Finding
from sojourn.core.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.gcp.account import Account

__all__ = ["NEEDED", "look"]

# What tasks need; docs/gcp.md has it as a role.
NEEDED = (
    "compute.acceleratorTypes.get",
    "compute.disks.create",
    "compute.disks.setLabels",
    "compute.firewalls.create",
    "compute.firewalls.delete",
    "compute.firewalls.get",
    "compute.firewalls.list",
    "compute.globalOperations.get",
    "compute.instanceGroupManagers.create",
    "compute.instanceGroupManagers.delete",
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.list",
    "compute.instanceGroupManagers.update",
    "compute.instanceGroups.create",
    "compute.instanceGroups.delete",
    "compute.instanceTemplates.create",
    "compute.instanceTemplates.delete",
    "compute.instanceTemplates.get",
    "compute.instanceTemplates.useReadOnly",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.list",
    "compute.instances.reset",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.instances.setTags",
    "compute.machineTypes.get",
    "compute.networks.get",
    "compute.networks.updatePolicy",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
    "compute.zoneOperations.get",
    "iam.serviceAccounts.actAs",
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.delete",
    "iam.serviceAccounts.get",
    "resourcemanager.projects.getIamPolicy",
    "resourcemanager.projects.setIamPolicy",
    "storage.buckets.create",
    "storage.buckets.delete",
    "storage.buckets.get",
    "storage.buckets.getIamPolicy",
    "storage.buckets.list",
    "storage.buckets.setIamPolicy",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
)
_AT_ONCE = 100  # permissions that one call tests, and accounts that one tells
_ACCOUNTS = 100  # the service accounts of a project, by default
_QUOTAS = {
    "CPUS": "CPUs",
    "PREEMPTIBLE_CPUS": "spot CPUs",
    "NVIDIA_T4_GPUS": "T4",
    "NVIDIA_L4_GPUS": "L4",
    "NVIDIA_A100_GPUS": "A100",
}


def look(account: Account) -> Iterator[Finding]:
    """Who the user is, where tasks go, and what seems to be missing."""
    here = zone(Task("#!/bin/sh").region)
    try:
        login = account.login
        login.token()
    except SojournError as error:
        yield Finding.failed("gcp identity", error)
        return
    who = login.who or login.source
    yield Finding("ok", "gcp identity", f"{who} in project {login.project}")
    yield Finding("ok", "gcp zone", f"{here} by default")
    yield _network(account)
    yield _permissions(account)
    yield from _quotas(account, region_of(here))
    yield from _room(account)


def _network(account: Account) -> Finding:
    try:
        account.compute("networks", "GET", "global/networks/default")
    except NotFound:
        make = "run `gcloud compute networks create default` to create one"
        return Finding("note", "gcp network", f"no default network; {make}")
    except SojournError as error:
        return Finding.failed("gcp network", error)
    return Finding("ok", "gcp network", "default")


def _permissions(account: Account) -> Finding:
    path = f"v1/projects/{account.project}:testIamPermissions"
    body: dict[str, Any] = {"permissions": list(NEEDED[:_AT_ONCE])}
    try:
        answer = account.call("permissions", "cloudresourcemanager", "POST", path, body)
    except SojournError as error:
        return Finding.failed("gcp permissions", error)
    missing = sorted(set(NEEDED) - set(answer.get("permissions", ())))
    if missing:
        text = f"missing: {', '.join(missing)}; see docs/gcp.md for the full role"
        return Finding("note", "gcp permissions", text)
    return Finding("ok", "gcp permissions", "none missing")


def _quotas(account: Account, region: str) -> Iterator[Finding]:
    try:
        found = account.compute("quotas", "GET", f"regions/{region}").get("quotas", ())
    except SojournError:
        return  # one may do without knowing
    told = [
        f"{quota['limit']:g} {_QUOTAS[quota['metric']]}"
        for quota in found
        if quota["metric"] in _QUOTAS
    ]
    if told:
        yield Finding("ok", "gcp quotas", f"limits in {region}: {', '.join(told)}")


def _room(account: Account) -> Iterator[Finding]:
    """Each task makes a service account, of which a project has few."""
    path = f"v1/projects/{account.project}/serviceAccounts"
    try:
        pages = account.pages("service accounts", "iam", path, pageSize=_AT_ONCE)
        used = sum(len(page.get("accounts", ())) for page in pages)
    except SojournError:
        return  # one may do without knowing
    text = f"{used} used; a project has {_ACCOUNTS} unless it was given more"
    if used < _ACCOUNTS:
        yield Finding("ok", "gcp accounts", f"{text}: room for {_ACCOUNTS - used} tasks")
        return
    more = "request an increase, delete unused tasks, or use one permission_set for several tasks"
    yield Finding("note", "gcp accounts", f"{text}: {more}")
