"""Clouds: where tasks run. One folder a cloud, with the same file names in each.

What does not belong here: anything that more than one cloud needs. Adding a cloud adds a folder
and a name to `NAMES`; everything else about it is said by its folder's `__init__.py`, which has
`ABOUT`, `examine` and `make_cloud`, and loads nothing to say it.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, cast

from sojourn.core.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.core.about import About
    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud
    from sojourn.core.operators import MpiOperator
    from sojourn.core.task import Task

__all__ = [
    "FOR_MACHINES",
    "NAMES",
    "about",
    "any_of",
    "examine",
    "is_set_up",
    "known",
    "load",
    "mpi_operator",
    "not_set_up",
    "plain",
    "role_for",
    "set_up",
    "signs",
]

NAMES = ("local", "aws", "gcp", "az", "k8s")
"""In the order in which tasks are looked for: whoever finds something here need not ask others.

The first is the one of tasks that name none.
"""

FOR_MACHINES = "aws"
"""The one of machines that name none, as in the old provider."""


class _Package(Protocol):
    """What the `__init__.py` of a cloud has."""

    ABOUT: About

    def examine(self) -> Iterator[Finding]:
        """What there is to tell of it for a check-up; asks it, with little patience."""

    def make_cloud(self) -> Cloud:
        """The cloud as this computer's configuration reaches it; asks nobody anything yet."""

    def make_mpi_operator(self) -> MpiOperator:
        """The one of MPI tasks there. Called only if `About.mpi_operator` says so."""

    def role_for(self, tasks: Iterable[Task]) -> str:
        """What users of these tasks must be allowed. Called only if `About.role` says so."""


def known(name: str) -> str:
    """The name of a cloud that may have been given by another one; what is none stays."""
    if name in NAMES:
        return name
    return next((each for each in NAMES if name in about(each).aliases), name)


def load(name: str) -> Cloud:
    """The cloud of this name; its module, and so its SDK, is imported only now."""
    name = _existing(name)
    _check_installed(name)
    return _package(name).make_cloud()


def plain(name: str) -> Cloud:
    """The same without its SDK: for what takes no call."""
    return _package(_existing(name)).make_cloud()


def _existing(name: str) -> str:
    name = known(name)
    if name not in NAMES:
        import difflib  # only for those who mistyped it

        near = difflib.get_close_matches(name, NAMES, n=1)
        suggestion = f"; did you mean {near[0]!r}?" if near else ""
        available = ", ".join(sorted(NAMES))
        raise InvalidInput("cloud", f"unknown cloud {name!r} (available: {available}){suggestion}")
    return name


def mpi_operator() -> MpiOperator:
    """The one of the cloud whose MPI tasks need it; it asks nobody anything yet."""
    name = next(name for name in NAMES if about(name).mpi_operator)
    _check_installed(name)
    return _package(name).make_mpi_operator()


def _check_installed(name: str) -> None:
    told = about(name)
    for module in _missing(told):
        raise MissingDependency(told.extra, f"{told.title} needs {module}, which is not installed")


def about(name: str) -> About:
    """What a cloud says of itself."""
    return _package(name).ABOUT


def examine(name: str) -> Iterator[Finding]:
    """What there is to tell of a cloud for a check-up; asks it, if it is set up."""
    return _package(name).examine()


def role_for(name: str, tasks: Iterable[Task]) -> str:
    """What a user must be allowed to run these tasks, as the cloud's own tools take it."""
    name = _existing(name)
    if not about(name).role:
        available = ", ".join(each for each in NAMES if about(each).role)
        raise InvalidInput("role", f"{name} has none to print (available: {available})")
    return _package(name).role_for(tasks)


def any_of(mark: str = "") -> str:
    """The clouds there are, for a sentence; with `mark` around each."""
    *others, last = (f"{mark}{name}{mark}" for name in NAMES)
    return f"{', '.join(others)} or {last}"


def set_up() -> Iterator[Cloud]:
    """The clouds that this computer has credentials for, as far as a glance can tell."""
    for name in NAMES:
        if is_set_up(name):
            yield load(name)


def not_set_up() -> list[str]:
    """The others: what is in them is not seen from here."""
    return [name for name in NAMES if not is_set_up(name)]


def is_set_up(name: str) -> bool:
    """Whether somebody uses a cloud here. Cheap: no SDK is loaded, and nobody is asked."""
    told = about(name)
    used = bool(signs(name)) or not (told.variables or told.files)
    return used and not _missing(told)


def signs(name: str) -> list[str]:
    """What there is here of the variables and files that tell of credentials for a cloud."""
    told = about(name)
    found = [variable for variable in told.variables if os.environ.get(variable)]
    return found + [file for file in told.files if os.path.exists(os.path.expanduser(file))]


def _missing(told: About) -> list[str]:
    return [module for module in told.modules if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    """Of a module in a package, the package may be missing as well."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _package(name: str) -> _Package:
    return cast("_Package", import_module(f"sojourn.clouds.{name}"))
