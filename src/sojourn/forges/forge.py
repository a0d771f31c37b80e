"""What a forge implements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sojourn.core.context import Context
    from sojourn.core.runner import Program, Runner

__all__ = ["Forge", "Job", "Registered", "Registration", "Repository"]


@dataclass(frozen=True)
class Repository:
    """What the forge says of a repository, or of a group of them. `public`: anybody can see it,
    and propose changes whose jobs run."""

    public: bool


@dataclass(frozen=True)
class Registration:
    """A runner that the forge knows of, or will when its program starts.

    `id`: the forge's; empty if the program registers itself. `credentials`: what the program
    needs, by the names that its script has for them.
    """

    id: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Registered:
    """A runner as its forge lists it. `busy`: None if the forge does not tell."""

    id: str
    name: str
    online: bool
    busy: bool | None
    labels: frozenset[str]


@dataclass(frozen=True)
class Job:
    """What a runner was doing, as its machine tells; nothing of it was checked."""

    run: str
    attempt: str = ""


class Forge(Protocol):
    """A forge, as the owner of a token sees it."""

    limits: str  # what a user should know of jobs that take long

    def check(self, ctx: Context) -> Repository:
        """Refuse a token that cannot register runners, and a repository that is not there."""

    def programs(self, ctx: Context) -> Mapping[str, Program]:
        """The current runner program, by architecture."""

    def register(self, ctx: Context, runner: Runner) -> Registration:
        """Have it accept a new runner. If the name is taken: raises Conflict."""

    def runners(self, ctx: Context) -> Sequence[Registered]:
        """All runners of the repository."""

    def unregister(self, ctx: Context, id: str) -> bool:
        """Forget a runner; absent: does nothing. False: it runs a job, or may, and stays."""

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        """The same, by the runner itself. No credential that it has is enough: raises AuthError."""

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """Which job was lost with a runner's machine, before another one takes its place; None:
        there was none. `job`: what is known of it here."""

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        """Have a job that this runner lost carried out again; waits until it can be.

        `credentials`: the runner's own. False: it was not this runner's, or has been carried out
        meanwhile.
        """

    def may_travel(self) -> bool:
        """Whether its token can do so little, or so briefly, that a machine may have it."""
