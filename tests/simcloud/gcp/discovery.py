"""Google's discovery documents: which method of which service a path means, and its schemas.

They are in the wheel of google-api-python-client. What is checked by them does not belong here,
see `oracle`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

# Where a service is: the first part of the path at our endpoint is the host that Google has for it
HOSTS = {
    "cloudresourcemanager.googleapis.com": ("cloudresourcemanager.v1", "cloudresourcemanager.v3"),
    "compute.googleapis.com": ("compute.v1",),
    "iam.googleapis.com": ("iam.v1",),
    "iamcredentials.googleapis.com": ("iamcredentials.v1",),
    "policytroubleshooter.googleapis.com": ("policytroubleshooter.v3",),
    "serviceusage.googleapis.com": ("serviceusage.v1",),
    "storage.googleapis.com": ("storage.v1",),
}
_PLACE = re.compile(r"\{(\+?)([A-Za-z]+)\}")


@dataclass(frozen=True)
class Method:
    """A method of a service."""

    document: str  # the name of the document
    id: str  # `compute.instances.insert`
    verb: str
    pattern: re.Pattern[str]
    spec: Mapping[str, Any]

    @property
    def service(self) -> str:
        return self.id.partition(".")[0]

    @property
    def operation(self) -> str:
        return self.id.partition(".")[2]

    @property
    def parameters(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.spec.get("parameters", {})
        return found

    def places(self, path: str) -> dict[str, str]:
        """The parameters that are in the path."""
        match = self.pattern.fullmatch(path)
        assert match
        return {name: unquote(value) for name, value in match.groupdict().items()}


@functools.cache
def load(name: str) -> dict[str, Any]:
    """A document."""
    folder = files("googleapiclient.discovery_cache") / "documents"
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def schemas(document: str) -> Mapping[str, Any]:
    """All types of a document."""
    found: Mapping[str, Any] = load(document)["schemas"]
    return found


def find(host: str, verb: str, path: str) -> Method | None:
    """The method that a path below a host means."""
    for document in HOSTS.get(host, ()):
        for method in _methods(document, verb):
            if method.pattern.fullmatch(path):
                return method
    return None


@functools.cache
def _methods(document: str, verb: str) -> list[Method]:
    data = load(document)
    found = [
        Method(document, spec["id"], verb, _pattern(base + path, spec), spec)
        for spec in _specs(data)
        if spec["httpMethod"] == verb
        for base, path in _paths(data, spec)
    ]
    # The longest literal text first: `{project}` would also take what ends with a verb
    return sorted(found, key=lambda method: -len(_PLACE.sub("", method.pattern.pattern)))


def _paths(data: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"/{data['servicePath']}", spec["path"]
    if "mediaUpload" in spec:
        yield "", spec["mediaUpload"]["protocols"]["simple"]["path"]


def _specs(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from node.get("methods", {}).values()
    for resource in node.get("resources", {}).values():
        yield from _specs(resource)


def _pattern(path: str, spec: Mapping[str, Any]) -> re.Pattern[str]:
    text, end = "", 0
    for place in _PLACE.finditer(path):
        text += re.escape(path[end : place.start()])
        given = spec["parameters"][place.group(2)].get("pattern", "")
        whole = given.removeprefix("^").removesuffix("$") if place.group(1) else "[^/:]+"
        text += f"(?P<{place.group(2)}>{whole or '.+'})"
        end = place.end()
    return re.compile(text + re.escape(path[end:]))
