"""The code blocks of a document, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ROOT", "Block", "Section", "Typed", "sections"]

ROOT = Path(__file__).parents[2]
_HEADING = re.compile(r"^#+ (.+)$")
_FENCE = re.compile(r"^( *)```(\w*)$")


@dataclass(frozen=True)
class Typed:
    """A line that a reader types, and what the document shows below it."""

    line: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """`note` is the line below it, which may say that something was left out."""

    language: str
    text: str
    line: int
    note: str = ""

    def typed(self) -> list[Typed]:
        """The lines with a `$`, of a console."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                assert found, f"line {self.line}: a console begins with a line that has a $"
                found[-1][1].append(line)
        return [Typed(line, tuple(shown)) for line, shown in found]


@dataclass(frozen=True)
class Section:
    """What is between two headings; `name` is the page and the heading, as in a link."""

    document: str
    heading: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.document}: {self.heading}"


def sections(document: str) -> Iterator[Section]:
    """Those that have code."""
    section = Section(document, "")
    lines = (ROOT / document).read_text().splitlines()
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        heading, fence = _HEADING.match(line), _FENCE.match(line)
        if heading:
            if section.blocks:
                yield section
            section = Section(document, heading[1])
        elif fence:
            section.blocks.append(_block(fence, number, lines))
            for _, inner in numbered:
                if inner.strip() == "```":
                    break
    if section.blocks:
        yield section


def _block(fence: re.Match[str], start: int, lines: list[str]) -> Block:
    end = next(n for n in range(start, len(lines)) if lines[n].strip() == "```")
    text = "".join(f"{line.removeprefix(fence[1])}\n" for line in lines[start:end])
    below = [line for line in lines[end + 1 : end + 3] if line]
    return Block(fence[2], text, start, below[0] if below else "")
