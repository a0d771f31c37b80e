"""Partial answers: the parameter `fields`, as all of Google's services have it."""

from __future__ import annotations

from typing import Any

from tests.simcloud.gcp.wire import GCPError

Mask = dict[str, "Mask"]


def masked(value: Any, fields: str) -> Any:
    """What is left of an answer; an empty mask leaves all."""
    if not fields:
        return value
    mask, rest = _parsed(fields, fields)
    if rest:
        raise _refused(fields)
    return _kept(value, mask)


def _kept(value: Any, mask: Mask) -> Any:
    if not mask:
        return value
    if isinstance(value, list):
        return [_kept(each, mask) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _kept(each, mask.get(key, mask.get("*", {})))
        for key, each in value.items()
        if key in mask or "*" in mask
    }


def _parsed(text: str, whole: str) -> tuple[Mask, str]:
    """`a,b(c,d/e)`, up to a closing parenthesis that belongs to what is around it."""
    mask: Mask = {}
    while True:
        parts, text = _path(text, whole)
        inner: Mask = {}
        if text.startswith("("):
            inner, text = _parsed(text[1:], whole)
            if not text.startswith(")"):
                raise _refused(whole)
            text = text[1:]
        node = mask
        for part in parts:
            node = node.setdefault(part, {})
        node.update(inner)
        if not text.startswith(","):
            return mask, text
        text = text[1:]


def _path(text: str, whole: str) -> tuple[list[str], str]:
    end = next((index for index, sign in enumerate(text) if sign in ",()"), len(text))
    parts = text[:end].split("/")
    if not all(parts):
        raise _refused(whole)
    return parts, text[end:]


def _refused(fields: str) -> GCPError:
    return GCPError("invalidParameter", f"Invalid field selection {fields}", 400)
