"""Whether a request was signed with the secret of the key that it names (Signature Version 4).

Whose key that is, and what it may do, does not belong here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from urllib.parse import quote, unquote

from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.wire import Request

_SKEW = timedelta(minutes=15)
_FIELD = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
_UNSIGNED = "UNSIGNED-PAYLOAD"


def verify(request: Request, service: str, secret: str) -> None:
    """Refuse a request whose signature is not what this secret makes of it."""
    presigned = "X-Amz-Signature" in request.parameters
    fields = _fields_of_query(request) if presigned else _fields_of_header(request)
    signed_at = _time(fields.get("Date", ""))
    now = datetime.now(timezone.utc)
    if presigned:
        if now > signed_at + timedelta(seconds=int(request.parameters["X-Amz-Expires"])):
            raise AWSError("AccessDenied", "Request has expired", 403)
    elif abs(now - signed_at) > _SKEW:
        message = "The difference between the request time and the current time is too large."
        raise AWSError("RequestTimeTooSkewed", message, 403)
    payload = _payload(request, service, presigned)
    expected = _signature(request, service, secret, fields, payload)
    if not hmac.compare_digest(expected, fields.get("Signature", "")):
        code = "AuthFailure" if service == "ec2" else "SignatureDoesNotMatch"
        message = (
            "The request signature we calculated does not match the signature you provided. "
            "Check your key and signing method."
        )
        raise AWSError(code, message, 401 if service == "ec2" else 403)


def _fields_of_header(request: Request) -> dict[str, str]:
    fields = dict(_FIELD.findall(request.headers["authorization"]))
    return {**fields, "Date": request.headers.get("x-amz-date", "")}


def _fields_of_query(request: Request) -> dict[str, str]:
    given = request.parameters
    names = ("Credential", "SignedHeaders", "Signature", "Date")
    return {name: given.get(f"X-Amz-{name}", "") for name in names}


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise AWSError("AccessDenied", "No valid date is in the signature", 403) from None


def _payload(request: Request, service: str, presigned: bool) -> str:
    """The digest that goes into the signature, after it was compared with the body."""
    actual = hashlib.sha256(request.body).hexdigest()
    if service != "s3":
        return actual
    if presigned:
        return _UNSIGNED
    given = request.headers.get("x-amz-content-sha256", "")
    if given.startswith("STREAMING-"):
        raise AWSError("NotImplemented", "Bodies in signed chunks are not known here", 501)
    if not given:
        message = "Missing required header for this request: x-amz-content-sha256"
        raise AWSError("InvalidRequest", message)
    if given not in (actual, _UNSIGNED):
        message = "The provided 'x-amz-content-sha256' header does not match what was computed."
        raise AWSError("XAmzContentSHA256Mismatch", message)
    return given


def _signature(
    request: Request, service: str, secret: str, fields: Mapping[str, str], payload: str
) -> str:
    date, region = fields["Credential"].split("/")[1:3]
    names = fields["SignedHeaders"].split(";")
    # Everywhere but in S3 the path is encoded once more; here it is the root.
    path = request.path if service == "s3" else quote(request.path)
    headers = "".join(
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names
    )
    canonical = "\n".join(
        [request.method, path, _query(request.query), headers, ";".join(names), payload]
    )
    scope = f"{date}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{fields['Date']}\n{scope}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request", text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def _query(query: str) -> str:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    encoded = sorted((_encode(name), _encode(value)) for name, _, value in pairs)
    return "&".join(f"{n}={v}" for n, v in encoded if n != "X-Amz-Signature")


def _encode(text: str) -> str:
    return quote(unquote(text.replace("+", " ")), safe="-_.~")
