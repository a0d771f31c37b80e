"""Files that say what to run: a script, a YAML file, or Terraform's own main.tf."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.cli.reading import decoded, located, read_text
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TaskFile", "read_piped", "read_tasks"]


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
    return [TaskFile(path.stem, _script(read_text(path), str(path)))]


def read_piped(source: Path | int, name: str) -> Task:
    """The script that comes through a pipe, which may take its time; Ctrl-C ends the waiting."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.SIG_DFL),
        )
    }
    try:
        with open(source, "rb", closefd=not isinstance(source, int)) as pipe:
            data = pipe.read()
    except OSError as error:
        raise InvalidInput("script", f"{name} cannot be read: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _script(decoded(data, name), name)


def _script(text: str, name: str) -> Task:
    try:
        return Task(text)
    except InvalidInput as error:
        raise located(name, error.problems) from error
