"""Tasks in YAML: the fields of a task, by name.

YAML guesses types, and a task's maps have texts only: what looks like a number there is taken as
it is written, and what looks like a truth value is refused, because `yes` and `true` would be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from sojourn.cli.decode import decode_task
from sojourn.cli.reading import located, read_text
from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.task import Task

__all__ = ["read_yaml"]

_TAG = "tag:yaml.org,2002:"
_TEXT_MAPS = ("environment", "tags", "storage.container_opts")


def read_yaml(path: Path) -> Task:
    """The one task of a YAML file."""
    data = _load(path)
    if isinstance(data.get("script"), dict):
        data["script"] = _script_of(data["script"], path)
    return decode_task(data, str(path), path.parent)


def _load(path: Path) -> dict[str, Any]:
    loader = yaml.SafeLoader(read_text(path))
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise InvalidInput(str(path), "must be a map of a task's fields, such as `script: ...`")
        problems = _prepare(loader, root)
        if problems:
            raise located(str(path), problems)
        data: dict[str, Any] = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise InvalidInput(_place(path, error), _said(error)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput(str(path), f"this is not valid YAML: {error}") from error
    finally:
        loader.dispose()
    return data


def _place(path: Path, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"{path}: line {mark.line + 1}" if mark else str(path)


def _said(error: yaml.MarkedYAMLError) -> str:
    return f"this is not valid YAML: {error.problem or error.context}"


def _script_of(script: dict[str, Any], path: Path) -> str:
    name = script.get("file")
    if set(script) != {"file"} or not isinstance(name, str):
        raise InvalidInput(f"{path}: script", "must be a text, or `file:` with the name of a file")
    return read_text(path.parent / name)


def _prepare(loader: yaml.SafeLoader, node: yaml.MappingNode, prefix: str = "") -> list[Problem]:
    """Keep names and the values of text maps as they are written; returns what is wrong."""
    problems = _repeated(node, prefix)
    loader.flatten_mapping(node)
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            problems.append(Problem(prefix or "-", "a name must be a text"))
            continue
        key.tag = _TAG + "str"
        path = prefix + key.value
        if prefix[:-1] in _TEXT_MAPS:
            problems += _as_text(value, path)
        elif isinstance(value, yaml.MappingNode) and (path == "storage" or path in _TEXT_MAPS):
            problems += _prepare(loader, value, f"{path}.")
    return problems


def _repeated(node: yaml.MappingNode, prefix: str) -> list[Problem]:
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    return [
        Problem(prefix + name, "is given more than once")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]


def _as_text(node: yaml.Node, path: str) -> list[Problem]:
    if not isinstance(node, yaml.ScalarNode):
        return [Problem(path, "must be a text")]
    if node.tag == _TAG + "bool":
        return [Problem(path, f"put it in quotes to say which text is meant: '{node.value}'")]
    if node.tag == _TAG + "null":
        node.value = ""
    node.tag = _TAG + "str"
    return []
