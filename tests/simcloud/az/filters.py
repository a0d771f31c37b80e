"""Lists as Resource Manager gives them: filtered, and a page at a time."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from tests.simcloud.az.parts import Context
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

PAGE = 1000
_TERM = re.compile(r"(\w+) eq '((?:[^']|'')*)'")


def terms(text: str, known: tuple[str, ...]) -> dict[str, str]:
    """A filter of equalities that are joined by `and`."""
    found: dict[str, str] = {}
    for each in re.split(r"\s+and\s+", text.strip()) if text else []:
        term = _TERM.fullmatch(each.strip())
        if term is None or term[1] not in known:
            raise ArmError(
                400,
                "InvalidFilterInQueryString",
                f"Invalid $filter '{text}' specified in the query string.",
            )
        found[term[1]] = term[2].replace("''", "'")
    return found


def tagged(tags: dict[str, str], asked: dict[str, str]) -> bool:
    """Whether something has the tag of a filter."""
    name = asked.get("tagName")
    if name is None:
        return True
    found = {key.lower(): value for key, value in tags.items()}.get(name.lower())
    return found is not None and asked.get("tagValue", found) == found


def paged(context: Context, items: list[Any], page: int = PAGE) -> Answer:
    """One page, and where the next one is."""
    given = context.request.parameters
    top = given.get("$top", "")
    if top and not (top.isdigit() and 0 < int(top) <= PAGE):
        raise ArmError(400, "InvalidTopValue", f"The value '{top}' of $top is invalid.")
    size = min(page, int(top or page))
    begin = int(given.get("$skiptoken", "0"))
    said: dict[str, Any] = {"value": items[begin : begin + size]}
    if begin + size < len(items):
        rest = {**given, "$skiptoken": str(begin + size)}
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in rest.items())
        host = context.request.headers["host"]
        said["nextLink"] = f"https://{host}{context.request.path}?{query}"
    return reply(200, said)
