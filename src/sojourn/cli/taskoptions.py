"""The options that describe a task, and the task they make, alone or on top of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn import clouds
from sojourn.cli.commandline import Typed
from sojourn.cli.target import read_target, stranded
from sojourn.cli.unsent import told_of_unsent
from sojourn.core.errors import InvalidInput
from sojourn.core.filters import DEFAULT_IGNORED
from sojourn.core.gang import IMPLEMENTATIONS
from sojourn.taskfiles import is_task_file, other_resources
from sojourn.taskfiles.changes import changed
from sojourn.taskfiles.reading import read_text

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.task import Task

__all__ = [
    "PATH",
    "fields_from",
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
        known = {name: clouds.about(name).options for name in clouds.NAMES}
        texts = [f"{name}: {', '.join(dict(all_))}" for name, all_ in known.items() if all_]
        return (record[0], f"{record[1]} [{'; '.join(texts)}]") if record and texts else record


_DAY = "24h"


def _timeout(default: str) -> Callable[[_Function], _Function]:
    return click.option(
        "--timeout",
        metavar="DURATION",
        help=f"Maximum run time per machine, such as 45s, 90m or 1h30m (default: {default}).",
    )


_NAME = click.option("--name", help="Task name; the same name always means the same task.")
_OPTIONS = (
    click.option(
        "--cloud", help=f"Cloud to run on, {clouds.any_of()} (default: {clouds.NAMES[0]})."
    ),
    click.option("--workdir", type=PATH, help="Folder to upload and run in (default: none)."),
    click.option("--output", help="Folder to download at the end, relative to the workdir."),
    click.option("--no-output", is_flag=True, help="Download nothing and discard all files."),
    click.option(
        "--exclude",
        multiple=True,
        metavar="GLOB",
        help="Do not upload or download these files; repeatable.",
    ),
    click.option(
        "--default-ignore/--no-default-ignore",
        default=None,
        help=f"Leave {', '.join(DEFAULT_IGNORED)} out of the upload (default) or not.",
    ),
    click.option(
        "-e",
        "--env",
        "environment",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Set a variable, or copy local ones by name or glob; repeatable.",
    ),
    click.option(
        "--env-file",
        "env_files",
        type=PATH,
        multiple=True,
        metavar="FILE",
        help="Read variables from a file of NAME=VALUE lines; repeatable.",
    ),
    click.option("--machine", help="Machine type, such as m, l, xl or m+t4 (default: m)."),
    click.option(
        "--image", help="Machine image, or container image docker://NAME (default: ubuntu)."
    ),
    click.option("--region", help="Cloud region (default: us-west)."),
    click.option("--disk-size", type=int, metavar="GB", help="Disk size (default: automatic)."),
    click.option(
        "--spot",
        type=float,
        metavar="PRICE",
        help="Maximum USD per hour; 0: any spot price, -1: on demand (default).",
    ),
    click.option("--permission-set", help="Cloud permissions of the machine."),
    click.option("--container", help="Existing bucket or bucket/path for storage."),
    click.option(
        "--container-opt",
        "container_opts",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a cloud-specific option of the container; repeatable.",
    ),
    click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="NAME=VALUE",
        help="Tag all cloud resources; repeatable.",
    ),
    click.option(
        "--mount",
        "mounts",
        multiple=True,
        metavar="PATH=WHAT",
        help="Mount existing data, such as /data=claim:datasets/imagenet:ro; repeatable.",
    ),
    click.option(
        "--option",
        "options",
        cls=_CloudOption,
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a cloud-specific option; KEY=@FILE reads the value from a file; repeatable.",
    ),
)


_GANG_TIMEOUT = click.option(
    "--gang-timeout",
    metavar="DURATION",
    help="Fail unless all machines of a gang are there in time (default: 30m).",
)
_MPI = (
    click.option("--slots", type=int, help="MPI processes per machine (default: 1)."),
    click.option(
        "--mpi-implementation",
        metavar="NAME",
        help=f"{', '.join(IMPLEMENTATIONS)} (default: {IMPLEMENTATIONS[0]}).",
    ),
)
_FILE = click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH=@FILE",
    help="Put a small file at this path of the machine or workdir; PATH=TEXT gives its text; "
    "repeatable.",
)
_WARM = click.option(
    "--warm",
    metavar="DURATION",
    help="Keep machines for this long after the end, for another run under the same name.",
)
_OF_TASKS = (
    click.option("--parallelism", type=int, help="Number of machines (default: 1)."),
    click.option(
        "--gang",
        is_flag=True,
        default=None,
        help="Start all machines together, and all again if one is lost.",
    ),
    _GANG_TIMEOUT,
    click.option(
        "--mpi",
        is_flag=True,
        default=None,
        help="Run the script once, with an mpirun that starts processes on all machines.",
    ),
    *_MPI,
    _FILE,
    click.option(
        "--stay",
        is_flag=True,
        default=None,
        help="Keep the machine after the script until the task is deleted, idle or timed out.",
    ),
    click.option(
        "--idle-timeout",
        metavar="DURATION",
        help="With --stay, end machines that are idle for this long (default: no limit).",
    ),
    _WARM,
)
_OF_MPI = (
    click.option("--machines", "parallelism", type=int, help="Number of machines (default: 1)."),
    *_MPI,
    _GANG_TIMEOUT,
    _FILE,
    _WARM,
)


def task_options(function: _Function) -> _Function:
    """Adds an option for every field of a task."""
    return _with(function, (_NAME, *_OPTIONS, _timeout(_DAY), *_OF_TASKS))


def machine_options(lifetime: str) -> Callable[[_Function], _Function]:
    """Adds an option for every field of a task that is a machine.

    `lifetime`: how long it lives if nobody says.
    """
    return lambda function: _with(function, (_NAME, *_OPTIONS, _timeout(lifetime)))


def mpi_options(function: _Function) -> _Function:
    """Adds an option for every field of a task that runs an MPI program, but for its name."""
    return _with(function, (*_OF_MPI, *_OPTIONS, _timeout(_DAY)))


def _with(function: _Function, options: Sequence[Callable[[_Function], _Function]]) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function


def tasks_from(ctx: click.Context, options: Mapping[str, Any], teller: Context) -> list[Task]:
    """The tasks that a command line asks for: options win over what a file says."""
    typed = Typed.of(ctx)
    given = fields_from(options)
    workdir = given.get("workdir", "")
    tasks = [changed(task, given) for task in read_target(ctx, typed, workdir)]
    if typed.dashed and not workdir and (left := stranded(typed.words[1:], workdir)):
        teller.warn(f"Not uploading without --workdir: {', '.join(left)}")
    if "workdir" not in given:  # an empty one says that nothing is to be uploaded
        for task in tasks:
            if said := told_of_unsent(typed, task, from_file=is_task_file(Path(typed.words[0]))):
                teller.note(said)
    _refuse_doubles(tasks)
    for other in other_resources(Path(typed.words[0])) if not typed.dashed else ():
        teller.note(
            f"Ignoring {other.address}: run `{other.verb}` or `terraform apply` to create it"
        )
    return tasks


def fields_from(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task that options give."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if given.pop("no_output", None):
        if given.get("output"):
            raise InvalidInput("output", "cannot be combined with --no-output")
        given["output"] = ""
    for name in ("environment", "container_opts", "tags", "mounts", "options", "files"):
        if name in given:
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
