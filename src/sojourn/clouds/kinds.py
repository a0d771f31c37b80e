"""The kinds of clouds: a folder each, and what it says of itself before any of it is loaded."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sojourn.core.about import About
    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud
    from sojourn.core.operators import MpiOperator
    from sojourn.core.task import Task

__all__ = ["KINDS", "about_kind", "kind_named", "missing_modules", "package"]

KINDS = ("local", "aws", "gcp", "az", "k8s")
"""In the order in which tasks are looked for: whoever finds something here need not ask others.

The first is the one of tasks that name none.
"""


class _Package(Protocol):
    """What the `__init__.py` of a kind has.

    `settings`: those of a named cloud, by their names in `ABOUT.settings`; none are set for the
    kind itself, which is what this computer's own configuration leads to.
    """

    ABOUT: About

    def examine(self, settings: Mapping[str, str]) -> Iterator[Finding]:
        """What there is to tell of it for a check-up; asks it, with little patience."""

    def make_cloud(self, name: str, settings: Mapping[str, str]) -> Cloud:
        """The cloud of this name; asks nobody anything yet."""

    def make_mpi_operator(self, settings: Mapping[str, str]) -> MpiOperator:
        """The one of MPI tasks there. Called only if `About.mpi_operator` says so."""

    def role_for(self, tasks: Iterable[Task], settings: Mapping[str, str]) -> str:
        """What users of these tasks must be allowed. Called only if `About.role` says so."""


def kind_named(name: str) -> str:
    """The kind of this name or alias; empty if there is none."""
    if name in KINDS:
        return name
    return next((each for each in KINDS if name in about_kind(each).aliases), "")


def about_kind(kind: str) -> About:
    """What a kind says of itself."""
    return package(kind).ABOUT


def package(kind: str) -> _Package:
    """The package of a kind; it loads no SDK."""
    return cast("_Package", import_module(f"sojourn.clouds.{kind}"))


def missing_modules(kind: str) -> list[str]:
    """What a kind needs and is not installed."""
    return [module for module in about_kind(kind).modules if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    """Of a module in a package, the package may be missing as well."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
