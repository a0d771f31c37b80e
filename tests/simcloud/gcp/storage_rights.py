"""Which permissions calls to Cloud Storage need, and on what."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.policies import Policies, Resource
from tests.simcloud.gcp.project import Project
from tests.simcloud.gcp.storage_model import Buckets
from tests.simcloud.gcp.wire import GCPError

Needs = Iterator[tuple[str, Resource]]

_ON_BUCKETS = {
    "buckets.delete": "storage.buckets.delete",
    "buckets.get": "storage.buckets.get",
    "buckets.getIamPolicy": "storage.buckets.getIamPolicy",
    "buckets.patch": "storage.buckets.update",
    "buckets.setIamPolicy": "storage.buckets.setIamPolicy",
    "buckets.testIamPermissions": "",
    "objects.list": "storage.objects.list",
    "xml.listUploads": "storage.multipartUploads.list",
}
_ON_PROJECT = {
    "buckets.insert": "storage.buckets.create",
    "buckets.list": "storage.buckets.list",
}
_ON_OBJECTS = {
    "objects.delete": ("storage.objects.delete",),
    "objects.get": ("storage.objects.get",),
    "objects.insert": ("storage.objects.create",),
    "objects.copy": ("storage.objects.create",),
    "xml.createUpload": ("storage.multipartUploads.create", "storage.objects.create"),
    "xml.uploadPart": ("storage.multipartUploads.create", "storage.objects.create"),
    "xml.completeUpload": ("storage.multipartUploads.create", "storage.objects.create"),
    "xml.listParts": ("storage.multipartUploads.listParts",),
    "xml.abortUpload": ("storage.multipartUploads.abort",),
}
_OVERWRITING = ("objects.insert", "objects.copy", "xml.completeUpload")


def needed(call: Call, project: Project, buckets: Buckets) -> Needs:
    operation, places = call.operation, call.places
    if operation in _ON_PROJECT:
        yield _ON_PROJECT[operation], project.itself
    elif operation in _ON_BUCKETS:
        prefix = call.asked("prefix") if operation == "objects.list" else ""
        yield _ON_BUCKETS[operation], whole(buckets, places["bucket"], prefix)
    elif operation in _ON_OBJECTS:
        name = object_name(call)
        target = one(buckets, places["bucket"], name)
        for permission in _ON_OBJECTS[operation]:
            yield permission, target
        found = buckets.all.get(places["bucket"])
        if operation in _OVERWRITING and found and name in found.objects:
            yield "storage.objects.delete", target
        if operation == "objects.copy":
            bucket, source = copy_source(call.asked("copy-source"))
            yield "storage.objects.get", one(buckets, bucket, source)
    else:
        raise NotImplementedError(f"{call.name} is not known here")


def object_name(call: Call) -> str:
    return call.places.get("object") or call.asked("name")


def copy_source(header: str) -> tuple[str, str]:
    bucket, _, name = unquote(header).lstrip("/").partition("/")
    return bucket, name


def whole(buckets: Buckets, name: str, prefix: str = "") -> Resource:
    found = buckets.all.get(name)
    path = f"projects/_/buckets/{name}"
    policies = (found.policy,) if found else ()
    return Resource(path, "storage.googleapis.com/Bucket", policies, list_prefix=prefix)


def one(buckets: Buckets, bucket: str, name: str) -> Resource:
    found = buckets.all.get(bucket)
    path = f"projects/_/buckets/{bucket}/objects/{name}"
    return Resource(path, "storage.googleapis.com/Object", (found.policy,) if found else ())


def denied(call: Call, permission: str, name: str) -> GCPError:
    kind = "object" if "/objects/" in name else "bucket"
    if permission in _ON_PROJECT.values():
        kind = "project"
    message = (
        f"{call.who} does not have {permission} access to the Google Cloud Storage {kind}. "
        f"Permission '{permission}' denied on resource (or it may not exist)."
    )
    if kind == "project":
        message = message.replace("Storage project", "project")
    return GCPError("forbidden", message, 403)


def hidden(call: Call, who: str, policies: Policies, buckets: Buckets) -> GCPError | None:
    """Who may not list must not learn which objects are not there."""
    bucket = whole(buckets, call.places["bucket"])
    if policies.may(who, "storage.objects.list", bucket):
        return None
    return denied(call, "storage.objects.list", bucket.name)
