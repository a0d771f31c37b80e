"""Whether requests and answers are as Google's discovery documents have them.

Rules that the documents do not have do not belong here, see `rules`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.simcloud.gcp import discovery
from tests.simcloud.gcp.discovery import Method
from tests.simcloud.gcp.wire import GCPError

_OUTPUT_ONLY = re.compile(r"\s*(\[Output[- ]Only\]|@OutputOnly|Output only\.)", re.IGNORECASE)
# What documents call output only although a client sends it back, to change what it has read
_SENT_BACK = {"fingerprint", "labelFingerprint", "etag", "selfLink"}
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


@dataclass(frozen=True)
class _Check:
    """A value is checked as a part of a request of this method, or of an answer (None)."""

    document: str
    method: str | None

    def value(self, schema: Mapping[str, Any], value: Any, path: str) -> None:
        if value is None and self.method and self._takes_null:
            return
        if "$ref" in schema:
            schema = {**discovery.schemas(self.document)[schema["$ref"]], "here": schema}
        kind = schema.get("type", "any")
        if kind == "object":
            self._object(schema, value, path)
        elif kind == "array":
            if not isinstance(value, list):
                raise self._bad(path, value, "list")
            for index, item in enumerate(value):
                self.value(schema["items"], item, f"{path}[{index}]")
        elif kind != "any":
            self._scalar(schema, kind, value, path)

    @property
    def _takes_null(self) -> bool:
        """A patch takes a field away with it, and to newer services it says nothing."""
        older = self.document.startswith(("compute.", "storage."))
        return not older or str(self.method).endswith(".patch")

    def _object(self, schema: Mapping[str, Any], value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise self._bad(path, value, schema.get("id", "object"))
        known = schema.get("properties", {})
        other = schema.get("additionalProperties")
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            if name in known:
                self._property(known[name], name, item, inner)
            elif other is None:
                raise self._unknown(name, path)
            else:
                self.value(other, item, inner)
        for name, spec in known.items():
            if self.method in spec.get("annotations", {}).get("required", ()) and name not in value:
                raise GCPError("required", f"Required field '{path}.{name}' not specified", 400)

    def _property(self, spec: Mapping[str, Any], name: str, value: Any, path: str) -> None:
        written = spec.get("readOnly") or _OUTPUT_ONLY.match(spec.get("description", ""))
        if self.method and written and name not in _SENT_BACK:
            message = f"Invalid value for field '{path}': '{value}'. The field is output only."
            raise GCPError("invalid", message, 400)
        self.value(spec, value, path)

    def _scalar(self, schema: Mapping[str, Any], kind: str, value: Any, path: str) -> None:
        form = schema.get("format", "")
        if kind == "boolean":
            fits = isinstance(value, bool)
        elif kind == "integer":
            fits = isinstance(value, int) and not isinstance(value, bool) and _within(form, value)
        elif kind == "number":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        else:
            fits = _fits_text(form, value, bool(self.method))
        if not fits:
            raise self._bad(path, value, form or kind)
        allowed = schema.get("enum")
        if allowed and value not in allowed:
            raise self._bad(path, value, f"one of {allowed}")
        pattern = schema.get("pattern")
        if pattern and kind == "string" and self.method and not re.fullmatch(pattern, value):
            message = (
                f"Invalid value for field '{path}': '{value}'. Must be a match of regex '{pattern}'"
            )
            raise GCPError("invalid", message, 400)

    def _bad(self, path: str, value: Any, wanted: str) -> Exception:
        message = f"Invalid value at '{path}' ({wanted}), {value!r}"
        if self.method is None:
            return AssertionError(f"The simulation answers what Google would not: {message}")
        return GCPError("invalid", message, 400)

    def _unknown(self, name: str, path: str) -> Exception:
        if self.method is None:
            return AssertionError(f"The simulation answers {path}.{name}, which Google does not")
        said = f'Invalid JSON payload received. Unknown name "{name}"'
        message = f"{said} at '{path}': Cannot find field."
        return GCPError("badRequest", message, 400, rpc="INVALID_ARGUMENT")


def check_query(method: Method, given: Mapping[str, list[str]]) -> None:
    """The parameters in the query are known, typed, and all that are needed."""
    known = {**discovery.load(method.document)["parameters"], **method.parameters}
    check = _Check(method.document, method.id)
    for name, values in given.items():
        spec = known.get(name)
        if spec is None or spec.get("location") == "path":
            message = (
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query '
                f"parameter. Field '{name}' could not be found in request message."
            )
            raise GCPError("badRequest", message, 400, rpc="INVALID_ARGUMENT")
        if len(values) > 1 and not spec.get("repeated"):
            raise GCPError("invalidParameter", f"Parameter {name} is given more than once", 400)
        for value in values:
            check.value(_plain(spec), _typed(spec, value, name), name)
    for name, spec in known.items():
        if spec.get("required") and spec.get("location") == "query" and name not in given:
            raise GCPError("required", f"Required parameter: {name}", 400)


def check_path(method: Method, given: Mapping[str, str]) -> None:
    """The names in the path are of the form that the document has."""
    for name, value in given.items():
        pattern = method.parameters[name].get("pattern")
        if pattern and not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value):
            message = (
                f"Invalid value for field '{name}': '{value}'. Must be a match of regex '{pattern}'"
            )
            raise GCPError("invalid", message, 400)


def check_body(method: Method, value: Any, root: str = "resource") -> None:
    """The body of a request; a method without one takes none."""
    request = method.spec.get("request")
    if request is None:
        if value not in (None, {}):
            raise GCPError("badRequest", f"{method.id} takes no body", 400)
        return
    _Check(method.document, method.id).value(request, {} if value is None else value, root)


def check_answer(method: Method, value: Any) -> None:
    """What the simulation answers; an AssertionError is its own fault."""
    response = method.spec.get("response")
    if response is not None:
        _Check(method.document, None).value(response, value, "")


def _plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key != "annotations"}


def _typed(spec: Mapping[str, Any], value: str, name: str) -> Any:
    if spec["type"] == "boolean":
        if value not in ("true", "false"):
            raise GCPError("invalidParameter", f"Invalid value '{value}' for {name}", 400)
        return value == "true"
    if spec["type"] == "integer":
        if not re.fullmatch(r"-?\d+", value):
            raise GCPError("invalidParameter", f"Invalid value '{value}' for {name}", 400)
        return int(value)
    return value


def _within(form: str, value: int) -> bool:
    low, high = _RANGES.get(form, (value, value))
    return low <= value <= high


def _fits_text(form: str, value: Any, lenient: bool) -> bool:
    if form in _RANGES:
        if lenient and isinstance(value, int) and not isinstance(value, bool):
            return _within(form, value)  # Google takes numbers here, too
        return (
            isinstance(value, str)
            and bool(re.fullmatch(r"-?\d+", value))
            and _within(form, int(value))
        )
    if not isinstance(value, str):
        return False
    if form == "byte":
        try:
            base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
        except binascii.Error:
            return False
    if form in ("date-time", "google-datetime"):
        try:
            datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return False
    return True
