"""Which operation a request asks for. The paths are those of Azure's own packages.

Whether the caller may do it does not belong here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.simcloud.az import shapes
from tests.simcloud.az.tls import BLOBS, DIAGNOSTICS, LOGIN, MANAGEMENT
from tests.simcloud.az.wire import ArmError, host
from tests.simcloud.common.wire import Request

_SUBSCRIPTION = "/subscriptions/{subscriptionId}"
# What the packages do not list, since they follow what they are told, or are others
_MORE: Mapping[str, Mapping[str, Any]] = {
    "operations.status": {
        "path": _SUBSCRIPTION
        + "/providers/{provider}/locations/{location}/operations/{operationId}",
    },
    "operations.result": {
        "path": _SUBSCRIPTION
        + "/providers/{provider}/locations/{location}/operationresults/{operationId}",
        "query": {"monitor": {"is": "string"}},
    },
    "operations.groupResult": {
        "path": _SUBSCRIPTION + "/operationresults/{operationId}",
        "query": {"monitor": {"is": "string"}},
    },
    "subscriptions.get": {"path": _SUBSCRIPTION, "version": "2022-12-01"},
    "subscriptions.listLocations": {
        "path": _SUBSCRIPTION + "/locations",
        "version": "2022-12-01",
    },
}


@dataclass
class Call:
    """A call to any of Azure's services, as it is written down."""

    name: str  # `virtualMachineScaleSets.createOrUpdate`, `blobs.PutBlob`, `entra.token`
    path: str
    method: str
    operation: Mapping[str, Any] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the path, decoded
    who: str = ""  # the name of the caller, once it is known
    error: str = ""  # the code that it was refused with

    @property
    def scope(self) -> str:
        """The id of what it is about: the path up to a verb, for calls to Resource Manager."""
        path = self.path.rstrip("/")
        return path.rpartition("/")[0] if self.method == "POST" else path


def identify(request: Request) -> Call:
    """The call that a request makes."""
    name = host(request)
    if name == LOGIN:
        return Call(_login(request.path), request.path, request.method)
    if name == DIAGNOSTICS:
        return Call("diagnostics.get", request.path, request.method)
    if name.endswith(BLOBS):
        return Call("blobs.", request.path, request.method)
    assert name == MANAGEMENT, f"{name} is no service of Azure that is known here"
    return _of_management(request)


def _login(path: str) -> str:
    for end, name in (
        ("/oauth2/v2.0/token", "token"),
        ("/v2.0/.well-known/openid-configuration", "configuration"),
        ("/discovery/instance", "discovery"),
    ):
        if path.endswith(end):
            return f"entra.{name}"
    raise NotImplementedError(f"{path} of {LOGIN} is not known here")


def _of_management(request: Request) -> Call:
    path = unquote(request.path)
    for name, method, pattern, operation in _routes():
        found = pattern.fullmatch(path) if method == request.method else None
        if found:
            parameters = found.groupdict()
            return Call(name, path, request.method, operation, parameters)
    raise NotImplementedError(f"{request.method} {path} is not known here")


def check_query(call: Call, request: Request) -> None:
    """The version has to be the one that our knowledge of the operation is from."""
    given = request.parameters
    version = given.get("api-version")
    if not version:
        raise ArmError(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    known = call.operation.get("version")
    if known and version != known:
        raise ArmError(
            400,
            "InvalidApiVersionParameter",
            f"The api-version '{version}' is invalid. The supported versions are '{known}'.",
        )
    problems = shapes.query_problems({"query": {}, **call.operation}, given)
    if problems:
        raise ArmError(400, "InvalidQueryParameterValue", " ".join(problems))


@functools.cache
def _routes() -> list[tuple[str, str, re.Pattern[str], Mapping[str, Any]]]:
    return [
        (name, operation.get("method", "GET"), _pattern(operation["path"]), operation)
        for name, operation in _all()
    ]


def _all() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those with a scope of any form last: they would match others, too."""
    known = {**shapes.model()["operations"], **_MORE}
    yield from ((n, o) for n, o in known.items() if not o["path"].startswith("/{scope}"))
    yield from ((n, o) for n, o in known.items() if o["path"].startswith("/{scope}"))


def _pattern(path: str) -> re.Pattern[str]:
    """Ids are the same in any case."""
    text = ""
    for part in re.split(r"(\{\w+\})", path):
        if part == "{scope}":
            text += "(?P<scope>.+?)"
        elif part == "{parentResourcePath}":
            text += "(?P<parentResourcePath>.*?)"
        elif part.startswith("{"):
            text += f"(?P<{part[1:-1]}>[^/]+)"
        else:
            text += re.escape(part)
    return re.compile(text + "/?", re.IGNORECASE)
