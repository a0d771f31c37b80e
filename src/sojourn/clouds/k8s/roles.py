"""What tasks need to be allowed in their namespace, and the Role that allows it and no more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s.container import is_bucket
from sojourn.clouds.k8s.rights import refused
from sojourn.core.errors import AuthError
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.clouds.k8s.rights import Needed
    from sojourn.core.task import Task
    from sojourn.kube.api import Api

__all__ = ["NEEDED", "check_rights", "needed_for", "role_text"]

_CLAIMS: Needed = ("create get delete", "", "persistentvolumeclaims")
# Verbs, group, resource, as in docs/kubernetes.md.
NEEDED: tuple[Needed, ...] = (
    ("create get list update patch delete", "", "secrets"),
    ("create get delete", "", "configmaps"),
    _CLAIMS,
    ("create get list watch delete", "", "pods"),
    ("create get", "", "pods/exec"),
    ("create list patch delete", "batch", "jobs"),
)
_OPTIONAL: tuple[Needed, ...] = (("list", "", "events"),)  # they say why a pod does not come
_OF_GANGS: tuple[Needed, ...] = (
    ("create get delete", "", "services"),
    ("create get delete", "networking.k8s.io", "networkpolicies"),
)
_OF_MPI: tuple[Needed, ...] = (
    ("create get delete", "networking.k8s.io", "networkpolicies"),
    ("create get patch delete", "kubeflow.org", "mpijobs"),
    ("create get delete", "", "serviceaccounts"),
    ("create get delete", "rbac.authorization.k8s.io", "roles"),
    ("create get delete", "rbac.authorization.k8s.io", "rolebindings"),
)
_OF_QUEUES: tuple[Needed, ...] = (("create get delete", "scheduling.volcano.sh", "podgroups"),)
_NAME = "sojourn"
_AT_ONCE = 8
_MAY_LACK = ("watch", "pods")  # without it, pods are asked for again and again


def needed_for(task: Task) -> tuple[Needed, ...]:
    """What one task needs."""
    base = NEEDED
    if is_bucket(task.storage.container):
        base = tuple(needed for needed in NEEDED if needed is not _CLAIMS)
    gang = (_OF_MPI if task.mpi else _OF_GANGS) if task.gang else ()
    return (*base, *gang, *(_OF_QUEUES if "queue" in task.options else ()))


def check_rights(api: Api, task: Task) -> None:
    """Refuse, before anything is made, what may not be made; names all that is missing."""
    asked = [
        (verb, group, resource)
        for verbs, group, resource in needed_for(task)
        for verb in verbs.split()
        if (verb, resource) != _MAY_LACK
    ]
    answers = together([partial(refused, api, *each) for each in asked], at_once=_AT_ONCE)
    lacking = [
        f"{verb} {resource}{f'.{group}' if group else ''}"
        for (verb, group, resource), missing in zip(asked, answers, strict=True)
        if missing
    ]
    if lacking:
        raise AuthError(
            f"Not allowed in namespace {api.namespace}: {', '.join(lacking)}",
            hint="Run `sojourn doctor --role k8s` with the task's file, if it has one, for a role "
            "to ask for.",
        )


def role_text(tasks: Iterable[Task], namespace: str) -> str:
    """The Role for these tasks as YAML; without any, that for tasks which are no gangs."""
    import yaml  # only for those who ask for it

    needed = dict.fromkeys(each for task in tasks for each in needed_for(task)) or NEEDED
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": _NAME, "namespace": namespace},
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
            for verbs, group, resource in (*needed, *_OPTIONAL)
        ],
    }
    text: str = yaml.safe_dump(role, sort_keys=False)
    return text.rstrip("\n")
