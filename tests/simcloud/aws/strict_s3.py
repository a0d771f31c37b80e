"""What S3 refuses and moto does not: other regions, others' buckets, buckets that are too new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simcloud.aws import backends, codec
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.wire import AWSError, bucket_and_key
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request

_MOST_BUCKETS = 10_000  # in an answer


class S3:
    """Checks before moto answers; each is called with the lock held."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._ready: dict[str, float] = {}
        self._gone: dict[str, float] = {}  # when the name of a deleted bucket is free
        self.foreign: set[str] = set()  # names that other accounts have
        self.open: set[str] = set()  # and those of them that everybody may use

    def answer(self, call: Call, request: Request) -> Answer:
        if call.operation.startswith("Unknown"):
            raise NotImplementedError(f"{call.name} is not known here")
        if call.operation == "ListBuckets":
            return _buckets(request.parameters, self.open)
        bucket, _ = bucket_and_key(request)
        expected = request.headers.get("x-amz-expected-bucket-owner", "")
        if expected and (expected != backends.ACCOUNT) != (bucket in self.open):
            raise AWSError("AccessDenied", "Access Denied", 403)
        if bucket in self.foreign or (bucket in self.open and call.operation == "CreateBucket"):
            if call.operation == "CreateBucket":
                message = (
                    "The requested bucket name is not available. Please select a different name."
                )
                raise AWSError("BucketAlreadyExists", message, 409, BucketName=bucket)
            raise AWSError("AccessDenied", "Access Denied", 403)
        known = backends.s3().buckets.get(bucket)
        if call.operation == "CreateBucket":
            self._check_free(bucket)
            answer = backends.call(call.service, request)
            if known is None and answer.status == 200:
                self._ready[bucket] = self._clock.now() + self._timing.bucket_ready
            return answer
        if known is not None:
            if self._ready.get(bucket, 0.0) > self._clock.now():
                message = "The specified bucket does not exist"
                raise AWSError("NoSuchBucket", message, 404, BucketName=bucket)
            if known.region_name != call.region:
                raise AWSError(
                    "AuthorizationHeaderMalformed",
                    f"The authorization header is malformed; the region '{call.region}' is wrong; "
                    f"expecting '{known.region_name}'",
                    Region=known.region_name,
                )
        answer = backends.call(call.service, request)
        if call.operation == "DeleteBucket" and answer.status < 300:
            self._gone[bucket] = self._clock.now() + self._timing.bucket_gone
        return answer

    def _check_free(self, bucket: str) -> None:
        if self._gone.get(bucket, 0.0) > self._clock.now():
            message = (
                "A conflicting conditional operation is currently in progress against this "
                "resource. Please try again."
            )
            raise AWSError("OperationAborted", message, 409)


def _buckets(given: Mapping[str, str], others: set[str]) -> Answer:
    """S3 tells regions only to those who ask for pages or name a prefix; moto never does."""
    found = sorted(backends.s3().buckets.values(), key=lambda bucket: str(bucket.name))
    found = [bucket for bucket in found if bucket.name.startswith(given.get("prefix", ""))]
    found = [bucket for bucket in found if bucket.name not in others]
    start = int(given.get("continuation-token") or 0)
    end = start + int(given.get("max-buckets", _MOST_BUCKETS))
    asked = given.keys() & {"prefix", "max-buckets", "continuation-token", "bucket-region"}
    result: dict[str, Any] = {"Owner": {"ID": backends.ACCOUNT}}
    result["Buckets"] = [
        {
            "Name": bucket.name,
            "CreationDate": bucket.creation_date,
            **({"BucketRegion": bucket.region_name} if asked else {}),
        }
        for bucket in found[start:end]
    ]
    if end < len(found):
        result["ContinuationToken"] = str(end)
    return codec.result("s3", "ListBuckets", result)
