"""Files that say what to run: a script, a YAML file, or Terraform's own main.tf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.cli.reading import located, read_text
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TaskFile", "read_tasks"]


@dataclass(frozen=True)
class TaskFile:
    """A task and what its file calls it: the label of its block, else the file's own name."""

    label: str
    task: Task


def read_tasks(path: Path) -> list[TaskFile]:
    """All tasks of a file, by its name: `*.yaml`, `*.yml`, `*.tf`; any other is a script.

    A relative `storage.workdir` is taken from the file's folder, and comes back absolute.
    """
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        # The readers are imported only when one is needed: the parsers are slow to load.
        from sojourn.cli.yamlfile import read_yaml

        return [TaskFile(path.stem, read_yaml(path))]
    if suffix == ".tf":
        from sojourn.cli.hclfile import read_hcl

        return [TaskFile(label, task) for label, task in read_hcl(path).items()]
    return [TaskFile(path.stem, _script(path))]


def _script(path: Path) -> Task:
    text = read_text(path)
    try:
        return Task(text)
    except InvalidInput as error:
        raise located(str(path), error.problems) from error
