"""Messages, help texts and pages avoid phrases that read like a translation.

CONTRIBUTING.md has the style and the pairs; the list below grows with what readers stumble over.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md"))]

# Each is a regular expression, matched without regard to case.
_REFUSED = (
    r"goes on with rank",
    r"option that there is not|(is|are) told in words|what could mean two things",
    r"the one before it\b|nobody has to watch|without further ado|while not known",
    r"could not be asked|cannot be asked",
    r"fell silent|was told to go;|waiting for the next machine",
    r"is how every id begins|could be any of:|give more of it",
    r"allow it first|has a meaning only|with which no\b",
    r"carrying out the script now|nothing would come home|comes home instead",
    r"it cannot be (read|looked at)|changed too fast to be|which text is meant",
    r"a [\[{] without its|is no entry|is full of nothing|an escape of hcl",
    r"is not in the store|is in the way: |has no room for|a passing fault",
    r"its creation was not completed|what was made is removed again",
    r"did not end within its timeout of|is given more than once",
    r"is what it is",
    r"is no (machine type|region|instance profile|image|folder|file|number|size)\b",
    r"is not possible; give",
    r"must be a text\b|map names to texts",
    r"exists already, and it is another one",
    r"is none of yours",
    r"who does not use|whoever does not",
    r"end each machine then",
    r"bring(s|ing)? (the |its |their )?(results|output) home",
    r"longer than the time that it was given",
    r"there is no task\b",
    r"see more with:",
    r"give another (folder|path|name)",
    r"shows all there are|shows those there are",
    r"removes it all the same",
    r"is there already and goes on",
    r"did not do its work on",
    r"is not to be had",
    r"as it takes\b.*as it takes",
    r"allow it first|could not be looked at|what is under way comes to",
    r"is too much; give|exclude each other",
    r"does not tell (which|why|capitals)|did not say why|may tell more|would tell more",
    r"somebody else has|whoever made it|that you may not look into",
    r"there is no (bucket|instance profile|default vpc)\b",
    r"and going on:|what is not home",
    r"had done its work|was taken away with notice",
    r"should be three numbers|should be NAME=VALUE",
    r"docs/aws\.md has the whole policy|opens the machines",
    # Not released yet: on an index, this name may be a stranger's one day.
    r"(pipx?|uv tool) install (--?\w+ )*['\"]?sojourn\b(?! @|\[\w+\] @)",
)
_PATTERN = re.compile("|".join(f"(?:{phrase})" for phrase in _REFUSED), re.IGNORECASE)


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """What people get to read of a module: its strings, and docstrings that become help texts."""
    tree = ast.parse(path.read_text())
    hidden = set() if "commands" in path.parts else _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in hidden:
            yield node.lineno, str(node.value)


def _docstrings(tree: ast.AST) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
    }


def _refused(text: str) -> str:
    found = _PATTERN.search(" ".join(text.split()))
    return found[0] if found else ""


def test_messages() -> None:
    found = [
        f"{path.relative_to(_ROOT)}:{line}: {refused}"
        for path in sorted((_ROOT / "src").rglob("*.py"))
        for line, text in _said(path)
        if (refused := _refused(text))
    ]
    assert found == []


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    lines = page.read_text().splitlines()
    found = [f"{n}: {refused}" for n, line in enumerate(lines, 1) if (refused := _refused(line))]
    assert found == []


def test_the_pairs_of_the_style_page_are_what_is_refused() -> None:
    page = (_ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (.+) \| (.+) \|$", page.split("| not | but |")[1], re.MULTILINE)
    assert len(rows) > 10
    for bad, good in rows[:15]:
        assert _refused(bad), bad
        assert not _refused(good), good
