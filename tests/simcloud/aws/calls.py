"""Which operation of which service a request asks for.

Only operations that are listed here, or that a query names itself, are known; whether the caller
may do it does not belong here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.simcloud.aws.wire import AWSError, bucket_and_key
from tests.simcloud.common.wire import Request

_SCOPE = re.compile(r"(?:Credential=|^)([^/,=\s]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request")

# Of S3: method, whether there is a key, what in the query tells it apart; the first match counts
_S3 = (
    ("GET", False, "versions", "ListObjectVersions"),
    ("GET", False, "uploads", "ListMultipartUploads"),
    ("GET", False, "location", "GetBucketLocation"),
    ("GET", False, "tagging", "GetBucketTagging"),
    ("GET", False, "versioning", "GetBucketVersioning"),
    ("GET", False, "publicAccessBlock", "GetPublicAccessBlock"),
    ("GET", False, "list-type", "ListObjectsV2"),
    ("GET", False, "", "ListObjects"),
    ("HEAD", False, "", "HeadBucket"),
    ("PUT", False, "tagging", "PutBucketTagging"),
    ("PUT", False, "versioning", "PutBucketVersioning"),
    ("PUT", False, "publicAccessBlock", "PutPublicAccessBlock"),
    ("PUT", False, "", "CreateBucket"),
    ("POST", False, "delete", "DeleteObjects"),
    ("DELETE", False, "", "DeleteBucket"),
    ("GET", True, "uploadId", "ListParts"),
    ("GET", True, "", "GetObject"),
    ("HEAD", True, "", "HeadObject"),
    ("POST", True, "uploads", "CreateMultipartUpload"),
    ("POST", True, "uploadId", "CompleteMultipartUpload"),
    ("PUT", True, "partNumber", "UploadPart"),
    ("PUT", True, "", "PutObject"),
    ("DELETE", True, "uploadId", "AbortMultipartUpload"),
    ("DELETE", True, "", "DeleteObject"),
)
# What would make another operation of those above, and is not known
_ELSEWHERE = {
    "accelerate", "acl", "attributes", "cors", "encryption", "intelligent-tiering", "inventory",
    "legal-hold", "lifecycle", "logging", "metrics", "notification", "object-lock",
    "ownershipControls", "policy", "replication", "restore", "retention", "select", "torrent",
    "website",
}  # fmt: skip
_SERVICES = {"autoscaling", "ec2", "iam", "s3", "servicequotas", "sts"}


@dataclass
class Call:
    """A call to the API, as it is written down."""

    service: str
    operation: str
    region: str
    key_id: str
    who: str = ""  # the ARN of the caller, once it is known
    error: str = ""  # the code that it was refused with

    @property
    def name(self) -> str:
        """As in a policy, but with the name of the operation: `s3:ListObjectsV2`."""
        return f"{self.service}:{self.operation}"


def identify(request: Request) -> Call:
    """The call that a request makes; a request that is not signed makes none."""
    signed = request.headers.get("authorization") or request.parameters.get("X-Amz-Credential", "")
    scope = _SCOPE.search(signed)
    if scope is None:
        raise AWSError("MissingAuthenticationToken", "Missing Authentication Token", 403)
    key_id, _, region, service = scope.groups()
    if service not in _SERVICES:
        raise NotImplementedError(f"The service {service} is not known here")
    return Call(service, _operation(service, request), region, key_id)


def _operation(service: str, request: Request) -> str:
    if service == "s3":
        return _operation_of_s3(request)
    if service == "servicequotas":  # speaks JSON
        return request.headers.get("x-amz-target", "").rpartition(".")[2]
    return request.form.get("Action", "")


def _operation_of_s3(request: Request) -> str:
    bucket, key = bucket_and_key(request)
    given = request.parameters
    if not bucket:
        return "ListBuckets"
    if ("tagging" in given and key) or given.keys() & _ELSEWHERE:
        return f"Unknown {request.method} {request.query}"
    copies = "x-amz-copy-source" in request.headers
    for method, has_key, mark, operation in _S3:
        if (method, has_key) == (request.method, bool(key)) and (not mark or mark in given):
            if copies:
                return {"PutObject": "CopyObject", "UploadPart": "UploadPartCopy"}[operation]
            return operation
    return f"Unknown {request.method} {request.query}"
