"""The JSON API of Cloud Storage: buckets, and objects as far as tests use them in it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request
from tests.simcloud.gcp import policy_api
from tests.simcloud.gcp.accounts import member_of
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.project import NUMBER, PROJECT, Project
from tests.simcloud.gcp.storage_model import (
    Bucket,
    Buckets,
    Match,
    Object,
    byte_range,
    check_hashes,
    check_name,
    no_object,
    precondition_failed,
)
from tests.simcloud.gcp.storage_rights import whole
from tests.simcloud.gcp.wire import GCPError, answered

_ROOT = "https://www.googleapis.com/storage/v1/b"
_NAME = re.compile(r"[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]")
_MOST = 1000
_KEPT = (
    "labels", "location", "storageClass", "iamConfiguration", "softDeletePolicy", "lifecycle",
    "versioning",
)  # fmt: skip
_WRITABLE = {*_KEPT, "name"}


class StorageJSON:
    """All methods that are known; each is called with the lock held."""

    def __init__(self, project: Project, buckets: Buckets) -> None:
        self._project = project
        self._buckets = buckets
        self._clock: Clock = project.clock
        self._methods: Mapping[str, Callable[[Call, Request], Any]] = {
            "buckets.delete": self._drop,
            "buckets.get": self._get_bucket,
            "buckets.getIamPolicy": self._get_policy,
            "buckets.insert": self._make,
            "buckets.list": self._list_buckets,
            "buckets.patch": self._patch,
            "buckets.setIamPolicy": self._set_policy,
            "buckets.testIamPermissions": self._test,
            "objects.delete": self._delete,
            "objects.get": self._get,
            "objects.insert": self._insert,
            "objects.list": self._list,
        }

    def answer(self, call: Call, request: Request) -> Any:
        """A value for JSON, or an answer of another kind."""
        method = self._methods.get(call.operation)
        if method is None:
            raise NotImplementedError(f"{call.name} is not known here")
        return method(call, request)

    # Buckets

    def _make(self, call: Call, _: Request) -> dict[str, Any]:
        body = dict(call.body or {})
        name = str(body.get("name", ""))
        if call.asked("project") not in (PROJECT, NUMBER):
            raise GCPError("invalid", f"Unknown project id: {call.asked('project')}", 400)
        if not _NAME.fullmatch(name) or name.startswith("goog") or "google" in name:
            raise GCPError("invalid", f"Invalid bucket name: '{name}'", 400)
        if foreign := body.keys() - _WRITABLE:
            raise NotImplementedError(f"buckets with {sorted(foreign)} are not known here")
        _check_labels(body.get("labels", {}))
        settings = {key: body[key] for key in _KEPT if key in body}
        _check_settings(settings)
        bucket = self._buckets.make(name, settings)
        for role, kinds in (("Owner", ("Editor", "Owner")), ("Reader", ("Viewer",))):
            members = [f"project{kind}:{PROJECT}" for kind in kinds]
            found = {"role": f"roles/storage.legacyBucket{role}", "members": members}
            bucket.policy.bindings.append(found)
        return self.described(bucket)

    def _get_bucket(self, call: Call, _: Request) -> dict[str, Any]:
        return self.described(self._buckets.get(call.places["bucket"]))

    def _list_buckets(self, call: Call, _: Request) -> dict[str, Any]:
        found = [
            self.described(bucket)
            for name, bucket in sorted(self._buckets.all.items())
            if name.startswith(call.asked("prefix")) and name not in self._buckets.open
        ]
        return _paged(call, "storage#buckets", found)

    def _patch(self, call: Call, _: Request) -> dict[str, Any]:
        bucket = self._buckets.get(call.places["bucket"])
        _check_metageneration(call, bucket)
        body = dict(call.body or {})
        if foreign := body.keys() - set(_KEPT):
            raise NotImplementedError(f"buckets with {sorted(foreign)} are not known here")
        settings = _merged(bucket.settings, body)
        _check_labels(settings.get("labels", {}))
        _check_settings(settings)
        bucket.settings = settings
        bucket.metageneration += 1
        bucket.updated = self._clock.today()
        return self.described(bucket)

    def _drop(self, call: Call, _: Request) -> Answer:
        bucket = self._buckets.get(call.places["bucket"])
        _check_metageneration(call, bucket)
        self._buckets.drop(bucket)
        return Answer(204)

    def _get_policy(self, call: Call, _: Request) -> dict[str, Any]:
        bucket = self._buckets.get(call.places["bucket"])
        version = call.asked_number("optionsRequestedPolicyVersion", 1)
        return _of_bucket(bucket, policy_api.shown(bucket.policy, version))

    def _set_policy(self, call: Call, _: Request) -> dict[str, Any]:
        bucket = self._buckets.get(call.places["bucket"])
        given = {k: v for k, v in (call.body or {}).items() if k not in ("kind", "resourceId")}
        conditional = any("condition" in each for each in given.get("bindings", []))
        if conditional and not bucket.uniform:
            message = (
                "Conditional policies can only be set on buckets with uniform bucket-level access."
            )
            raise GCPError("invalid", message, 412)
        if given.get("etag") not in (None, bucket.policy.etag):
            raise precondition_failed()
        policy_api.replace(self._project, bucket.policy, given)
        return _of_bucket(bucket, policy_api.shown(bucket.policy, 3))

    def _test(self, call: Call, _: Request) -> dict[str, Any]:
        who, resource = member_of(call.who), whole(self._buckets, call.places["bucket"])
        self._buckets.get(call.places["bucket"])
        may = self._project.policies.may
        held = [each for each in call.query.get("permissions", []) if may(who, each, resource)]
        answer: dict[str, Any] = {"kind": "storage#testIamPermissionsResponse"}
        return {**answer, "permissions": held} if held else answer

    def described(self, bucket: Bucket) -> dict[str, Any]:
        """As callers are told of it."""
        settings, created = bucket.settings, _time(bucket.created)
        uniform: dict[str, Any] = {"enabled": bucket.uniform}
        access = settings.get("iamConfiguration", {}).get("publicAccessPrevention", "inherited")
        return {
            "kind": "storage#bucket",
            "id": bucket.name,
            "name": bucket.name,
            "selfLink": f"{_ROOT}/{bucket.name}",
            "projectNumber": NUMBER,
            "metageneration": str(bucket.metageneration),
            "location": settings.get("location", "US").upper(),
            "locationType": "region" if "-" in settings.get("location", "US") else "multi-region",
            "storageClass": settings.get("storageClass", "STANDARD"),
            "timeCreated": created,
            "updated": _time(bucket.updated or bucket.created),
            "etag": f"CA{bucket.metageneration}=",
            "iamConfiguration": {
                "uniformBucketLevelAccess": uniform,
                "publicAccessPrevention": access,
            },
            "softDeletePolicy": {
                "retentionDurationSeconds": str(bucket.keeps),
                "effectiveTime": created,
            },
            **{k: settings[k] for k in ("labels", "lifecycle", "versioning") if settings.get(k)},
        }

    # Objects

    def _insert(self, call: Call, request: Request) -> dict[str, Any]:
        bucket = self._buckets.get(call.places["bucket"])
        if call.asked("uploadType") != "media":
            raise NotImplementedError("uploads are only known with uploadType=media")
        name = call.asked("name")
        check_name(name)
        check_hashes(request.headers, request.body)
        kind = request.headers.get("content-type", "application/octet-stream")
        made = Object(name, request.body, 0, self._clock.today(), kind)
        return _described(bucket, self._buckets.put(bucket, made, _match(call)))

    def _get(self, call: Call, request: Request) -> Any:
        bucket = self._buckets.get(call.places["bucket"])
        name = call.places["object"]
        found = bucket.objects.get(name)
        if found is None or call.asked("generation", str(found.generation)) != str(
            found.generation
        ):
            raise no_object(bucket.name, name)
        _match(call).check(found, reading=True)
        if call.asked("alt") != "media":
            return _described(bucket, found)
        asked = byte_range(request.headers.get("range", ""), len(found.data))
        headers = {"Content-Type": found.content_type, "x-goog-generation": str(found.generation)}
        if asked is None:
            return Answer(200, found.data, headers)
        first, last = asked
        headers["Content-Range"] = f"bytes {first}-{last}/{len(found.data)}"
        return Answer(206, found.data[first : last + 1], headers)

    def _delete(self, call: Call, _: Request) -> Answer:
        bucket = self._buckets.get(call.places["bucket"])
        self._buckets.delete(bucket, call.places["object"], _match(call))
        return Answer(204)

    def _list(self, call: Call, _: Request) -> dict[str, Any]:
        bucket = self._buckets.get(call.places["bucket"])
        start = max(call.asked("startOffset"), _unpaged(call.asked("pageToken")))
        most = min(call.asked_number("maxResults", _MOST), _MOST)
        end = call.asked("endOffset")
        found, prefixes, following = listed(
            bucket, call.asked("prefix"), call.asked("delimiter"), start, most, end
        )
        answer: dict[str, Any] = {"kind": "storage#objects"}
        if found:
            answer["items"] = [_described(bucket, each) for each in found]
        if prefixes:
            answer["prefixes"] = prefixes
        if following:
            answer["nextPageToken"] = base64.b64encode(following.encode()).decode()
        return answer


def listed(
    bucket: Bucket, prefix: str, delimiter: str, start: str, most: int, end: str = ""
) -> tuple[list[Object], list[str], str]:
    """Objects, common prefixes, and the name from which the next page goes on."""
    found: list[Object] = []
    prefixes: list[str] = []
    for name in bucket.names(prefix, start):
        if end and name >= end:
            break
        rest = name[len(prefix) :]
        is_common = bool(delimiter) and delimiter in rest
        common = prefix + rest.partition(delimiter)[0] + delimiter if is_common else ""
        if is_common and prefixes[-1:] == [common]:
            continue
        if len(found) + len(prefixes) >= most:
            return found, prefixes, name
        if is_common:
            if not start.startswith(common) or start == common:
                prefixes.append(common)
        else:
            found.append(bucket.objects[name])
    return found, prefixes, ""


def _match(call: Call) -> Match:
    def number(name: str) -> int | None:
        return int(call.asked(name)) if name in call.query else None

    return Match(
        number("ifGenerationMatch"),
        number("ifGenerationNotMatch"),
        number("ifMetagenerationMatch"),
    )


def _described(bucket: Bucket, found: Object) -> dict[str, Any]:
    link = f"{_ROOT}/{bucket.name}/o/{quote(found.name, safe='')}"
    return {
        "kind": "storage#object",
        "id": f"{bucket.name}/{found.name}/{found.generation}",
        "selfLink": link,
        "name": found.name,
        "bucket": bucket.name,
        "generation": str(found.generation),
        "metageneration": "1",
        "contentType": found.content_type,
        "storageClass": "STANDARD",
        "size": str(len(found.data)),
        "crc32c": found.crc,
        "etag": f"C{found.generation}=",
        "timeCreated": _time(found.created),
        "updated": _time(found.created),
        **({} if found.parts else {"md5Hash": base64.b64encode(found.md5).decode()}),
        **({"metadata": found.metadata} if found.metadata else {}),
    }


def _of_bucket(bucket: Bucket, policy: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "storage#policy",
        "resourceId": f"projects/_/buckets/{bucket.name}",
        **policy,
    }


def _paged(call: Call, kind: str, found: list[Any]) -> dict[str, Any]:
    start = int(_unpaged(call.asked("pageToken")) or 0)
    end = start + min(call.asked_number("maxResults", _MOST), _MOST)
    answer: dict[str, Any] = {"kind": kind}
    if found[start:end]:
        answer["items"] = found[start:end]
    if end < len(found):
        answer["nextPageToken"] = base64.b64encode(str(end).encode()).decode()
    return answer


def _unpaged(token: str) -> str:
    return base64.b64decode(token).decode()


def _check_metageneration(call: Call, bucket: Bucket) -> None:
    asked = call.asked("ifMetagenerationMatch")
    if asked and int(asked) != bucket.metageneration:
        raise precondition_failed()


def _check_settings(settings: Mapping[str, Any]) -> None:
    seconds = int(settings.get("softDeletePolicy", {}).get("retentionDurationSeconds", 604800))
    if seconds and not 604800 <= seconds <= 7776000:
        message = "Soft delete policy retention duration must be 0 or between 7 and 90 days."
        raise GCPError("invalid", message, 400)
    access = settings.get("iamConfiguration", {}).get("publicAccessPrevention", "inherited")
    if access not in ("inherited", "enforced"):
        raise GCPError("invalid", f"Invalid argument: publicAccessPrevention {access}", 400)


def _check_labels(labels: Mapping[str, Any]) -> None:
    for key, value in labels.items():
        fits = re.fullmatch(r"[a-z][-_a-z0-9]{0,62}", key)
        if not fits or not re.fullmatch(r"[-_a-z0-9]{0,63}", str(value)):
            raise GCPError("invalid", f"Invalid label: '{key}': '{value}'", 400)
    if len(labels) > 64:
        raise GCPError("invalid", "A bucket can have 64 labels", 400)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch: null takes a key away."""
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merged(merged.get(key, {}), value)
        else:
            merged[key] = value
    return merged


def _time(moment: Any) -> str:
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z")


def as_answer(value: Any) -> Answer:
    return value if isinstance(value, Answer) else answered(value)
