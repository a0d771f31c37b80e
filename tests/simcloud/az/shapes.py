"""Whether a request or an answer has the shape that Azure's own packages say it has.

`model/azure.json` comes from these packages, see `model/extract.mjs`. What they do not know, such
as names and what must fit together, does not belong here, see `names` and `profile`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_MODEL = Path(__file__).parent / "model" / "azure.json"
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "map": (dict,),
    "object": (dict,),
    "datetime": (str,),
    "date": (str,),
    "timespan": (str,),
    "uuid": (str,),
}


@functools.cache
def model() -> dict[str, Any]:
    """Operations and types, as they were extracted."""
    loaded: dict[str, Any] = json.loads(_MODEL.read_text())
    return loaded


def problems(kind: str, value: Any, *, sent: bool) -> list[str]:
    """What is wrong with a value of this type, a line each; `sent`: by a client."""
    return list(_of_object(kind, value, "", sent))


def query_problems(operation: Mapping[str, Any], given: Mapping[str, str]) -> list[str]:
    """The same for the query of an operation."""
    found = []
    known = operation["query"]
    for name, text in given.items():
        if name in ("api-version", "$skiptoken"):  # the latter comes from a link to a next page
            continue
        if name not in known:
            found.append(f"The query parameter '{name}' is not known to this operation.")
        elif known[name].get("values") and text not in known[name]["values"]:
            found.append(f"The value '{text}' of the query parameter '{name}' is not known.")
    missing = {name for name, rule in known.items() if rule.get("required")} - given.keys()
    found += [f"The query parameter '{name}' is required." for name in sorted(missing)]
    return found


def _of_object(kind: str, value: Any, path: str, sent: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"Expected an object of type '{kind}'. Path '{path}'."
        return
    known = model()["types"][kind]
    for name, rule in known.items():
        needed = rule.get("required") and not (sent and rule.get("readOnly"))
        if needed and value.get(name) is None:
            yield f"Required property '{name}' not found in JSON. Path '{path}'."
    for name, each in value.items():
        here = f"{path}.{name}" if path else name
        if name not in known:
            yield f"Could not find member '{name}' on object of type '{kind}'. Path '{here}'."
        elif sent and known[name].get("readOnly"):
            yield f"The property '{name}' is read-only and cannot be set. Path '{here}'."
        elif each is not None:
            yield from _of_value(known[name], each, here, sent)


def _of_value(rule: Mapping[str, Any], value: Any, path: str, sent: bool) -> Iterator[str]:
    kind = rule["is"]
    allowed = _KINDS.get(kind)
    if allowed and (not isinstance(value, allowed) or (kind == "number" and value is True)):
        yield f"Error converting value {json.dumps(value)} to type '{kind}'. Path '{path}'."
        return
    if "values" in rule and value not in rule["values"]:
        known = "', '".join(rule["values"])
        yield f"The value '{value}' is not one of '{known}'. Path '{path}'."
    yield from _beyond(rule.get("limits", {}), value, path)
    if kind == "object":
        yield from _of_object(rule["type"], value, path, sent)
    elif kind == "array":
        for index, each in enumerate(value):
            yield from _of_value(rule["of"], each, f"{path}[{index}]", sent)
    elif kind == "map":
        for name, each in value.items():
            yield from _of_value(rule["of"], each, f"{path}['{name}']", sent)


def _beyond(limits: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """Azure's packages write a pattern as `^...$`, and lengths of texts and lists alike."""
    checks: dict[str, Callable[[Any], bool]] = {
        "InclusiveMinimum": lambda limit: value >= limit,
        "InclusiveMaximum": lambda limit: value <= limit,
        "ExclusiveMinimum": lambda limit: value > limit,
        "ExclusiveMaximum": lambda limit: value < limit,
        "MinLength": lambda limit: len(value) >= limit,
        "MaxLength": lambda limit: len(value) <= limit,
        "MinItems": lambda limit: len(value) >= limit,
        "MaxItems": lambda limit: len(value) <= limit,
        "UniqueItems": lambda limit: not limit or len(value) == len({str(each) for each in value}),
        "Pattern": lambda limit: re.search(limit, value) is not None,
        "MultipleOf": lambda limit: value % limit == 0,
    }
    for name, limit in limits.items():
        if not checks[name](limit):
            yield f"The value {json.dumps(value)} breaks the rule {name} {limit}. Path '{path}'."
