"""Refusals in the forms that Google's services have. What is refused does not belong here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from tests.simcloud.common.wire import Answer

JSON = "application/json; charset=UTF-8"
XML = "application/xml; charset=UTF-8"

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_XML_CODES = {
    400: "InvalidArgument",
    401: "AuthenticationRequired",
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "Conflict",
    412: "PreconditionFailed",
    429: "SlowDown",
    500: "InternalError",
    503: "ServiceUnavailable",
}
# Services of the older kind, whose errors have a list of reasons and usually no status
_OLDER = ("compute", "storage")


class GCPError(Exception):
    """A refusal, with a reason that clients know."""

    def __init__(
        self,
        code: str,
        message: str = "",
        status: int = 400,
        *,
        rpc: str = "",
        details: Sequence[Mapping[str, Any]] = (),
        xml: str = "",
        location: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.rpc = rpc  # the status in words; newer services have no other reason
        self.details = list(details)
        self.xml = xml  # the code in the XML API of Cloud Storage
        self.location = location  # of the field that is wrong, and the type of that

    def body(self, service: str) -> dict[str, Any]:
        """As this service puts it in JSON."""
        error: dict[str, Any] = {"code": self.status, "message": self.message}
        if service in _OLDER:
            reason = {"message": self.message, "domain": "global", "reason": self.code}
            if self.location:
                reason["location"], reason["locationType"] = self.location
            error["errors"] = [reason]
        if service not in _OLDER or self.rpc or self.details:
            error["status"] = self.rpc or _STATUSES.get(self.status, "UNKNOWN")
        if self.details:
            error["details"] = self.details
        return {"error": error}


def refusal(service: str, method: str, error: GCPError, in_xml: bool) -> Answer:
    """The error as this service puts it."""
    if method == "HEAD":
        return Answer(error.status)
    if in_xml:
        code = error.xml or _XML_CODES.get(error.status, "InvalidArgument")
        inner = f"<Code>{code}</Code><Message>{escape(error.message)}</Message>"
        text = f"<?xml version='1.0' encoding='UTF-8'?><Error>{inner}</Error>"
        return Answer(error.status, text.encode(), {"Content-Type": XML})
    if service in ("oauth2", "sts"):
        said = {"error": error.code, "error_description": error.message}
        return answered(said, error.status)
    return answered(error.body(service), error.status)


def answered(value: Any, status: int = 200) -> Answer:
    """An answer in JSON."""
    return Answer(status, json.dumps(value, indent=2).encode(), {"Content-Type": JSON})


def not_found(name: str) -> GCPError:
    """As Compute Engine says that there is no such resource."""
    return GCPError("notFound", f"The resource '{name}' was not found", 404)


def invalid(field: str, value: object, why: str) -> GCPError:
    """As Compute Engine says that a field has a wrong value."""
    shown = "" if value is None else str(value)
    return GCPError("invalid", f"Invalid value for field '{field}': '{shown}'. {why}", 400)


def error_info(reason: str, domain: str, **metadata: str) -> dict[str, Any]:
    """The detail that newer errors have."""
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": domain,
        "metadata": metadata,
    }
