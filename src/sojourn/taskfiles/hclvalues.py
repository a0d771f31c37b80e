"""The values of HCL expressions that need no Terraform: literals, heredocs and `file()`."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lark import Token, Tree

from sojourn.taskfiles.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["HCLTree", "NotLiteral", "evaluate", "number", "parts", "text"]

HCLTree = Tree[Token]
"""A node of the tree that python-hcl2 parses."""


class NotLiteral(Exception):
    """An expression that only Terraform can work out, or that is wrong; says which and why."""


_ONLY_TERRAFORM = "only Terraform can evaluate {}; use a literal value or `terraform apply`"


def evaluate(node: HCLTree, folder: Path) -> Any:
    """A text, Decimal, bool, None, list or dict; files are read relative to `folder`."""
    return _Evaluator(folder).value(node)


def text(value: Any) -> Any:
    """What Terraform makes of a value where a text is wanted; lists and maps stay as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        digits = format(value, "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    return value


def number(value: Any) -> Any:
    """What Terraform makes of a value where a number is wanted; all others stay as they are."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        value = Decimal(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def parts(node: HCLTree) -> Iterator[HCLTree]:
    """The children of a node without punctuation, line ends and comments."""
    for child in node.children:
        if isinstance(child, Tree) and child.data != "new_line_or_comment":
            yield child


class _Evaluator:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rules: dict[str, Callable[[HCLTree], Any]] = {
            "expr_term": self._only,
            "int_lit": lambda node: Decimal(_token(node)),
            "float_lit": lambda node: Decimal(_token(node)),
            "unary_op": self._negative,
            "literal_value": lambda node: {"true": True, "false": False}.get(_token(node)),
            "string": self._string,
            "heredoc_template": lambda node: _heredoc(_token(node), trim=False),
            "heredoc_template_trim": lambda node: _heredoc(_token(node), trim=True),
            "tuple": lambda node: [self.value(item) for item in parts(node)],
            "object": self._object,
            "function_call": self._call,
            "get_attr_expr_term": self._path,
        }

    def value(self, node: HCLTree) -> Any:
        rule = self._rules.get(node.data)
        if rule is None:
            raise _beyond(node)
        return rule(node)

    def _only(self, node: HCLTree) -> Any:
        [child] = parts(node)
        return self.value(child)

    def _negative(self, node: HCLTree) -> Decimal:
        operand = self._only(node)
        if node.children[0] != "-" or not isinstance(operand, Decimal):
            raise _beyond(node)
        return -operand

    def _object(self, node: HCLTree) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for element in parts(node):
            key, value = parts(element)
            found[self._key(key)] = self.value(value)
        return found

    def _key(self, node: HCLTree) -> str:
        [key] = parts(node)
        if key.data == "keyword":
            return _token(key)
        [name] = (key, *parts(key))[-1:]
        if key.data == "expr_term" and len(key.children) == 1 and name.data in _BARE:
            return _token(name)
        value = text(self.value(key))
        if not isinstance(value, str):
            raise _beyond(node)
        return value

    def _call(self, node: HCLTree) -> str:
        name, *arguments = parts(node)
        values = [self.value(item) for group in arguments for item in parts(group)]
        if _token(name) != "file" or len(values) != 1 or not isinstance(values[0], str):
            raise NotLiteral(_ONLY_TERRAFORM.format(f"the function {_token(name)}()"))
        return read_text(self._folder / values[0])

    def _path(self, node: HCLTree) -> str:
        if _words(node) in (["path", "module"], ["path", "root"]):
            return "."
        raise _beyond(node)

    def _string(self, node: HCLTree) -> str:
        return "".join(self._string_part(part) for part in parts(node))

    def _string_part(self, node: HCLTree) -> str:
        if all(isinstance(child, Token) for child in node.children):
            return _unescape(_token(node))
        [inner] = parts(node)
        if inner.data == "interpolation":
            [expression] = parts(inner)
            value = text(self.value(expression))
            if isinstance(value, str):
                return value
        raise _beyond(node)


_BARE = ("identifier", "literal_value")


def _token(node: HCLTree) -> str:
    return str(node.children[0])


def _words(node: HCLTree) -> list[str]:
    return [str(token) for token in node.scan_values(lambda token: token != ".")]


def _beyond(node: HCLTree) -> NotLiteral:
    tokens = (str(token).strip() for token in node.scan_values(lambda _: True))
    said = re.sub(r" ?([.()\[\]]) ?", r"\1", " ".join(token for token in tokens if token))
    return NotLiteral(_ONLY_TERRAFORM.format(f"`{said}`"))


_MARKS = re.compile(r"\$\$\{|%%\{|\$\{[^}\n]*\}?|%\{[^}\n]*\}?")


def _template(literal: str) -> str:
    """Resolve `$${` and `%%{`; anything that Terraform would fill in is refused."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] in ("$${", "%%{"):
            return match[0][1:]
        raise NotLiteral(
            _ONLY_TERRAFORM.format(f"`{match[0]}`")
            + f" (for a literal {match[0][:2]}, write {match[0][0]}{match[0][:2]})"
        )

    return _MARKS.sub(replaced, literal)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def _unescape(literal: str) -> str:
    if re.search(r'(?<!\\)(?:\\\\)*"', literal):
        raise NotLiteral("unclosed `${` before a quote; use a heredoc (<<-END)")
    if "\n" in literal:
        raise NotLiteral("a quoted string cannot span multiple lines; use a heredoc (<<-END)")

    def replaced(match: re.Match[str]) -> str:
        code = int(match[1] or match[2] or "0", 16)
        if code and code <= sys.maxunicode and not 0xD800 <= code < 0xE000:
            return chr(code)
        if match[3] not in _ESCAPED:
            raise NotLiteral(f"invalid escape sequence {match[0]}; write a backslash as \\\\")
        return _ESCAPED[match[3]]

    return _ESCAPE.sub(replaced, _template(literal))


def _heredoc(source: str, *, trim: bool) -> str:
    first, *lines = re.findall(r"[^\n]*\n", source)
    marker = first.lstrip("<-").strip()
    body = lines[: next(i for i, line in enumerate(lines) if line.strip() == marker)]
    if len(body) < len(lines) - 1:
        raise NotLiteral(f"unexpected whitespace after the closing {marker}; remove it")
    if trim:
        body = _outdented(body)
    return _template("".join(body))


def _outdented(lines: list[str]) -> list[str]:
    """Remove the smallest indentation from all lines; blank ones neither count nor change."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    least = min(indents, default=0)
    return [line[least:] if line.strip() else line for line in lines]
