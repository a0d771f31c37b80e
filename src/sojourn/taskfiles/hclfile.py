"""Tasks in Terraform's own files, without Terraform: the `iterative_task` blocks of a main.tf.

Others of the provider's resources are found, but not read: they have verbs of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_origin

import hcl2
from lark.exceptions import UnexpectedInput

from sojourn import clouds
from sojourn.core.argument import arguments_of
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.gang import Mpi
from sojourn.core.task import Storage, Task
from sojourn.taskfiles.decode import FIELDS, KINDS, decode_task, said_in
from sojourn.taskfiles.hclvalues import HCLTree, NotLiteral, evaluate, number, parts, text
from sojourn.taskfiles.reading import NoTask, OtherResource, Source, read_text, refusal, unknown

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TaskBlock", "other_resources", "read_blocks", "read_hcl"]

_KIND = "iterative_task"
_MACHINE, _RUNNER = "iterative_machine", "iterative_cml_runner"
_VERBS = {
    _MACHINE: "sojourn machine create",
    _RUNNER: "sojourn runner launch",
    "iterative_mpi_operator": "sojourn mpi install",
}
_OF_RUNNERS = {"repo", "driver", "labels"}
_REQUIRED = ("cloud", "script")
_ONLY_TERRAFORM = frozenset(
    [
        "connection",
        "count",
        "depends_on",
        "dynamic",
        "for_each",
        "lifecycle",
        "provider",
        "provisioner",
    ]
)


# The same file is for both: what `terraform validate` refuses is refused here.
_NOT_IN_TERRAFORM = {
    name for name, each in arguments_of(Task).items() if each.help and not each.description
}
_OF_TERRAFORM = (("block", "timeouts"), ("attribute", "wait"))
"""What only says how long Terraform waits."""
_LOG_FILE = "log_file"


@dataclass(frozen=True)
class TaskBlock:
    """A task, the label of its block, and where to write what rank 0 prints, if anywhere.

    `said`: the arguments that the block says something of.
    """

    label: str
    task: Task
    log_file: Path | None
    said: frozenset[str]


def read_hcl(path: Path) -> dict[str, Task]:
    """All tasks of a file, by the labels of their blocks."""
    return {found.label: found.task for found in read_blocks(path)}


def read_blocks(path: Path) -> list[TaskBlock]:
    """The same, with what their blocks say beside the task."""
    tasks: dict[str, TaskBlock] = {}
    problems: list[Problem] = []
    for block, label in _blocks(path):
        reader = _Reader(path.parent)
        data = reader.read(block)
        source = Source(str(path), f"{_KIND}.{label}", reader.lines)
        try:
            if label in tasks:
                raise source.refusal([Problem("", "duplicate block name")])
            task = decode_task(data, source, path.parent, reader.problems)
            tasks[label] = TaskBlock(label, task, reader.log_file, said_in(data))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise refusal(problems)
    if not tasks:
        raise NoTask(str(path), f"no task found; {_instead(path)}")
    return list(tasks.values())


def other_resources(path: Path) -> list[OtherResource]:
    """Those of the provider's in a file that are no tasks."""
    found = []
    for item in _items(_parse(path)):
        kind, labels = _heading(item)
        if item.data == "block" and kind == "resource" and len(labels) == 2 and labels[0] in _VERBS:
            arguments = {_heading(each)[0]: each for each in _items(_body(item))}
            verb, address = _verb_for(labels[0], set(arguments)), ".".join(labels)
            has_machine = labels[0] in (_MACHINE, _RUNNER)
            cloud = _cloud_of(arguments.get("cloud"), path.parent) if has_machine else ""
            found.append(OtherResource(address, verb, has_machine, cloud))
    return found


def _cloud_of(item: HCLTree | None, folder: Path) -> str:
    """Of a machine or runner; empty: only Terraform can tell."""
    if item is None:
        return clouds.FOR_MACHINES
    *_, expression = parts(item)
    try:
        found = evaluate(expression, folder)
    except (NotLiteral, InvalidInput):
        return ""
    return clouds.FOR_MACHINES if found is None else str(found)


def _instead(path: Path) -> str:
    """What to do with a file that has no task: it may have something else of the provider's."""
    others = [
        f"to create {each.address}, run `{each.verb}` or `terraform apply`"
        for each in other_resources(path)
    ]
    return "; ".join(others) or f'add `resource "{_KIND}" "name" {{ ... }}`'


def _verb_for(kind: str, arguments: set[str]) -> str:
    """Pages of the old provider show runners as machines."""
    return _VERBS[_RUNNER if kind == _MACHINE and arguments & _OF_RUNNERS else kind]


def _blocks(path: Path) -> Iterator[tuple[HCLTree, str]]:
    for item in _items(_parse(path)):
        kind, labels = _heading(item)
        if item.data == "block" and kind == "resource" and labels[:1] == [_KIND]:
            if len(labels) != 2:
                raise InvalidInput(
                    f"{path}:{item.meta.line}",
                    f'name required: `resource "{_KIND}" "name"`',
                )
            yield item, labels[1]


def _parse(path: Path) -> HCLTree:
    source = read_text(path)
    try:
        return _tree(source)
    except UnexpectedInput as error:
        line = source.count("\n") + 1 if error.line < 1 else error.line
        raise InvalidInput(f"{path}:{line}", "invalid HCL") from error


@lru_cache(maxsize=1)  # parsing is slow, and a file is looked at for more than its tasks
def _tree(source: str) -> HCLTree:
    [body] = parts(hcl2.parses_to_tree(source))
    return body


def _items(body: HCLTree) -> Iterator[HCLTree]:
    return (item for item in parts(body) if item.data in ("attribute", "block"))


def _body(block: HCLTree) -> HCLTree:
    return list(parts(block))[-1]


def _heading(item: HCLTree) -> tuple[str, list[str]]:
    """The name of an attribute or the type of a block, and a block's labels."""
    names = [child for child in parts(item) if child.data in ("identifier", "keyword", "string")]
    first, *labels = ("".join(_words(name)) for name in names)
    return first, labels


def _words(node: HCLTree) -> Iterator[str]:
    return (str(token) for token in node.scan_values(lambda token: token != '"'))


class _Reader:
    """Reads the attributes and blocks of a task, and gathers what is wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.log_file: Path | None = None
        self._folder = folder

    def read(self, block: HCLTree) -> dict[str, Any]:
        """The fields of a task; attributes that are null count as not given."""
        self.lines[""] = block.meta.line
        data = self._fields(_body(block), Task, "")
        if log_file := data.pop(_LOG_FILE, ""):
            self.log_file = self._folder / log_file
        refused = {problem.path for problem in self.problems}
        for name in _REQUIRED:
            if name not in data and name not in refused:
                self._refuse(name, "required")
        return data

    def _fields(self, body: HCLTree, kind: type, prefix: str) -> dict[str, Any]:
        seen: set[str] = set()
        data: dict[str, Any] = {}
        for item in _items(body):
            name, _ = _heading(item)
            path = prefix + name
            self.lines[path] = item.meta.line
            if name in seen:
                self._refuse(path, "specified more than once")
            elif name in _ONLY_TERRAFORM:
                self._refuse(
                    path, "only supported by Terraform; remove it or use `terraform apply`"
                )
            elif kind is Task and name in _NOT_IN_TERRAFORM:
                self._refuse(path, f"not an argument of {_KIND}; use --{name} or YAML")
            elif path == _LOG_FILE and item.data == "attribute":
                self._attribute(item, path, text, data)
            elif name not in KINDS[kind]:
                if (item.data, path) not in _OF_TERRAFORM:
                    self.problems.append(unknown(path, FIELDS))
            elif (item.data == "block") != (path == "storage"):
                right = "storage { ... }" if path == "storage" else f"{name} = ..."
                self._refuse(path, f"must be written as {right}")
            elif item.data == "block":
                data[name] = self._fields(_body(item), Storage, "storage.")
            else:
                self._attribute(item, path, _converter(kind, name), data)
            seen.add(name)
        return data

    def _attribute(
        self, item: HCLTree, path: str, convert: Callable[[Any], Any], data: dict[str, Any]
    ) -> None:
        *_, expression = parts(item)
        try:
            value = evaluate(expression, self._folder)
        except (NotLiteral, InvalidInput) as error:
            self._refuse(path, str(error))
            return
        if value is not None:
            data[path.rpartition(".")[2]] = convert(value)

    def _refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _converter(kind: type, name: str) -> Callable[[Any], Any]:
    """As Terraform converts: numbers to texts and back, where the other one is wanted."""
    wanted = KINDS[kind][name]
    if wanted in (int, float, Any):
        return number
    if wanted is bool:
        return _truth
    if wanted is Mpi:
        return _mpi
    if get_origin(wanted) is tuple:
        return _list
    if get_origin(wanted) is not None:
        return _map
    return text


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _mpi(value: Any) -> Any:
    """Each of its fields by itself; one that there is not, and one that is null, as it is."""
    if not isinstance(value, Mapping):
        return value
    given = {key: item for key, item in value.items() if item is not None}
    return {k: _converter(Mpi, k)(v) if k in KINDS[Mpi] else v for k, v in given.items()}


def _list(value: Any) -> Any:
    return [text(item) for item in value] if isinstance(value, list) else value


def _map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: "" if item is None else text(item) for key, item in value.items()}
