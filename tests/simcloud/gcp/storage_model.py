"""Buckets and objects of Cloud Storage as data, with generations and their preconditions.

How they are asked for does not belong here, see `storage_json` and `storage_xml`.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.simcloud.common.clock import Clock
from tests.simcloud.gcp.crc32c import crc32c
from tests.simcloud.gcp.policies import Policy
from tests.simcloud.gcp.timing import Timing
from tests.simcloud.gcp.wire import GCPError

SMALLEST_PART = 5 << 20


@dataclass
class Object:
    """An object; it does not change, another takes its place."""

    name: str
    data: bytes
    generation: int
    created: datetime
    content_type: str = ""
    headers: dict[str, str] = field(default_factory=dict)  # such as `cache-control`
    metadata: dict[str, str] = field(default_factory=dict)
    parts: int = 0  # of how many it was put together

    @property
    def md5(self) -> bytes:
        return hashlib.md5(self.data).digest()

    @property
    def crc(self) -> str:
        return base64.b64encode(crc32c(self.data).to_bytes(4, "big")).decode()

    @property
    def etag(self) -> str:
        """In XML; one that was put together has no MD5."""
        if self.parts:
            return f'"{hashlib.md5(str(self.generation).encode()).hexdigest()}-{self.parts}"'
        return f'"{self.md5.hex()}"'


@dataclass
class Upload:
    """One in parts that is not complete."""

    name: str
    started: datetime
    content_type: str
    metadata: dict[str, str]
    headers: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Bucket:
    """A bucket with all that is in it."""

    name: str
    settings: dict[str, Any]  # as they were given
    created: datetime
    known_at: float
    policy: Policy = field(default_factory=Policy)
    metageneration: int = 1
    objects: dict[str, Object] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    soft_deleted: list[Object] = field(default_factory=list)
    updated: datetime | None = None
    written: dict[str, float] = field(default_factory=dict)  # when objects were last changed

    @property
    def uniform(self) -> bool:
        settings = self.settings.get("iamConfiguration", {})
        return bool(settings.get("uniformBucketLevelAccess", {}).get("enabled", False))

    @property
    def keeps(self) -> int:
        """For how many seconds it keeps what was deleted."""
        policy = self.settings.get("softDeletePolicy", {})
        return int(policy.get("retentionDurationSeconds", 7 * 86400))

    def names(self, prefix: str, start: str) -> list[str]:
        """All with a prefix from a name on, sorted by their bytes in UTF-8."""
        names = sorted((name for name in self.objects if name.startswith(prefix)), key=str.encode)
        first = bisect.bisect_left([name.encode() for name in names], start.encode())
        return names[first:]


@dataclass(frozen=True)
class Match:
    """What must be true of an object for something to be done; None: not asked for."""

    generation: int | None = None  # 0: there is none
    not_generation: int | None = None
    metageneration: int | None = None

    def check(self, found: Object | None, reading: bool = False) -> None:
        current = found.generation if found else 0
        if self.generation is not None and self.generation != current:
            raise precondition_failed()
        if self.metageneration is not None and (found is None or self.metageneration != 1):
            raise precondition_failed()
        if self.not_generation is not None and self.not_generation == current:
            raise GCPError("notModified", "", 304) if reading else precondition_failed()


class Buckets:
    """All buckets of the project, and names that others have."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._last = 0
        self._gone: dict[str, float] = {}  # until when the name of a deleted one is taken
        self.all: dict[str, Bucket] = {}
        self.foreign: set[str] = set()
        self.open: set[str] = set()  # of others, but everybody may use them

    def get(self, name: str) -> Bucket:
        found = self.all.get(name)
        if name in self.foreign:
            raise GCPError("forbidden", "Access denied.", 403)
        if found is None or found.known_at > self._clock.now():
            message = "The specified bucket does not exist."
            raise GCPError("notFound", message, 404, xml="NoSuchBucket")
        return found

    def make(self, name: str, settings: dict[str, Any]) -> Bucket:
        if name in self.foreign | self.open or self._gone.get(name, 0.0) > self._clock.now():
            message = (
                "The requested bucket name is not available. The bucket namespace is shared by all "
                "users of the system. Please select a different name and try again."
            )
            raise GCPError("conflict", message, 409)
        if name in self.all:
            message = (
                "Your previous request to create the named bucket succeeded and you already own it."
            )
            raise GCPError("conflict", message, 409)
        ready = self._clock.now() + self._timing.bucket_ready
        self.all[name] = Bucket(name, settings, self._clock.today(), ready)
        return self.all[name]

    def drop(self, bucket: Bucket) -> None:
        if bucket.objects:
            raise GCPError("conflict", "The bucket you tried to delete is not empty.", 409)
        del self.all[bucket.name]
        self._gone[bucket.name] = self._clock.now() + self._timing.bucket_gone

    def put(self, bucket: Bucket, made: Object, match: Match) -> Object:
        """Write an object; its generation is newer than any other."""
        match.check(bucket.objects.get(made.name))
        self._check_rate(bucket, made.name)
        former = bucket.objects.get(made.name)
        self._last = max(self._last + 1, int(self._clock.now() * 1e6))
        made.generation = self._last
        made.created = self._clock.today()
        bucket.objects[made.name] = made
        self._keep(bucket, former)
        return made

    def delete(self, bucket: Bucket, name: str, match: Match) -> None:
        found = bucket.objects.get(name)
        match.check(found)
        if found is None:
            raise no_object(bucket.name, name)
        self._check_rate(bucket, name)
        del bucket.objects[name]
        self._keep(bucket, found)

    def begin(self, bucket: Bucket, upload: Upload) -> str:
        upload_id = secrets.token_urlsafe(30)
        bucket.uploads[upload_id] = upload
        return upload_id

    def _keep(self, bucket: Bucket, former: Object | None) -> None:
        if former and bucket.keeps:
            bucket.soft_deleted.append(former)

    def _check_rate(self, bucket: Bucket, name: str) -> None:
        """Google lets an object be changed once a second."""
        now = self._clock.now()
        if now - bucket.written.get(name, 0.0) < self._timing.object_rate:
            message = (
                f"The object {bucket.name}/{name} exceeded the rate limit for object mutation "
                f"operations (create, update, and delete). Please reduce your request rate."
            )
            raise GCPError("rateLimitExceeded", message, 429)
        bucket.written[name] = now


def no_object(bucket: str, name: str) -> GCPError:
    return GCPError("notFound", f"No such object: {bucket}/{name}", 404, xml="NoSuchKey")


def precondition_failed() -> GCPError:
    message = "At least one of the pre-conditions you specified did not hold."
    return GCPError("conditionNotMet", message, 412, location=("If-Match", "header"))


def check_name(name: str) -> None:
    """The rules for names of objects."""
    if not 1 <= len(name.encode()) <= 1024 or "\r" in name or "\n" in name or name in (".", ".."):
        raise GCPError("invalid", f"Invalid object name: '{name}'", 400, xml="InvalidObjectName")


def check_hashes(headers: Mapping[str, str], data: bytes) -> None:
    """What a client says of the data must be so."""
    for value in [headers.get("x-goog-hash", ""), f"md5={headers.get('content-md5', '')}"]:
        for each in value.split(","):
            kind, _, digest = each.strip().partition("=")
            if not digest:
                continue
            actual = {
                "md5": hashlib.md5(data).digest(),
                "crc32c": crc32c(data).to_bytes(4, "big") if kind == "crc32c" else b"",
            }[kind]
            if base64.b64decode(digest) != actual:
                message = f"Provided {kind} hash doesn't match calculated {kind} hash."
                raise GCPError("invalid", message, 400, xml="BadDigest")


def byte_range(given: str, size: int) -> tuple[int, int] | None:
    """The first and the last byte that a header asks for; None: it asks for all."""
    kind, _, spec = given.partition("=")
    if kind != "bytes" or "," in spec:
        return None
    first, _, last = spec.partition("-")
    if not first:
        start, end = max(size - int(last), 0), size - 1
    else:
        start, end = int(first), min(int(last), size - 1) if last else size - 1
    if start >= size or end < start:
        message = "The requested range cannot be satisfied."
        raise GCPError("requestedRangeNotSatisfiable", message, 416, xml="InvalidRange")
    return start, end
