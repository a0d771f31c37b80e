"""Tasks in Terraform's own files, without Terraform: the `iterative_task` blocks of a main.tf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

import hcl2
from lark.exceptions import UnexpectedInput

from sojourn.cli.decode import STORAGE_FIELDS, TASK_FIELDS, decode_task
from sojourn.cli.hclvalues import HCLTree, NotLiteral, evaluate, number, parts, text
from sojourn.cli.reading import located, read_text, unknown
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.task import Storage, Task

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_hcl"]

_KIND = "iterative_task"
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


def read_hcl(path: Path) -> dict[str, Task]:
    """All tasks of a file, by the labels of their blocks; other blocks are ignored."""
    tasks: dict[str, Task] = {}
    for label, body in _blocks(path):
        where = f"{path}: {_KIND}.{label}"
        if label in tasks:
            raise InvalidInput(where, "there are two blocks of this name")
        tasks[label] = _task(body, where, path.parent)
    if not tasks:
        raise InvalidInput(str(path), f'has no task: no `resource "{_KIND}" "name" {{ ... }}`')
    return tasks


def _blocks(path: Path) -> Iterator[tuple[str, HCLTree]]:
    for item in _items(_parse(path)):
        kind, labels = _heading(item)
        if item.data == "block" and kind == "resource" and labels[:1] == [_KIND]:
            if len(labels) != 2:
                raise InvalidInput(str(path), f'an {_KIND} needs a name: resource "{_KIND}" "name"')
            yield labels[1], _body(item)


def _parse(path: Path) -> HCLTree:
    source = read_text(path)
    try:
        [body] = parts(hcl2.parses_to_tree(source))
    except UnexpectedInput as error:
        line = source.count("\n") + 1 if error.line < 1 else error.line
        raise InvalidInput(f"{path}: line {line}", "this is not valid HCL") from error
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


def _task(body: HCLTree, where: str, folder: Path) -> Task:
    reader = _Reader(folder)
    data = reader.fields(body, Task, "")
    problems = reader.problems + [
        Problem(name, "is required")
        for name in _REQUIRED
        if name not in data and all(problem.path != name for problem in reader.problems)
    ]
    if problems:
        raise located(where, problems)
    return decode_task(data, where, folder)


class _Reader:
    """Reads the attributes and blocks of a task, and gathers what is wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[Problem] = []
        self._folder = folder

    def fields(self, body: HCLTree, kind: type, prefix: str) -> dict[str, Any]:
        """The fields of one block; attributes that are null count as not given."""
        known = STORAGE_FIELDS if kind is Storage else TASK_FIELDS
        seen: set[str] = set()
        data: dict[str, Any] = {}
        for item in _items(body):
            name, _ = _heading(item)
            path = prefix + name
            if name in seen:
                self._refuse(path, "is given more than once")
            elif name in _ONLY_TERRAFORM:
                self._refuse(path, "belongs to Terraform; remove it, or use `terraform apply`")
            elif name not in known:
                if (item.data, path) != ("block", "timeouts"):
                    self.problems.append(unknown(path, known))
            elif (item.data == "block") != (path == "storage"):
                right = "storage { ... }" if path == "storage" else f"{name} = ..."
                self._refuse(path, f"must be written as {right}")
            elif item.data == "block":
                data[name] = self.fields(_body(item), Storage, "storage.")
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
    wanted = get_type_hints(kind)[name]
    if wanted in (int, float):
        return number
    if get_origin(wanted) is tuple:
        return _list
    if get_origin(wanted) is not None:
        return _map
    return text


def _list(value: Any) -> Any:
    return [text(item) for item in value] if isinstance(value, list) else value


def _map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: "" if item is None else text(item) for key, item in value.items()}
