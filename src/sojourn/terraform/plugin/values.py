"""Values on their way in and out: MessagePack or JSON on the wire, plain Python inside.

An object is a dict that has every attribute and block of its schema, absent ones as None. What is
not known yet is an `Unknown`. A number that came in is an int or a Decimal, which are exact,
because Terraform compares what comes back with what it sent; a float of ours goes out as people
write it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from sojourn.terraform.plugin import wire
    from sojourn.terraform.plugin.schema import Block, Nested, Type

__all__ = [
    "UNKNOWN",
    "Object",
    "Unknown",
    "decode",
    "decode_json",
    "encode",
    "is_known",
    "sendable",
    "whole",
]

Object = dict[str, Any]


@dataclass(frozen=True)
class Unknown:
    """A value that is known only after the apply.

    What Terraform knows of it all the same, a prefix say, is kept as it came: it wants it back.
    """

    code: int = 0
    refinement: bytes = b"\0"


UNKNOWN = Unknown()


def decode(value: wire.Value, block: Block) -> Object | None:
    """Read a value of the wire; None if there is no object."""
    plain: Any = None
    if value.json:
        plain = decode_json(value.json)
    elif value.msgpack:
        plain = msgspec.msgpack.decode(value.msgpack, ext_hook=_unknown)
    return whole(plain, block)


def decode_json(data: bytes) -> Any:
    """Read JSON with exact numbers."""
    return json.loads(data, parse_float=Decimal)


def whole(value: Object | None, block: Block) -> Object | None:
    """The same with every attribute of the schema and no other, each of its type."""
    filled: Object | None = _object(value, block)
    return filled


def encode(value: Object | None) -> bytes:
    """Write an object as MessagePack; None if there is none."""
    return msgspec.msgpack.encode(_plain(value))


def sendable(text: str) -> str:
    """The same text, with what cannot be sent spelled out: names of files may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_known(value: Any) -> bool:
    """Whether a value and all that is in it is known."""
    if isinstance(value, dict):
        return all(map(is_known, value.values()))
    if isinstance(value, list):
        return all(map(is_known, value))
    return not isinstance(value, Unknown)


def _unknown(code: int, data: memoryview) -> Unknown:
    return Unknown(code, bytes(data))


def _object(value: Any, block: Block) -> Any:
    if not isinstance(value, dict):
        return value
    filled: Object = {a.name: _typed(value.get(a.name), a.type) for a in block.attributes}
    for nested in block.blocks:
        filled[nested.name] = _blocks(value.get(nested.name), nested)
    return filled


def _blocks(value: Any, nested: Nested) -> Any:
    if nested.nesting == "single":
        return _object(value, nested.block)
    if isinstance(value, Unknown):
        return value
    return [_object(item, nested.block) for item in value or ()]


def _typed(value: Any, kind: Type) -> Any:
    if isinstance(value, list) and kind.of:
        return [_typed(item, kind.of) for item in value]
    if isinstance(value, dict) and kind.of:
        return {key: _typed(item, kind.of) for key, item in value.items()}
    if kind.kind == "number" and isinstance(value, (str, float, Decimal)):
        return _number(value)
    return value


def _number(value: str | float | Decimal) -> int | Decimal:
    exact = Decimal(value)
    if not exact.is_finite() or exact.adjusted() >= _DIGITS:
        return exact
    return int(exact) if exact == exact.to_integral_value() else exact


_LARGEST = 2**63
_DIGITS = 100  # an int has; larger ones are short to write, and no sizes of anything


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, Unknown):
        return msgspec.msgpack.Ext(value.code, value.refinement)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return str(value)
    return value
