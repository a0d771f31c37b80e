"""The reference of the provider, written from its schemas: `make docs` puts it into the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.terraform.provider import IterativeProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.terraform.plugin.schema import Attribute, Schema

__all__ = ["inserted", "render"]

_BEGIN = "<!-- reference: written by `make docs` -->"
_END = "<!-- end of reference -->"


def render() -> str:
    """All resources and data sources, as Markdown."""
    provider = IterativeProvider()
    parts: list[str] = []
    for name, resource in provider.resources.items():
        parts += _section(f"Resource `{name}`", resource.schema)
    for name, source in provider.data_sources.items():
        parts += _section(f"Data source `{name}`", source.schema)
    return "\n".join(parts)


def inserted(page: str) -> str:
    """A page with the reference of today between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{render()}\n{_END}{after}"


def _section(title: str, schema: Schema) -> Iterator[str]:
    block = schema.block
    yield from (f"### {title}", "", block.description, "")
    given = [a for a in block.attributes if a.required or a.optional]
    yield from _table("Argument", given)
    for nested in block.blocks:
        yield from (f"Block `{nested.name}`: {nested.block.description}", "")
        yield from _table("Argument", nested.block.attributes)
    yield from _in_place(schema)
    if schema.timeouts:
        limits = ", ".join(
            f"`{verb}` {seconds / 60:g} min" for verb, seconds in schema.timeouts.items()
        )
        yield from (f"Block `timeouts`: timeouts of operations. Defaults: {limits}.", "")
    yield from _table("Attribute", [a for a in block.attributes if a not in given])


def _in_place(schema: Schema) -> Iterator[str]:
    every = [
        *schema.block.attributes,
        *(a for n in schema.block.blocks for a in n.block.attributes),
    ]
    if any(a.replace for a in every):
        free = [f"`{a.name}`" for a in every if a.optional and not a.replace]
        which = f"{', '.join(free)} and `timeouts` are" if free else "`timeouts` is"
        yield (f"{which} updated in place; changing any other argument replaces what there is.")
        yield ""


def _table(head: str, attributes: list[Attribute] | tuple[Attribute, ...]) -> Iterator[str]:
    if not attributes:
        return
    defaults = head == "Argument"
    yield f"| {head} | Type |{' Default |' if defaults else ''} Meaning |"
    yield f"|---|---|{'---|' if defaults else ''}---|"
    for attribute in attributes:
        default = f" {_default(attribute)} |" if defaults else ""
        yield f"| `{attribute.name}` | {attribute.type} |{default} {_meaning(attribute)} |"
    yield ""


def _default(attribute: Attribute) -> str:
    if attribute.required:
        return "required"
    return "" if attribute.default in (None, "") else f"`{attribute.default}`"


def _meaning(attribute: Attribute) -> str:
    return attribute.description + (" Sensitive." if attribute.sensitive else "")


def main() -> None:
    """Write the reference into the page that is named."""
    path = Path(sys.argv[1])
    path.write_text(inserted(path.read_text()))


if __name__ == "__main__":
    main()
