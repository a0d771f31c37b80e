"""Tasks in YAML: the fields of a task, by name.

YAML guesses types, and a task's maps have texts only: what looks like a number there is taken as
it is written, and what looks like a truth value is refused, because `yes` and `true` would be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from sojourn.core.argument import PAIRS
from sojourn.core.errors import InvalidInput, Problem
from sojourn.taskfiles.decode import INNER, decode_task, paths_of, said_in
from sojourn.taskfiles.reading import Source, read_text, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.task import Task

__all__ = ["read_yaml"]

_TAG = "tag:yaml.org,2002:"
_TEXT_MAPS = paths_of(PAIRS)
_MAPS = (*_TEXT_MAPS, *INNER)


def read_yaml(path: Path) -> tuple[Task, frozenset[str]]:
    """The one task of a YAML file, and the arguments that it says something of."""
    reader = _Reader(path)
    data = reader.load()
    source = Source(str(path), "", reader.lines)
    return decode_task(data, source, path.parent, reader.problems), said_in(data)


class _Reader:
    """Reads one document, and gathers what is wrong with it and on which lines its fields are."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._path = path

    def load(self) -> dict[str, Any]:
        self._loader = yaml.SafeLoader(read_text(self._path))
        try:
            root = self._loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise InvalidInput(
                    str(self._path), "must be a map of task fields, such as `script: ...`"
                )
            self._prepare(root)
            data: dict[str, Any] = self._loader.construct_document(root)
        except yaml.MarkedYAMLError as error:
            raise self._invalid(error.problem or error.context, error) from error
        except (yaml.YAMLError, ValueError) as error:
            raise self._invalid(error) from error
        finally:
            self._loader.dispose()
        self._read_named(data, "script", "")
        if isinstance(data.get("files"), dict):
            for path in data["files"]:
                self._read_named(data["files"], path, "files.")
        return data

    def _invalid(self, said: object, error: yaml.MarkedYAMLError | None = None) -> InvalidInput:
        """What YAML itself refuses, after all that was found before."""
        mark = error and (error.problem_mark or error.context_mark)
        lines = {"": mark.line + 1} if mark else {}
        found = Source(str(self._path), "", self.lines).located(self.problems)
        last = Problem("", f"invalid YAML: {said}")
        return refusal([*found, *Source(str(self._path), "", lines).located([last])])

    def _read_named(self, data: dict[str, Any], key: str, prefix: str) -> None:
        """Replace a `file: PATH` in place of a text by the text of that file."""
        given = data.get(key)
        if not isinstance(given, dict):
            return
        data[key] = ""
        name = given.get("file")
        if set(given) != {"file"} or not isinstance(name, str):
            self._refuse(prefix + key, "must be a string or `file: PATH`")
            return
        try:
            data[key] = read_text(self._path.parent / name)
        except InvalidInput as error:
            self._refuse(prefix + key, str(error))

    def _prepare(self, node: yaml.MappingNode, prefix: str = "") -> None:
        """Keep names and the values of text maps as they are written."""
        self._refuse_repeated(node, prefix)
        self._loader.flatten_mapping(node)
        for key, value in list(node.value):
            if not isinstance(key, yaml.ScalarNode):
                self.lines[f"{prefix}-"] = key.start_mark.line + 1
                self._refuse(f"{prefix}-", "names must be strings")
                node.value.remove((key, value))
                continue
            key.tag = _TAG + "str"
            path = prefix + key.value
            self.lines[path] = key.start_mark.line + 1
            if prefix == "files." and isinstance(value, yaml.MappingNode):
                continue  # it names a file
            if prefix[:-1] in _TEXT_MAPS:
                self._take_text(value, path, node, key)
            elif isinstance(value, yaml.MappingNode) and path in _MAPS:
                self._prepare(value, f"{path}.")

    def _refuse_repeated(self, node: yaml.MappingNode, prefix: str) -> None:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                self._refuse(prefix + name, "specified more than once")

    def _take_text(
        self, value: yaml.Node, path: str, node: yaml.MappingNode, key: yaml.Node
    ) -> None:
        if not isinstance(value, yaml.ScalarNode):
            self._refuse(path, _not_text(path, value))
            node.value.remove((key, value))
            return
        if value.tag == _TAG + "bool":
            self._refuse(path, f"must be a string; put it in quotes: '{value.value}'")
        if value.tag == _TAG + "null":
            value.value = ""
        value.tag = _TAG + "str"

    def _refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _not_text(path: str, value: yaml.Node) -> str:
    """An option may have YAML in it, and is tempting to write as a part of the file's own."""
    field, _, name = path.partition(".")
    if field == "options" and isinstance(value, yaml.MappingNode):
        return f"must be a string; for YAML in a string, write `{name}: |` and indent the lines"
    return "must be a string"
