"""Machine types by the names that mean much the same on every cloud: `m`, `l+v100`.

A letter is a size, and after the plus comes a GPU: `m` has one, `l` and `xl` have more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

__all__ = ["Sizes"]


@dataclass(frozen=True)
class Sizes:
    """What a cloud calls them. `own`: how its own names look; `example` is one of them."""

    cloud: str  # as in a sentence
    kind: str  # what its own types are called: "an EC2 type"
    types: Mapping[str, str]
    own: re.Pattern[str]
    example: str

    def find(self, name: str) -> str:
        """The cloud's own name. Refuses what cannot be one."""
        if name not in self.types and not self.own.fullmatch(name):
            raise InvalidInput("machine", self._unknown(name))
        return self.types.get(name, name)

    def _unknown(self, name: str) -> str:
        _, plus, gpu = name.partition("+")
        offered = [each for each in self.types if plus and each.endswith(f"+{gpu}")]
        if offered:
            return f"{self.cloud} has no {name}; use {' or '.join(offered)}"
        return (
            f"unknown machine type {name!r}; specify {self.kind}, such as {self.example}, "
            f"or one of: {', '.join(self.types)}"
        )
