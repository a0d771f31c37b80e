"""The options that describe a task, and the task they make, alone or on top of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn import clouds
from sojourn.cli.commandline import Typed
from sojourn.cli.target import read_target, stranded
from sojourn.core.errors import InvalidInput
from sojourn.taskfiles.changes import changed

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["PATH", "task_options", "tasks_from"]

PATH = click.Path(readable=False)
"""Shells complete it. Whether it can be read we look at ourselves, and name the field."""


_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--name", help="Task name; the same name always means the same task."),
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
    click.option("--parallelism", type=int, help="Number of machines (default: 1)."),
    click.option(
        "--timeout",
        metavar="DURATION",
        help="Maximum run time per machine, such as 45s, 90m or 1h30m (default: 24h).",
    ),
    click.option("--machine", help="Machine type, such as m, l, xl or m+t4 (default: m)."),
    click.option("--image", help="Machine image (default: ubuntu)."),
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
)


def task_options(function: _Function) -> _Function:
    """Adds an option for every field of a task."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def tasks_from(
    ctx: click.Context, options: Mapping[str, Any], warn: Callable[[str], None]
) -> list[Task]:
    """The tasks that a command line asks for: options win over what a file says."""
    typed = Typed.of(ctx)
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if given.pop("no_output", None):
        if given.get("output"):
            raise InvalidInput("output", "cannot be combined with --no-output")
        given["output"] = ""
    for name in ("environment", "container_opts", "tags"):
        if name in given:
            given[name] = _pairs(name, given[name])
    for file in reversed(given.pop("env_files", ())):
        given["environment"] = {**_read_env_file(file), **given.get("environment", {})}
    workdir = given.get("workdir", "")
    tasks = [changed(task, given) for task in read_target(ctx, typed, workdir)]
    if typed.dashed and not workdir and (left := stranded(typed.words[1:], workdir)):
        warn(f"Not uploading without --workdir: {', '.join(left)}")
    _refuse_doubles(tasks)
    return tasks


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
        if not name or (not equals and field != "environment"):
            raise InvalidInput(field, f"must be NAME=VALUE, got {text!r}")
        pairs[name] = value
    return pairs
