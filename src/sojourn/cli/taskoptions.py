"""The options that describe a task, and the task they make, alone or on top of a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task

__all__ = ["PATH", "task_options", "tasks_from"]

PATH = click.Path(readable=False)
"""Shells complete it. Whether it can be read we look at ourselves, and name the field."""


_Function = TypeVar("_Function", bound=Callable[..., Any])
_STORAGE = ("workdir", "output", "exclude", "container", "container_opts")

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
    click.option("--parallelism", type=int, help="How many machines (1)."),
    click.option("--timeout", type=int, metavar="SECONDS", help="End each machine then (86400)."),
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


def tasks_from(file: str | None, command: list[str], options: Mapping[str, Any]) -> list[Task]:
    """The tasks that a command line asks for: options win over what a file says."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if given.pop("no_output", None):
        if given.get("output"):
            raise InvalidInput("output", "--output and --no-output exclude each other")
        given["output"] = ""
    for name in ("environment", "container_opts", "tags"):
        if name in given:
            given[name] = _pairs(name, given[name])
    if "exclude" in given:
        given["exclude"] = tuple(given["exclude"])
    if command:
        if file:
            raise InvalidInput("command", "give a file or a command after `--`, not both")
        return [_with(Task(script=_script(command)), given)]
    if not file:
        raise InvalidInput(
            "script", "give a script, a task.yaml, a main.tf, or a command after `--`"
        )
    tasks = [_with(task, given) for task in _read(file)]
    _refuse_doubles(tasks)
    return tasks


def _refuse_doubles(tasks: list[Task]) -> None:
    """A name makes an id: the second of two would only be noticed when the first runs."""
    names = [task.name for task in tasks if task.name]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                "name", f"{name!r} would be the name of several tasks; give each one of its own"
            )


def _script(command: list[str]) -> str:
    return f"#!/bin/sh\nexec {shlex.join(command)}\n"


def _read(file: str) -> list[Task]:
    from sojourn.cli.taskfile import read_piped, read_tasks

    path = Path(file)
    if file == "-":
        return [read_piped(0, "standard input")]
    if path.is_dir():
        raise InvalidInput("script", f"{path} is a folder; give a script, a task.yaml or a main.tf")
    if not path.exists():
        raise InvalidInput(
            "script",
            f"there is no file {path}; a command to run goes after `--`: sojourn run -- {path}",
        )
    if not os.access(path, os.R_OK):
        raise InvalidInput("script", f"{path} cannot be read; allow it first")
    if path.is_file():
        return [found.task for found in read_tasks(path)]
    if path.is_fifo() or _is_standard_input(path):
        return [read_piped(path, file)]
    raise InvalidInput("script", f"{path} is neither a file nor a pipe")


def _is_standard_input(path: Path) -> bool:
    """As /dev/stdin is, whatever lies behind it."""
    return os.path.samestat(path.stat(), os.fstat(0))


def _with(task: Task, given: Mapping[str, Any]) -> Task:
    storage = {name: given[name] for name in _STORAGE if name in given}
    others = {name: value for name, value in given.items() if name not in _STORAGE}
    if "environment" in others:
        others["environment"] = {**task.environment, **others["environment"]}
    if storage:
        others["storage"] = replace(task.storage, **storage)
    return replace(task, **others) if others else task


def _pairs(field: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or (not equals and field != "environment"):
            raise InvalidInput(field, f"{text!r} should be NAME=VALUE")
        pairs[name] = value
    return pairs
