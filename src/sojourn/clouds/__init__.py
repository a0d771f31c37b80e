"""Clouds: where tasks run. A kind has a folder, with the same file names in each.

What does not belong here: anything that more than one kind needs. Adding a kind adds a folder
and a name to `kinds.KINDS`; everything else about it is said by its folder's `__init__.py`, which
has `ABOUT`, `examine` and `make_cloud`, and loads nothing to say it.

A kind is also the name of a cloud, the one that this computer's own configuration leads to. More
of them have names in settings files.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.clouds.kinds import KINDS, about_kind, kind_named, missing_modules, package
from sojourn.clouds.named import NamedCloud, named_clouds
from sojourn.core.errors import InvalidInput, MissingDependency
from sojourn.core.task import DEFAULT_REGION
from sojourn.settings import ignored_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.core.about import About
    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud
    from sojourn.core.operators import MpiOperator
    from sojourn.core.task import Task

__all__ = [
    "FOR_MACHINES",
    "KINDS",
    "NamedCloud",
    "about",
    "any_of",
    "examine",
    "exists",
    "has_region",
    "is_named",
    "is_set_up",
    "kind_of",
    "known",
    "leads_to",
    "load",
    "mpi_operator",
    "named_clouds",
    "names",
    "not_set_up",
    "own_paths",
    "placed",
    "plain",
    "region_of",
    "role_for",
    "set_up",
    "signs",
]

FOR_MACHINES = "aws"
"""The one of machines that name none, as in the old provider."""

_SETTING = "region"


def names() -> list[str]:
    """All clouds that there are here, by kind: those with names of the user's come first."""
    return [each.name for each in _every()]


def _every() -> list[NamedCloud]:
    named = named_clouds().values()
    return [
        each for kind in KINDS for each in (*(one for one in named if one.kind == kind), _own(kind))
    ]


def _own(kind: str) -> NamedCloud:
    """The one that this computer's own configuration leads to."""
    return NamedCloud(kind, kind)


def known(name: str) -> str:
    """The name of a cloud that may have been given by an alias; what is none stays."""
    return kind_named(name) or name


def kind_of(name: str) -> str:
    """The kind of a cloud. There is no such cloud: raises InvalidInput."""
    return _find(name).kind


def exists(name: str) -> bool:
    """Whether there is a cloud of this name."""
    return bool(kind_named(name)) or name in named_clouds()


def load(name: str) -> Cloud:
    """The cloud of this name; its module, and so its SDK, is imported only now."""
    found = _find(name)
    _check_installed(found)
    return _made(found)


def plain(name: str) -> Cloud:
    """The same without its SDK: for what takes no call."""
    return _made(_find(name))


def _made(found: NamedCloud) -> Cloud:
    return package(found.kind).make_cloud(found.name, found.settings)


def _find(name: str) -> NamedCloud:
    if kind := kind_named(name):
        return _own(kind)
    named = named_clouds()
    if name in named:
        return named[name]
    import difflib  # only for those who mistyped

    every = [*KINDS, *named]
    near = difflib.get_close_matches(name, every, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    available = ", ".join(sorted(every))
    error = InvalidInput("cloud", f"unknown cloud {name!r} (available: {available}){suggestion}")
    if ignored := ignored_file():
        error.hint = f"{ignored} does not count: it belongs to another user."
    raise error


def region_of(name: str) -> str:
    """The region of tasks that name none."""
    return _find(name).settings.get(_SETTING, DEFAULT_REGION)


def is_named(name: str) -> bool:
    """Whether it is a name of the user's."""
    return not kind_named(name) and name in named_clouds()


def has_region(name: str) -> bool:
    """Whether there is a cloud of this name whose settings say in which region tasks are."""
    return name in (named := named_clouds()) and _SETTING in named[name].settings


def own_paths() -> list[str]:
    """The files and folders that settings of clouds name: no task's data."""
    return [
        each.settings[setting.name]
        for each in named_clouds().values()
        for setting in about_kind(each.kind).settings
        if setting.path and setting.name in each.settings
    ]


def leads_to(name: str, cloud: Cloud) -> bool:
    """Whether a cloud of this name has the same tasks."""
    if known(name) == cloud.name:
        return True
    if not exists(name) or kind_of(name) != kind_of(cloud.name):
        return False
    return bool(address := load(name).address()) and address == cloud.address()


def placed(task: Task) -> Task:
    """The task with a region: its own, or that of its cloud."""
    return task if task.region else replace(task, region=region_of(task.cloud))


def mpi_operator(name: str = "") -> MpiOperator:
    """The one of a cloud whose MPI tasks need it; it asks nobody anything yet."""
    kinds = [kind for kind in KINDS if about_kind(kind).mpi_operator]
    found = _find(name or kinds[0])
    if found.kind not in kinds:
        raise InvalidInput("cloud", f"needs no mpi-operator: {name} is of the kind {found.kind}")
    _check_installed(found)
    return package(found.kind).make_mpi_operator(found.settings)


def _check_installed(found: NamedCloud) -> None:
    about = about_kind(found.kind)
    named = f" ({found.name}, {found.origin})" if found.document else ""
    for module in missing_modules(found.kind):
        raise MissingDependency(
            about.extra, f"{about.title}{named} needs {module}, which is not installed"
        )


def about(name: str) -> About:
    """What the kind of a cloud says of itself."""
    return about_kind(kind_of(name))


def examine(name: str) -> Iterator[Finding]:
    """What there is to tell of a cloud for a check-up; asks it, if it is set up."""
    found = _find(name)
    for finding in package(found.kind).examine(found.settings):
        yield replace(finding, subject=f"{name}: {finding.subject}") if found.document else finding


def role_for(name: str, tasks: Iterable[Task]) -> str:
    """What a user must be allowed to run these tasks, as the cloud's own tools take it."""
    found = _find(name)
    if not about_kind(found.kind).role:
        available = ", ".join(each for each in KINDS if about_kind(each).role)
        raise InvalidInput("role", f"{name} has none to print (available: {available})")
    return package(found.kind).role_for(tasks, found.settings)


def any_of(mark: str = "") -> str:
    """The kinds there are, for a sentence; with `mark` around each."""
    *others, last = (f"{mark}{name}{mark}" for name in KINDS)
    return f"{', '.join(others)} or {last}"


def set_up(first: str = "") -> Iterator[Cloud]:
    """The clouds that this computer has credentials for, as far as a glance can tell.

    One that leads to the same tasks as another one before it is left out. `first`: the name of one
    to begin with, if it is there.
    """
    every = sorted(_every(), key=lambda each: each.name != first)
    seen: set[tuple[str, str]] = set()
    for each in every:
        if not _is_set_up(each):
            continue
        cloud = load(each.name)
        if len(every) > len(KINDS):  # only then can two of them be the same
            address = cloud.address()
            if address and (each.kind, address) in seen:
                continue
            seen.add((each.kind, address))
        yield cloud


def not_set_up() -> list[str]:
    """The others: what is in them is not seen from here."""
    return [each.name for each in _every() if not _is_set_up(each)]


def is_set_up(name: str) -> bool:
    """Whether somebody uses a cloud here. Cheap: no SDK is loaded, and nobody is asked."""
    return _is_set_up(_find(name))


def _is_set_up(cloud: NamedCloud) -> bool:
    told = about_kind(cloud.kind)
    # Whoever gave it a name uses it, and everybody uses what needs no credentials.
    used = cloud.document or signs(cloud.kind) or not (told.variables or told.files)
    return bool(used) and not missing_modules(cloud.kind)


def signs(kind: str) -> list[str]:
    """What there is here of the variables and files that tell of credentials for a kind."""
    told = about_kind(kind)
    found = [variable for variable in told.variables if os.environ.get(variable)]
    return found + [file for file in told.files if os.path.exists(os.path.expanduser(file))]
