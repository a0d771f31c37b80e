"""Files that say what to run: a script, a YAML file, or Terraform's own main.tf.

What does not belong here: options of a command line, and anything that is done with a task.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.problems import UNIX_ENDINGS
from sojourn.core.task import Task
from sojourn.taskfiles.reading import NoTask, OtherResource, Source, decoded, read_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "NoTask",
    "OtherResource",
    "TaskFile",
    "is_shared",
    "is_task_file",
    "other_resources",
    "read_tasks",
    "script_task",
]

_YAML = (".yaml", ".yml")
_HCL = ".tf"


@dataclass(frozen=True)
class TaskFile:
    """A task and what its file calls it: the label of its block, else the file's own name.

    `log_file`: where to write what rank 0 prints, if the file says so. `said`: the arguments that
    it says something of, by the names of keyword arguments.
    """

    label: str
    task: Task
    log_file: Path | None = None
    said: frozenset[str] = frozenset()


def is_task_file(path: Path) -> bool:
    """Whether a file of this name describes tasks; any other is a script."""
    return path.suffix.lower() in (*_YAML, _HCL)


def is_shared(path: Path) -> bool:
    """Whether others run a file of this name as well, by tools that know no defaults of ours."""
    return path.suffix.lower() == _HCL


def read_tasks(path: Path) -> list[TaskFile]:
    """All tasks of a file, by its name: `*.yaml`, `*.yml`, `*.tf`; any other is a script.

    A relative `storage.workdir` is taken from the file's folder, and comes back absolute.
    """
    try:
        return _read_tasks(path, path.suffix.lower())
    except RecursionError as error:
        raise InvalidInput(str(path), "too deeply nested to be a task") from error


def _read_tasks(path: Path, suffix: str) -> list[TaskFile]:
    if suffix in _YAML:
        # The readers are imported only when one is needed: the parsers are slow to load.
        from sojourn.taskfiles.yamlfile import read_yaml

        task, said = read_yaml(path)
        return [TaskFile(path.stem, task, said=said)]
    if suffix == _HCL:
        from sojourn.taskfiles.hclfile import read_blocks

        return [
            TaskFile(each.label, each.task, each.log_file, each.said) for each in read_blocks(path)
        ]
    return [TaskFile(path.stem, script_task(read_text(path), str(path), file=str(path)))]


def other_resources(path: Path) -> list[OtherResource]:
    """What a file has beside tasks: machines and runners, say."""
    if path.suffix.lower() != _HCL:
        return []
    from sojourn.taskfiles import hclfile  # as above

    return hclfile.other_resources(path)


def script_task(script: str | bytes, name: str, *, file: str = "FILE") -> Task:
    """The task that runs a script, as a file or pipe of this name has it."""
    text = decoded(script, name) if isinstance(script, bytes) else script
    try:
        return Task(text)
    except InvalidInput as error:
        fix = UNIX_ENDINGS.replace("FILE", shlex.quote(file))
        problems = [
            replace(problem, message=problem.message.replace(UNIX_ENDINGS, fix))
            for problem in error.problems
        ]
        raise Source(name).refusal(problems) from error
