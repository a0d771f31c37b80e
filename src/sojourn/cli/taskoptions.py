"""The options that describe a task, and the task they make, alone or on top of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn import clouds
from sojourn.cli.commandline import Typed
from sojourn.cli.defaults import Defaults
from sojourn.cli.target import read_target, stranded
from sojourn.cli.unsent import told_of_unsent
from sojourn.core.argument import (
    COUNT,
    DURATION,
    FLAG,
    MACHINE,
    MPI,
    PAIRS,
    PRICE,
    TASK,
    TEXTS,
    Argument,
    Kind,
    arguments_of,
)
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.task import Storage, Task
from sojourn.settings import documents
from sojourn.taskfiles import is_shared, is_task_file, other_resources
from sojourn.taskfiles.reading import read_text

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = [
    "PATH",
    "defaults_for",
    "fields_from",
    "machine_fields",
    "machine_options",
    "mpi_options",
    "task_options",
    "tasks_from",
]

PATH = click.Path(readable=False)
"""Shells complete it. Whether it can be read we look at ourselves, and name the field."""


_Function = TypeVar("_Function", bound=Callable[..., Any])

# How each map of texts is written, where it is not NAME=VALUE.
_FORMS = {
    "files": "--file PATH=@FILE or --file PATH=TEXT",
    "mounts": "--mount PATH=WHAT",
    "options": "--option KEY=VALUE or --option KEY=@FILE",
}
_FROM_FILES = {"files": "--file", "options": "--option"}


class _CloudOption(click.Option):
    """Lists what each cloud knows; clouds are asked only if somebody reads the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        known = {name: clouds.about(name).options for name in clouds.KINDS}
        texts = [f"{name}: {', '.join(dict(all_))}" for name, all_ in known.items() if all_]
        return (record[0], f"{record[1]} [{'; '.join(texts)}]") if record and texts else record


_DAY = "24h"
_PROFILE = "profile"
_OF_ALL = ("cloud", "tags")
# As they stand in a help text: one that is not named here comes last.
_ORDER = (
    *("name", "cloud", "workdir", "output", "exclude", "default_ignore", "environment"),
    *("machine", "image", "region", "disk_size", "spot", "permission_set"),
    *("container", "container_opts", "tags", "mounts", "options", "timeout"),
    *("parallelism", "gang", "gang_timeout", "mpi", "slots", "implementation", "files"),
    *("stay", "idle_timeout"),
)
_NAMES = {"implementation": "mpi_implementation"}  # which is not clear by itself
_TYPES: dict[Kind, Any] = {Kind.PATH: PATH, COUNT: int, PRICE: float}
# Beside an option: others that give the same argument in another way.
_MORE = {
    "output": click.option(
        "--no-output", is_flag=True, help="Download nothing and discard all files."
    ),
    "environment": click.option(
        "--env-file",
        "env_files",
        type=PATH,
        multiple=True,
        metavar="FILE",
        help="Read variables from a file of NAME=VALUE lines; repeatable.",
    ),
}


def _arguments() -> dict[str, Argument]:
    """All that are options, by what they set: the fields of a task and of what is in it."""
    found = arguments_of(Task) | arguments_of(Storage) | arguments_of(Mpi)
    names = dict.fromkeys((*_ORDER, *found))
    return {name: found[name] for name in names if found[name].help}


def _option(name: str, each: Argument, lifetime: str) -> Callable[[_Function], _Function]:
    """The option for an argument."""
    words = each.option.split(", ") if each.option else [f"--{name.replace('_', '-')}"]
    more: dict[str, Any] = {"type": _TYPES.get(each.kind), "metavar": each.metavar or None}
    if each.kind in (TEXTS, PAIRS):
        more["multiple"] = True
    if each.kind is FLAG:
        more = {"is_flag": True, "default": None}
        if _is_default(name):
            words = [f"{words[0]}/--no-{words[0].removeprefix('--')}"]
    if each.kind is DURATION:
        more["metavar"] = "DURATION"
    if name == "options":
        more["cls"] = _CloudOption
    told = each.help.replace("{clouds}", clouds.any_of()).replace("{lifetime}", lifetime)
    return click.option(*words, _NAMES.get(name, name), help=told, **more)


def _is_default(name: str) -> bool:
    return getattr(Storage(), name, None) is True


def _options(command: str, lifetime: str = _DAY, **others: str) -> Callable[[_Function], _Function]:
    """The options of one kind of command; `others` are names that it has for some."""
    own = [(name, each) for name, each in _arguments().items() if command in each.of]
    if command == MPI:  # what only several machines have is what it is about
        own.sort(key=lambda item: MACHINE in item[1].of)
    made = []
    for name, each in own:
        named = replace(each, option=others.get(name, each.option))
        made += [_option(name, named, lifetime), *([_MORE[name]] if name in _MORE else [])]
    return lambda function: _with(function, [*made, _profile])


def task_options(function: _Function) -> _Function:
    """Adds an option for every field of a task."""
    return _options(TASK)(function)


def machine_options(lifetime: str) -> Callable[[_Function], _Function]:
    """Adds an option for every field of a task that is a machine.

    `lifetime`: how long it lives if nobody says.
    """
    return _options(MACHINE, lifetime)


def mpi_options(function: _Function) -> _Function:
    """Adds an option for every field of a task that runs an MPI program, but for its name."""
    return _options(MPI, parallelism="--machines")(function)


_profile = click.option(
    "--profile", metavar="NAME", help="Use the defaults of a profile in your settings."
)


def _with(function: _Function, options: Sequence[Callable[[_Function], _Function]]) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function


def tasks_from(ctx: click.Context, options: Mapping[str, Any], teller: Context) -> list[Task]:
    """The tasks that a command line asks for: options win over what a file says."""
    typed = Typed.of(ctx)
    given = fields_from(options)
    under = defaults_for(TASK, options, "" if typed.dashed else next(iter(typed.words), ""))
    workdir = under.workdir(given)
    tasks = [under.fill(found, given) for found in read_target(ctx, typed, workdir)]
    if typed.dashed and not workdir and (left := stranded(typed.words[1:], workdir)):
        teller.warn(f"Not uploading without --workdir: {', '.join(left)}")
    if "workdir" not in given and not workdir:  # an empty one says that nothing is to be uploaded
        for task in tasks:
            if said := told_of_unsent(typed, task, from_file=is_task_file(Path(typed.words[0]))):
                teller.note(said)
    _refuse_doubles(tasks)
    for other in other_resources(Path(typed.words[0])) if not typed.dashed else ():
        teller.note(
            f"Ignoring {other.address}: run `{other.verb}` or `terraform apply` to create it"
        )
    return tasks


def machine_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a machine that options and defaults give, and what else options give.

    Defaults are for tasks: only those that say which machine it is are for others, too. No folder
    or variable of theirs gets to a machine that carries out strangers' jobs.
    """
    chosen = defaults_for(MACHINE, options).by_name.items()
    own = {name: each for name, each in chosen if _declared(name).of_machine or name in _OF_ALL}
    return Defaults(own).beneath(fields_from(options))


def _declared(name: str) -> Argument:
    return (arguments_of(Task) | arguments_of(Storage))[name]


def defaults_for(command: str, options: Mapping[str, Any], file: str = "") -> Defaults:
    """Those for what a kind of command makes. `file`: the file that is run, if any."""
    profile = options.get(_PROFILE) or ""
    if not profile and not documents():
        return Defaults({})
    # Imported here: its decoder takes time to load, and most people have no settings.
    from sojourn.taskfiles.defaults import ARGUMENTS, every_default, merged

    chosen = every_default(profile)
    if is_shared(Path(file)):  # it means the same for everybody, unless a profile is asked for
        chosen = [each for each in chosen if each.profile]
    return Defaults({n: each for n, each in merged(chosen).items() if command in ARGUMENTS[n].of})


def fields_from(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task that options give."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    given.pop(_PROFILE, None)
    if given.pop("no_output", None):
        if given.get("output"):
            raise InvalidInput("output", "cannot be combined with --no-output")
        given["output"] = ""
    for name, each in _arguments().items():
        if each.kind is PAIRS and name in given:
            given[name] = _pairs(name, given[name])
    for name in _FROM_FILES:
        if name in given:
            given[name] = {key: _from_file(name, key, text) for key, text in given[name].items()}
    given.update(_mpi(given))
    for file in reversed(given.pop("env_files", ())):
        given["environment"] = {**_read_env_file(file), **given.get("environment", {})}
    return given


def _mpi(given: dict[str, Any]) -> dict[str, Any]:
    """What is said of MPI, as one field; slots and implementation say that it is wanted."""
    wanted = given.pop("mpi", False)
    names = {"slots": "slots", "mpi_implementation": "implementation"}
    said = {field: given.pop(name) for name, field in names.items() if name in given}
    return {"mpi": said} if wanted or said else {}


def _read_env_file(file: str) -> dict[str, str]:
    from sojourn.taskfiles.envfile import read_env_file

    return read_env_file(Path(file))


def _refuse_doubles(tasks: list[Task]) -> None:
    """A name makes an id: the second of two would only be noticed when the first runs."""
    names = [task.name for task in tasks if task.name]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                "name", f"several tasks are named {name!r}; use a different name for each"
            )


def _pairs(field: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        empty = field == "mounts" and not value
        if not name or empty or (not equals and field != "environment"):
            form = _FORMS.get(field, "NAME=VALUE")
            raise InvalidInput(field, f"must be {form}, got {text!r}{_meant(field, text)}")
        pairs[name] = value
    return pairs


def _meant(field: str, text: str) -> str:
    """Other tools have a colon between path and data."""
    path, colon, what = text.partition(":")
    if field != "mounts" or not (text.startswith("/") and colon and what) or "=" in text:
        return ""
    return f"; did you mean --mount {path}={what}?"


def _from_file(field: str, key: str, text: str) -> str:
    """A value as curl takes it: after an @ there is the name of a file."""
    if not text.startswith("@"):
        return text
    if text == "@":
        option = _FROM_FILES[field]
        raise InvalidInput(f"{field}.{key}", f"must be {option} {key}=@FILE, got '{key}=@'")
    try:
        return read_text(Path(text[1:]))
    except InvalidInput as error:
        raise InvalidInput(f"{field}.{key}", str(error)) from error
