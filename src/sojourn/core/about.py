"""What a cloud says of itself before any of it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["About", "MachineArgument", "Setting"]


@dataclass(frozen=True)
class MachineArgument:
    """An argument of old configurations, by the cloud's name.

    `target`: the field of a task that it sets, such as `options.network`; empty: it has no effect
    any more. `pairs`: it is a map, written as `a=b,c=d`.
    """

    name: str
    target: str
    help: str
    pairs: bool = False


@dataclass(frozen=True)
class Setting:
    """What a named cloud can say beside its kind. No setting holds a secret: it names a place.

    `path`: of a file or folder on this computer, which may begin with ~.
    """

    name: str
    help: str
    path: bool = False


@dataclass(frozen=True)
class About:
    """Each cloud's package has one, `ABOUT`. Its words are for people."""

    title: str  # as people write it
    extra: str = ""  # the extra of Sojourn's own package that installs what it needs
    packages: tuple[str, ...] = ()  # what it needs to run tasks, as pip knows them
    modules: tuple[str, ...] = ()  # of these packages: without one of them it cannot be loaded
    # The signs of somebody who uses it: one is enough. Without any to look for, everybody does.
    variables: tuple[str, ...] = ()  # names, of which nobody reads the values here
    files: tuple[str, ...] = ()  # "~/..."
    options: tuple[tuple[str, str], ...] = ()  # what it takes as a task's `options`: names, help
    settings: tuple[Setting, ...] = ()  # what one with a name of the user's can say
    aliases: tuple[str, ...] = ()  # other names that it answers to
    machine_arguments: tuple[MachineArgument, ...] = ()  # of machines in Terraform, only for it
    role: bool = False  # what users must be allowed can be printed; its package has `role_for`
    mpi_operator: bool = False  # MPI tasks need one there; its package has `make_mpi_operator`
