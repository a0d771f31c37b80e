"""Somebody who types what a document says, in a home of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from sojourn.core.words import ADJECTIVES, ANIMALS, COLOURS
from tests.docs.blocks import ROOT
from tests.support.processes import MARK, marked
from tests.support.waiting import until

__all__ = ["Reader", "Said"]

_END = "=== end of line"
# Programs that the documents name, and what stands for them here. Nobody is asked to approve, and
# nothing is fetched: libraries are those that the tests have.
_PROGRAMS = {
    "sojourn": '"{python}" -m sojourn "$@"',
    "terraform": '"{python}" -m tests.docs.approving "$@"',
    "python3": '"{python}" "$@"',
    "pip": '"{python}" -m tests.docs.pip "$@"',
    "make": '{make} "$@" VENV="$HOME/made"',
}
_LIKE_A_CLONE = ("LICENSE", "Makefile", "README.md", "examples", "pyproject.toml", "requirements")


class Said:
    """What a line printed, standard error included, and its exit code."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text


class Reader:
    """A shell that remembers folder and variables from line to line."""

    def __init__(self, folder: Path, mark: str) -> None:
        self._mark = mark
        self.home = folder / "home"
        self.cwd = self.home / "project"
        self.cwd.mkdir(parents=True)
        self.clone = folder / "clone"
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self._programs(folder / "bin")), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *(p for p in sys.path if p)]),
            "CHECKPOINT_DISABLE": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",  # nobody listens there
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip means the opposite
            "PIP_IGNORE_INSTALLED": "1",  # what PYTHONPATH has is not the venv's
            "PIP_NO_CACHE_DIR": "1",
            MARK: mark,
        }
        self.same: dict[str, str] = {}  # what is put here for what a page shows
        self.until_closed = ExitStack()
        self._bash: subprocess.Popen[str] | None = None

    def _programs(self, folder: Path) -> Path:
        folder.mkdir()
        for name, line in _PROGRAMS.items():
            text = line.format(python=sys.executable, make=shutil.which("make"))
            (folder / name).write_text(f"#!/bin/sh\nexec {text}\n")
            (folder / name).chmod(0o755)
        return folder

    def in_a_clone(self) -> None:
        """Start in a copy of the repository, whose `make` has been at work."""
        self.make_clone()
        self.cwd = self.clone

    def make_clone(self) -> None:
        self.clone.mkdir()
        for name in _LIKE_A_CLONE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, self.clone / name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", self.clone / "src", ignore=ignored)
        made = self.home / "made"
        made.mkdir()
        (made / "bin").symlink_to(Path(sys.executable).parent)
        (made / "install.done").touch()

    def file(self, name: str, text: str) -> Path:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def type(self, line: str) -> Said:
        """Have the shell run a line, to its end."""
        bash = self._started()
        assert bash.stdin
        assert bash.stdout
        bash.stdin.write(f"{{ {line}\n}} </dev/null; printf '\\n{_END} %s %s\\n' $? \"$PWD\"\n")
        bash.stdin.flush()
        text: list[str] = []
        for shown in bash.stdout:
            if shown.startswith(_END):
                code, folder = shown.removeprefix(_END).split(maxsplit=1)
                self.cwd = Path(folder.rstrip("\n"))
                return Said(int(code), "".join(text).removesuffix("\n"))
            text.append(shown)
        raise AssertionError(f"the shell ended: {''.join(text)}")

    def _started(self) -> subprocess.Popen[str]:
        if self._bash is None:
            self._bash = subprocess.Popen(
                ["bash", "--norc"],
                cwd=self.cwd,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return self._bash

    def interrupted(self, line: str, after: str) -> Said:
        """Run a line of one command, and press Ctrl-C as soon as it has printed a line."""
        command = subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert command.stdout
        text = ""
        for shown in command.stdout:
            text += shown
            if shown.rstrip("\n") == after:
                command.send_signal(signal.SIGINT)
        command.stdout.close()
        return Said(command.wait(), text)

    def normal(self, text: str) -> str:
        """With what differs from run to run, and from home to home, made the same."""
        for pattern, instead in _NORMAL:
            text = re.sub(pattern, instead, text)
        for here, shown in self.same.items():
            text = text.replace(here, shown)
        return text.replace(str(self.home), "/home/you")

    def tasks(self) -> list[str]:
        folder = self.home / ".local/share/sojourn/local"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def close(self) -> None:
        """Delete the tasks, and end what is left."""
        if self.tasks():
            self.type(f"sojourn delete --no-pull --force {' '.join(self.tasks())}")
        if self._bash:
            self._bash.communicate()
        self.until_closed.close()
        with suppress(AssertionError):
            until(lambda: not marked(self._mark), 10)
        left = marked(self._mark)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert not left


_NORMAL = [
    (r"\btpi-[a-z0-9-]+-[a-z0-9]{8}-[a-z0-9]{8}\b", "tpi-ID"),
    (r"\b[a-z0-9]{16}-[0-9a-f]{16}\b", "MACHINE"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"created \w+ ago", "created AGE ago"),
    (r"\bran \d\w*", "ran TIME"),
    (rf"\b({'|'.join(ADJECTIVES)})-({'|'.join(COLOURS)})-({'|'.join(ANIMALS)})\b", "NAME"),
]
