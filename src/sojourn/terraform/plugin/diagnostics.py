"""What a person is told beside the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.escape import escaped_lines
from sojourn.terraform.plugin import wire
from sojourn.terraform.plugin.values import Object, sendable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Diagnostic", "Failure", "Path", "path_to_wire"]

Path = tuple[str | int, ...]  # names of attributes and blocks, and positions in lists


@dataclass(frozen=True)
class Diagnostic:
    """An error, or a warning, about one attribute or about all."""

    summary: str
    detail: str = ""
    path: Path = ()
    warning: bool = False

    def to_wire(self) -> wire.Diagnostic:
        """The protocol's form. Terraform prints the texts as they are, so they are escaped."""
        return wire.Diagnostic(
            severity=2 if self.warning else 1,
            summary=sendable(escaped_lines(self.summary)),
            detail=sendable(escaped_lines(self.detail)),
            attribute=path_to_wire(self.path) if self.path else None,
        )


class Failure(Exception):
    """A verb failed. `state` is what exists all the same, so that a later verb can remove it."""

    def __init__(self, diagnostics: Iterable[Diagnostic], state: Object | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.state = state
        super().__init__("; ".join(diagnostic.summary for diagnostic in self.diagnostics))


def path_to_wire(path: Path) -> wire.Path:
    """The protocol's form of a path."""
    return wire.Path(
        steps=[
            wire.Path.Step(attribute=step) if isinstance(step, str) else wire.Path.Step(index=step)
            for step in path
        ]
    )
