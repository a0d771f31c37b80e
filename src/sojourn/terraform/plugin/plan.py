"""What will become of an object: defaults, what is not known yet, and what needs a new one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sojourn.terraform.plugin.values import UNKNOWN, Object, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.terraform.plugin.diagnostics import Path
    from sojourn.terraform.plugin.schema import Attribute, Block, Nested

__all__ = ["Planned", "plan"]


@dataclass(frozen=True)
class Planned:
    """The object to come, and the paths that cannot be changed in the one there is."""

    state: Object
    replace: tuple[Path, ...]


def plan(
    block: Block, prior: Object | None, proposed: Object, config: Object, *, imported: bool = False
) -> Planned:
    """Plan a creation (`prior` is None) or an update.

    `imported`: what could not be read back then is taken from the configuration.
    """
    state = _filled(block, prior, proposed, config)
    if prior is None:
        return Planned(state, ())
    return Planned(state, tuple(_replaced(block, prior, state, imported, ())))


def _filled(block: Block, prior: Object | None, proposed: Object, config: Object) -> Object:
    state: Object = {
        attribute.name: _value(attribute, prior, proposed[attribute.name], config)
        for attribute in block.attributes
    }
    for nested in block.blocks:
        name = nested.name
        before = (prior or {}).get(name)
        state[name] = _blocks(nested, before, proposed[name], config.get(name))
    return state


def _value(attribute: Attribute, prior: Object | None, proposed: Any, config: Object) -> Any:
    if attribute.write_only:
        return None
    if config.get(attribute.name) is not None:
        return proposed
    if attribute.default_in is not None:
        return attribute.default_in(config, prior)
    if attribute.default is not None:
        return attribute.default
    if attribute.computed:
        before = None if prior is None else prior[attribute.name]
        return UNKNOWN if prior is None or attribute.over(before) else before
    return proposed


def _blocks(nested: Nested, prior: Any, proposed: Any, config: Any) -> Any:
    if proposed is None or isinstance(proposed, Unknown) or config is None:
        return proposed
    if nested.nesting == "single":
        return _filled(nested.block, prior, proposed, config)
    before = list(prior or ())
    return [
        _filled(nested.block, before[index] if index < len(before) else None, item, config[index])
        for index, item in enumerate(proposed)
    ]


def _replaced(
    block: Block, prior: Object, state: Object, imported: bool, path: Path
) -> Iterator[Path]:
    for attribute in block.attributes:
        before, after = prior[attribute.name], state[attribute.name]
        if not attribute.replace or (imported and not attribute.readable):
            continue
        if before != after and not (_comparable(before, after) and attribute.same(before, after)):
            yield (*path, attribute.name)
    for nested in block.blocks:
        here = (*path, nested.name)
        before, after = _items(prior[nested.name]), _items(state[nested.name])
        if before is None or after is None or len(before) != len(after):
            if before != after and _replaces(nested.block, before, after, imported):
                yield here
            continue
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            inner = here if nested.nesting == "single" else (*here, index)
            yield from _replaced(nested.block, old, new, imported, inner)


def _comparable(before: Any, after: Any) -> bool:
    return not isinstance(before, Unknown) and not isinstance(after, Unknown)


def _items(value: Any) -> list[Object] | None:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else None


def _replaces(
    block: Block, before: list[Object] | None, after: list[Object] | None, imported: bool
) -> bool:
    """Whether blocks that come or go mean another resource: not if they only say the default."""
    if before is None or after is None:
        return any(attribute.replace for attribute in block.attributes)
    absent: Object = {a.name: a.default for a in block.attributes}
    absent.update({nested.name: [] for nested in block.blocks})
    pairs = zip_longest(before, after, fillvalue=absent)
    return any(any(_replaced(block, old, new, imported, ())) for old, new in pairs)
