"""What a resource looks like: its attributes and blocks, as plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sojourn.terraform.plugin import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BOOL", "NUMBER", "STRING", "Attribute", "Block", "Nested", "Schema", "Type"]

_MARKDOWN = 1
_NESTING = {"single": 1, "list": 2}


@dataclass(frozen=True)
class Type:
    """The type of an attribute, as Terraform names it: `string`, or `list` of `string`."""

    kind: Literal["string", "number", "bool", "list", "map"]
    of: Type | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.of})" if self.of else self.kind

    def to_json(self) -> Any:
        """As the protocol writes types."""
        return [self.kind, self.of.to_json()] if self.of else self.kind


BOOL = Type("bool")
NUMBER = Type("number")
STRING = Type("string")


@dataclass(frozen=True)
class Attribute:
    """One argument or exported value.

    `default`: taken if the configuration says nothing; `default_in`: the same, where it depends on
    the rest of the configuration, and on what there is.
    `write_only`: is in no plan or state; only Terraform 1.11 and later can do that.
    `replace`: another value means another resource; `same` decides what another value is.
    `over`: of a computed value, whether what has it is at its end, and has to be replaced.
    `readable`: false if it cannot be read back, so that after an import the configuration's value
    is taken as it is.
    """

    name: str
    type: Type
    description: str
    required: bool = False
    optional: bool = False
    computed: bool = False
    default: Any = None
    default_in: Callable[[Mapping[str, Any], Mapping[str, Any] | None], Any] | None = None
    sensitive: bool = False
    write_only: bool = False
    replace: bool = False
    same: Callable[[Any, Any], bool] = field(default=lambda one, other: bool(one == other))
    over: Callable[[Any], bool] = field(default=lambda value: False)
    readable: bool = True

    def to_wire(self) -> wire.Schema.Attribute:
        """The protocol's form. Terraform lets only computed attributes have defaults."""
        return wire.Schema.Attribute(
            name=self.name,
            type=json.dumps(self.type.to_json()).encode(),
            description=self.description,
            description_kind=_MARKDOWN,
            required=self.required,
            optional=self.optional,
            computed=self.computed or self.default is not None,
            sensitive=self.sensitive,
            write_only=self.write_only,
        )


@dataclass(frozen=True)
class Nested:
    """A block within a block: at most one, which is an object, or a list of them."""

    name: str
    block: Block
    nesting: Literal["single", "list"] = "list"
    at_most: int = 0

    def to_wire(self) -> wire.Schema.Nested:
        """The protocol's form."""
        return wire.Schema.Nested(
            type_name=self.name,
            block=self.block.to_wire(),
            nesting=_NESTING[self.nesting],
            max_items=self.at_most,
        )


@dataclass(frozen=True)
class Block:
    """What stands between two braces."""

    attributes: tuple[Attribute, ...] = ()
    blocks: tuple[Nested, ...] = ()
    description: str = ""

    def to_wire(self) -> wire.Schema.Block:
        """The protocol's form."""
        return wire.Schema.Block(
            attributes=[attribute.to_wire() for attribute in self.attributes],
            block_types=[nested.to_wire() for nested in self.blocks],
            description=self.description,
            description_kind=_MARKDOWN,
        )


@dataclass(frozen=True)
class Schema:
    """A resource, a data source or the provider itself.

    `timeouts`: seconds that each verb may take unless a `timeouts` block says otherwise; without
    any there is no such block.
    """

    block: Block
    version: int = 0
    timeouts: Mapping[str, float] = field(default_factory=dict)

    @property
    def whole(self) -> Block:
        """The block with its `timeouts`."""
        if not self.timeouts:
            return self.block
        attributes = tuple(
            Attribute(
                verb,
                STRING,
                f"Timeout of {verb}, such as `90s` or `1h30m` (default: `{_spelled(seconds)}`).",
                optional=True,
            )
            for verb, seconds in self.timeouts.items()
        )
        timeouts = Nested("timeouts", Block(attributes, (), "Timeouts of operations."), "single")
        return Block(self.block.attributes, (*self.block.blocks, timeouts), self.block.description)

    def to_wire(self) -> wire.Schema:
        """The protocol's form."""
        return wire.Schema(version=self.version, block=self.whole.to_wire())


def _spelled(seconds: float) -> str:
    return f"{seconds / 60:g}m"
