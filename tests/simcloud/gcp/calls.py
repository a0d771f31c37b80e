"""Which method of which service a request asks for.

Cloud Storage has two APIs; a call to the one in XML has the name that it would have in JSON, if
there is one. Whether the caller may do it does not belong here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.simcloud.common.wire import Request
from tests.simcloud.gcp import discovery
from tests.simcloud.gcp.discovery import Method
from tests.simcloud.gcp.wire import GCPError

STORAGE = "storage.googleapis.com"
TOKENS = "oauth2.googleapis.com"
FEDERATION = "sts.googleapis.com"

# Of the XML API: method, whether there is an object, what in the query tells it apart
_XML = (
    ("GET", False, "uploads", "xml.listUploads"),
    ("GET", False, "list-type", "objects.list"),
    ("POST", True, "uploads", "xml.createUpload"),
    ("POST", True, "uploadId", "xml.completeUpload"),
    ("PUT", True, "uploadId", "xml.uploadPart"),
    ("GET", True, "uploadId", "xml.listParts"),
    ("DELETE", True, "uploadId", "xml.abortUpload"),
    ("PUT", True, "", "objects.insert"),
    ("GET", True, "", "objects.get"),
    ("HEAD", True, "", "objects.get"),
    ("DELETE", True, "", "objects.delete"),
)
_XML_QUERY = {
    "continuation-token", "delimiter", "encoding-type", "generation", "list-type", "max-keys",
    "partNumber", "prefix", "start-after", "uploadId", "uploads", "x-id", "max-uploads",
    "key-marker", "upload-id-marker",
}  # fmt: skip


@dataclass
class Call:
    """A call to the API, as it is written down."""

    service: str
    operation: str
    places: dict[str, str] = field(default_factory=dict)  # what the path names
    query: dict[str, list[str]] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    method: Method | None = field(default=None, repr=False)  # None: not in a discovery document
    xml: bool = False
    who: str = ""  # the address of the caller, once it is known
    error: str = ""  # the reason that it was refused with

    @property
    def name(self) -> str:
        """As in a discovery document, but with a colon: `compute:instances.get`."""
        return f"{self.service}:{self.operation}"

    def asked(self, name: str, default: str = "") -> str:
        """A parameter of the query."""
        return self.query.get(name, [default])[-1]

    def asked_number(self, name: str, default: int) -> int:
        return int(self.asked(name) or default)

    def asked_flag(self, name: str) -> bool:
        return self.asked(name) == "true"


def identify(request: Request) -> Call:
    """The call that a request makes. The first part of the path is the host that it is for."""
    host, _, rest = request.path.lstrip("/").partition("/")
    query = parse_qs(request.query, keep_blank_values=True)
    if host == TOKENS and rest == "token":
        return Call("oauth2", "token")
    if host == FEDERATION and rest == "v1/token":
        return Call("sts", "token")
    method = discovery.find(host, request.method, f"/{rest}")
    if method:
        found = method.operation
        call = Call(method.service, found, method.places(f"/{rest}"), query, method=method)
        if not rest.startswith("upload/"):
            call.body = _json(request)
        return call
    if host == STORAGE and not rest.startswith(("storage/v1/", "upload/")):
        return _in_xml(request, rest, query)
    service = host.partition(".")[0]
    if host not in discovery.HOSTS:
        raise NotImplementedError(f"{request.method} {request.path} is of no service known here")
    message = f"The requested URL /{rest} was not found on this server."
    raise GCPError("notFound", f"{service}: {message}", 404)


def _in_xml(request: Request, rest: str, query: dict[str, list[str]]) -> Call:
    bucket, _, key = rest.partition("/")
    places = {"bucket": unquote(bucket), "object": unquote(key)}
    strange = query.keys() - _XML_QUERY
    for verb, has_key, mark, operation in _XML:
        if (verb, has_key) == (request.method, bool(key)) and (not mark or mark in query):
            if operation == "objects.insert" and "x-goog-copy-source" in request.headers:
                operation = "objects.copy"
            if strange:
                break
            return Call("storage", operation, places, query, xml=True)
    raise NotImplementedError(f"{request.method} {rest}?{request.query} is not known here")


def _json(request: Request) -> Any:
    if not request.body:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/json":
        message = f"Invalid value for Content-Type: '{kind}'; it must be application/json"
        raise GCPError("badContent", message, 400)
    try:
        return json.loads(request.body)
    except ValueError:
        message = "Invalid JSON payload received. Parsing terminated before end of input."
        raise GCPError("parseError", message, 400) from None
