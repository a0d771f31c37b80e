"""The options that describe a task, and the task they make, alone or on top of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

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
    click.option("--name", help="Name it: the same name is always the same task."),
    click.option("--cloud", help="Where to run: local (the default) or aws."),
    click.option("--workdir", type=PATH, help="Folder to upload and to run in; none if not given."),
    click.option("--output", help="Folder to download at the end, relative to the workdir."),
    click.option(
        "--no-output", is_flag=True, help="Download nothing: discard all files that it leaves."
    ),
    click.option(
        "--exclude", multiple=True, metavar="GLOB", help="Do not transfer these files; repeatable."
    ),
    click.option(
        "-e",
        "--env",
        "environment",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Set a variable; without a value import the local one, also by glob; repeatable.",
    ),
    click.option(
        "--env-file",
        "env_files",
        type=PATH,
        multiple=True,
        metavar="FILE",
        help="Read variables from a file of NAME=VALUE lines; repeatable.",
    ),
    click.option("--parallelism", type=int, help="How many machines (1)."),
    click.option(
        "--timeout",
        metavar="DURATION",
        help="Maximum run time per machine, such as 45s, 90m or 1h30m (default: 24h).",
    ),
    click.option("--machine", help="Machine type, such as m, l, xl, m+t4 (m)."),
    click.option("--image", help="Machine image (ubuntu)."),
    click.option("--region", help="Cloud region (us-west)."),
    click.option("--disk-size", type=int, metavar="GB", help="Size of the disk (automatic)."),
    click.option("--spot", type=float, metavar="PRICE", help="-1: on demand, 0: any spot price."),
    click.option("--permission-set", help="Permissions of the machine, as the cloud has them."),
    click.option("--container", help="Existing bucket, or bucket/path, to store in."),
    click.option(
        "--container-opt",
        "container_opts",
        multiple=True,
        metavar="NAME=VALUE",
        help="Options.",
    ),
    click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Tag all resources."),
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
            raise InvalidInput("output", "--output and --no-output exclude each other")
        given["output"] = ""
    for name in ("environment", "container_opts", "tags"):
        if name in given:
            given[name] = _pairs(name, given[name])
    for file in reversed(given.pop("env_files", ())):
        given["environment"] = {**_read_env_file(file), **given.get("environment", {})}
    workdir = given.get("workdir", "")
    tasks = [changed(task, given) for task in read_target(ctx, typed, workdir)]
    if typed.dashed and not workdir and (left := stranded(typed.words[1:], workdir)):
        warn(f"Not uploaded without --workdir: {', '.join(left)}")
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
                "name", f"{name!r} would be the name of several tasks; give each one of its own"
            )


def _pairs(field: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or (not equals and field != "environment"):
            raise InvalidInput(field, f"{text!r} should be NAME=VALUE")
        pairs[name] = value
    return pairs
