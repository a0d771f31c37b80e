"""The documents keep step with the code: nothing is left out, and every command line parses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import click
import pytest

import sojourn.clouds
from sojourn.agent.config import Config
from sojourn.cli.app import cli
from sojourn.core.errors import SojournError
from sojourn.core.events import Event
from sojourn.core.filters import DEFAULT_IGNORED
from sojourn.core.guarded import GUARDED
from sojourn.core.report import Outcome
from sojourn.core.status import State
from sojourn.core.task import Storage, Task
from sojourn.engine.revision import COMMIT, DIRTY

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs/reference.md").read_text()
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]

Base = TypeVar("Base")
_GROUP = click.Context(cli, info_name="sojourn")


def section(heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    pattern = rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)"
    found = re.search(pattern, REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference.md has no heading {heading!r}"
    return found[1]


def ours(base: type[Base]) -> list[type[Base]]:
    """The subclasses that are the product's own: other tests may have made some."""
    return [kind for kind in base.__subclasses__() if kind.__module__ == base.__module__]


def commands(group: click.Group = cli, prefix: str = "") -> dict[str, click.Command]:
    """All that can be called, by what is typed for it: those of a group, not the group."""
    found: dict[str, click.Command] = {}
    for name in group.list_commands(_GROUP):
        command = group.get_command(_GROUP, name)
        if isinstance(command, click.Group):
            found |= commands(command, f"{prefix}{name} ")
        elif command is not None:
            found[prefix + name] = command
    return found


def options() -> Iterator[tuple[str, str]]:
    for name, command in commands().items():
        for parameter in command.get_params(click.Context(command)):
            if isinstance(parameter, click.Option):
                for option in (*parameter.opts, *parameter.secondary_opts):
                    yield name, option


@pytest.mark.parametrize("name", list(commands()))
def test_every_command_has_its_section(name: str) -> None:
    assert section(f"### sojourn {name}").strip()


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_every_option_is_in_the_section_of_its_command(command: str, option: str) -> None:
    common = section("## Verbs").partition("\n### ")[0]
    same_as_run = section("### sojourn run") if command == "create" else ""
    text = common + section(f"### sojourn {command}") + same_as_run
    assert re.search(rf"`{re.escape(option)}[` ]", text)


@pytest.mark.parametrize("name", [field.name for field in fields(Task)])
def test_every_field_of_a_task(name: str) -> None:
    if name != "storage":
        assert f"\n| `{name}` |" in section("## Arguments of a task")


@pytest.mark.parametrize("name", [field.name for field in fields(Storage)])
def test_every_field_of_a_storage(name: str) -> None:
    assert f"\n| `storage.{name}` |" in section("## Arguments of a task")


@pytest.mark.parametrize("name", DEFAULT_IGNORED)
def test_every_name_that_is_not_uploaded_by_default(name: str) -> None:
    assert f"`{name}`" in section("## Exclude patterns").partition("\n### ")[0]


@pytest.mark.parametrize("name", [COMMIT, DIRTY])
def test_every_variable_of_the_revision(name: str) -> None:
    assert f"\n| `{name}` |" in section("## What the script sees")


def clouds() -> list[str]:
    """All that there are."""
    return sorted(sojourn.clouds.KINDS)


@pytest.mark.parametrize("cloud", clouds())
def test_every_option_of_a_cloud_and_no_other(cloud: str) -> None:
    text = section("### Options of a cloud")
    row = rf"^\| (?:`\w+`, )*`{cloud}`(?:, `\w+`)* \| `(\w+)` \| (.*) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert tuple(rows) == sojourn.clouds.about(cloud).options


@pytest.mark.parametrize("kind", ours(Event))
def test_every_event_with_its_keys(kind: type[Event]) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
    row = re.search(rf"^\| `{name}` \|.*$", section("## JSON"), re.MULTILINE)
    assert row, f"{name} is not in the table of events"
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in row[0]] == []


@pytest.mark.parametrize("state", State)
def test_every_state(state: State) -> None:
    assert f"\n| `{state}` |" in section("## States")


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome(outcome: Outcome) -> None:
    assert f"`{outcome}`" in section("## States")


@pytest.mark.parametrize("error", [SojournError, *ours(SojournError)])
def test_every_error(error: type[SojournError]) -> None:
    assert f"`{error.__name__}`" in section("## JSON")


@pytest.mark.parametrize("name", [field.name for field in fields(Config)])
def test_every_key_of_the_agents_document(name: str) -> None:
    assert f"\n| `{name}` |" in section("## The agent's document")


def test_every_row_type_of_the_command_line() -> None:
    sources = [path.read_text() for path in (ROOT / "src/sojourn/cli").rglob("*.py")]
    types = {name for text in sources for name in re.findall(r'"type": "([a-z-]+)"', text)}
    assert types
    assert sorted(name for name in types if f"\n| `{name}` |" not in section("## JSON")) == []


def typed_lines(text: str) -> Iterator[str]:
    """What a reader of a document would type, or write: after `$ `, at the start of a shell's line,
    or as a step of a workflow."""
    for kind, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            typed = line.strip()
            if kind == "console" and typed.startswith("$ "):
                yield typed.removeprefix("$ ")
            elif kind in ("bash", "sh") and typed.startswith("sojourn "):
                yield typed
            elif kind == "yaml" and (step := re.fullmatch(r"- (?:run: )?(sojourn .+)", typed)):
                yield step[1]


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of sojourn in a line of a shell, also of those in `$(...)`."""
    for inner in re.findall(r"\$\(([^()]*)\)", line):
        yield from calls(inner)
    rest = re.sub(r"\$\([^()]*\)", "X", line)
    rest = re.sub(r"[0-9]*[<>]+\s*\S+", "", rest)  # redirections
    lexer = shlex.shlex(rest, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in (*lexer, ";"):
        if not word or set(word) - set("|;&"):
            words.append(word)
            continue
        if words[:1] == ["xargs"]:
            words = [*words[1:], "ID"]
        if words[:1] == ["sojourn"]:
            yield words[1:]
        words = []


def documented_calls() -> Iterator[tuple[str, list[str]]]:
    for document in DOCUMENTS:
        for line in typed_lines(document.read_text()):
            if "sojourn" in line:
                for arguments in calls(line):
                    yield document.name, arguments


@pytest.mark.parametrize(("document", "arguments"), list(documented_calls()))
def test_every_command_line_parses(document: str, arguments: list[str]) -> None:
    assert arguments, f"{document} calls sojourn without a verb"
    verb, *rest = arguments
    if verb.startswith("-"):
        assert verb in {name for option in cli.get_params(_GROUP) for name in option.opts}
        return
    command = cli.get_command(_GROUP, verb)
    while isinstance(command, click.Group):
        assert rest, f"{document} calls {verb} without saying what of it"
        verb, *rest = rest
        command = command.get_command(_GROUP, verb)
    assert command is not None, f"{document} calls a verb that there is not: {verb}"
    command.make_context(verb, rest, parent=_GROUP)


def test_the_search_for_command_lines_finds_some() -> None:
    found = {document for document, _ in documented_calls()}
    assert found >= {"README.md", "guide.md", "reference.md", "runners.md"}
    assert list(calls("""id=$(sojourn run -d a.sh 2>/dev/null) && x | xargs sojourn stop"""))[
        :2
    ] == [
        ["run", "-d", "a.sh"],
        ["stop", "ID"],
    ]


def anchors(document: Path) -> set[str]:
    """The names that a page's headings have as targets of links."""
    text = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if not re.match(r"[a-z]+:", target):
                yield str(document.relative_to(ROOT)), target


@pytest.mark.parametrize(("document", "target"), list(links()))
def test_every_relative_link_leads_somewhere(document: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    page = (ROOT / document).parent / path if path else ROOT / document
    assert page.exists()
    if anchor:
        assert anchor in anchors(page)


def test_files_that_stay_in_the_store_are_listed() -> None:
    listed = re.findall(r"`([^`]+)`", section("## Files that stay in the store").split("|---|")[1])
    assert sorted(GUARDED) == sorted(name for name in listed if name in GUARDED)
