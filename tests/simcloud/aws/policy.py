"""What policies say to an action: statements with actions, resources and conditions.

Only what grants are made of here; what an operation needs does not belong here, see `rights`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Context = Mapping[str, Sequence[str]]
"""What conditions can ask for, by key in lower case; a key that is not there has no value."""


def allowed(
    policies: Sequence[Mapping[str, Any]], action: str, resource: str, context: Context
) -> bool:
    """Whether something allows it and nothing denies it."""
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _list(policy["Statement"])
        if _concerns(statement, action, resource, context)
    }
    return effects == {"Allow"}


def keys_of(policies: Sequence[Mapping[str, Any]], action: str, resource: str) -> set[str]:
    """The keys that conditions on this action and resource ask for."""
    statements = [each for policy in policies for each in _list(policy["Statement"])]
    return {
        key
        for statement in statements
        if _concerns({**statement, "Condition": {}}, action, resource, {})
        for tests in statement.get("Condition", {}).values()
        for key in tests
    }


def _concerns(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    if "NotAction" in statement:
        named = not _any(statement["NotAction"], action, context, re.IGNORECASE)
    else:
        named = _any(statement["Action"], action, context, re.IGNORECASE)
    if "NotResource" in statement:
        about = not _any(statement["NotResource"], resource, context)
    else:
        about = _any(statement["Resource"], resource, context)
    conditions = statement.get("Condition", {})
    return (
        named
        and about
        and all(
            _holds(operator, key, _list(values), context)
            for operator, tests in conditions.items()
            for key, values in tests.items()
        )
    )


def _holds(operator: str, key: str, expected: Sequence[Any], context: Context) -> bool:
    quantifier, _, name = operator.rpartition(":")
    name, optional = name.removesuffix("IfExists"), name.endswith("IfExists")
    found = context.get(key.lower())
    if name == "Null":
        return (found is None) == (str(expected[0]).lower() == "true")
    if name not in _OPERATORS:
        raise NotImplementedError(f"The operator {operator} of conditions is not known here")
    negative = "Not" in name
    if found is None:
        return optional or negative or quantifier == "ForAllValues"
    compare = _OPERATORS[name]
    wanted = [_substitute(str(value), context) for value in expected]
    met = [any(compare(value, each) for each in wanted) != negative for value in found]
    return all(met) if quantifier == "ForAllValues" or negative else any(met)


def _like(value: str, pattern: str) -> bool:
    return _pattern(pattern).fullmatch(value) is not None


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "ArnEquals": _like,
    "ArnLike": _like,
    "ArnNotEquals": _like,
    "ArnNotLike": _like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "NumericLessThanEquals": lambda value, wanted: float(value) <= float(wanted),
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": _like,
    "StringNotEquals": lambda value, wanted: value == wanted,
    "StringNotLike": _like,
}


def _any(patterns: Any, value: str, context: Context, flags: int = 0) -> bool:
    return any(
        _pattern(_substitute(pattern, context), flags).fullmatch(value)
        for pattern in _list(patterns)
    )


def _pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    text = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(text, re.DOTALL | flags)


def _substitute(text: str, context: Context) -> str:
    """Replace variables; one without a value matches nothing."""

    def value(variable: re.Match[str]) -> str:
        name = variable[1].partition(",")[0].strip()
        return name if name in "*?$" else "".join(context.get(name.lower(), ["\0"])[:1])

    return re.sub(r"\$\{([^}]+)\}", value, text)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
