"""A CI runner: what its task needs to know of it on the machine, and others at a glance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CREDENTIALS", "TOKEN", "Program", "Runner"]

# The variable of the task's environment with what the runner logs in with, as JSON. The agent
# keeps it to itself: scripts, and so jobs, never have it.
CREDENTIALS = "SOJOURN_RUNNER_CREDENTIALS"
TOKEN = "token"  # the key in it of the token of the owner, if that travels


@dataclass(frozen=True)
class Program:
    """Where the forge's runner program is for one architecture, and what it must be."""

    version: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Runner:
    """A runner of a repository or of a group of them.

    `driver`: which forge's. `repo`: its address. `name`: what the forge calls it. `task`: the id
    of its task, which is a label of it, too. `idle_timeout`: seconds without a job after which it
    ends; 0: never. `single`: it ends after one job. `programs`: by architecture, as `uname -m`
    has it.
    """

    driver: str
    repo: str
    name: str
    task: str
    labels: tuple[str, ...] = ("cml",)
    single: bool = False
    idle_timeout: int = 300
    programs: Mapping[str, Program] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        programs = {
            name: program if isinstance(program, Program) else Program(**program)
            for name, program in self.programs.items()
        }
        object.__setattr__(self, "programs", programs)

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Those that the forge knows it by: jobs can ask for this very runner."""
        return (*self.labels, self.task)

    @classmethod
    def problems(cls, value: object) -> Iterator[Problem]:
        """What is wrong with what a task has as its runner."""
        if value is not None and not isinstance(value, cls):
            yield Problem("runner", "is set by `sojourn runner launch`, not by hand")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Runner:
        """What a newer version added is ignored."""
        return cls(**{key: data[key] for key in cls.__dataclass_fields__ if key in data})
