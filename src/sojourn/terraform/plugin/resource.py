"""What a resource has to implement, and what it is given.

One file a resource: its schema and its verbs. Values are plain Python (see values.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping

    from sojourn.terraform.plugin.diagnostics import Diagnostic
    from sojourn.terraform.plugin.log import Log
    from sojourn.terraform.plugin.schema import Schema
    from sojourn.terraform.plugin.values import Object

__all__ = ["Call", "DataSource", "Provider", "Resource"]


class Call:
    """One verb under way.

    `stopped` is set when the user asks Terraform to stop; `seconds` is how long it may take.
    `config` is what the user wrote, to plan and to create: it has what no plan and no state has.
    """

    def __init__(
        self,
        log: Log,
        stopped: threading.Event,
        seconds: float,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.log = log
        self.stopped = stopped
        self.seconds = seconds
        self.config = config or {}
        self.warnings: list[Diagnostic] = []

    def warn(self, diagnostic: Diagnostic) -> None:
        """Tell the user something beside the result."""
        self.warnings.append(diagnostic)


class Resource(Protocol):
    """Something that Terraform creates, changes and destroys.

    Every verb that fails raises Failure; one that leaves something behind says so by its `state`.
    """

    schema: Schema

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        """What is wrong with a configuration, of which parts may be unknown. Looks at nothing."""

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        """Refuse what cannot work, looking around; may fill in what is known already.

        `prior` is None for a new one, also if it replaces another. Called for what stays as it is,
        too: then the two are equal.
        """

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        """What to know before this one is destroyed or replaced."""

    def create(self, call: Call, planned: Object) -> Object:
        """Make it; returns its state."""

    def read(self, call: Call, state: Object) -> Object | None:
        """Its state now; None if it is gone."""

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        """Change it in place; returns its state."""

    def delete(self, call: Call, state: Object) -> None:
        """Remove it; if it is gone already, do nothing."""

    def find(self, call: Call, id: str) -> Object:
        """The state of one that exists, to be imported; without what cannot be read back."""

    def upgrade(self, version: int, state: Object) -> Object:
        """Bring a state that an older version of the schema wrote to the present one."""


class DataSource(Protocol):
    """Something that Terraform only reads."""

    schema: Schema

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        """What is wrong with a configuration, of which parts may be unknown."""

    def read(self, call: Call, config: Object) -> Object:
        """The configuration with everything filled in."""


class Provider(Protocol):
    """What a provider offers, by name."""

    schema: Schema
    resources: Mapping[str, Resource]
    data_sources: Mapping[str, DataSource]

    def configure(self, call: Call) -> Iterable[Diagnostic]:
        """Called once before any resource is looked at."""
