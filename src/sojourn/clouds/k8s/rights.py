"""What we may do, as the cluster tells it, and what would be needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.kube.api import Api

__all__ = ["Needed", "allowed", "missing", "refused", "who"]

Needed = tuple[str, str, str]  # verbs, group, resource


def who(api: Api) -> str:
    """The name that the cluster knows us by."""
    try:
        found = api.create("SelfSubjectReview", {"metadata": {"name": ""}})
        return str(found["status"]["userInfo"].get("username", "unknown"))
    except SojournError:
        return "unknown"


def missing(api: Api, needed: Iterable[Needed]) -> list[str]:
    """What we may not do in the namespace of `api`; without one, in all of the cluster."""
    return [
        f"{verb} {resource}{f'.{group}' if group else ''}"
        for verbs, group, resource in needed
        for verb in verbs.split()
        if not allowed(api, verb, group, resource)
    ]


def allowed(api: Api, verb: str, group: str, resource: str) -> bool:
    """Whether we may; not, as far as it cannot be found out."""
    try:
        return _reviewed(api, verb, group, resource)
    except SojournError:
        return False


def refused(api: Api, verb: str, group: str, resource: str) -> bool:
    """Whether the cluster says that we may not."""
    try:
        return not _reviewed(api, verb, group, resource)
    except SojournError:
        return False


def _reviewed(api: Api, verb: str, group: str, resource: str) -> bool:
    kind, _, sub = resource.partition("/")
    asked = {"namespace": api.namespace, "verb": verb, "group": group, "resource": kind}
    if sub:
        asked["subresource"] = sub
    body = {"metadata": {"name": ""}, "spec": {"resourceAttributes": asked}}
    return bool(api.create("SelfSubjectAccessReview", body)["status"]["allowed"])
