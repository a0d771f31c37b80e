"""Tasks go on when Sojourn is another version: one stores what the other finishes.

The former one comes out of this repository's history.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import patience, until

FORMER = "c7c93e6"  # before workloads: the last one without them
_ROOT = Path(__file__).parents[2]
_MAIN = "import sys; sys.argv[0] = 'sojourn'; from sojourn.cli import main; main()"
# The second attempt of each rank finds what the first one stored, and ends.
_SCRIPT = """\
#!/bin/sh
mkdir -p out
echo "$SOJOURN_ATTEMPT" >>out/attempts
${SOJOURN_MARK:-:} "$SOJOURN_ATTEMPT"  # a gang goes back to what all of its ranks have stored
echo "attempt $SOJOURN_ATTEMPT"
[ "$SOJOURN_ATTEMPT" -gt 1 ] || sleep 300
"""
KINDS = {
    "script": [],
    "service": ["--stay"],
    "gang": ["--gang", "--parallelism", "2"],
}


@pytest.fixture(scope="session")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the former version."""
    command = ["git", "-C", str(_ROOT), "archive", FORMER, "src/sojourn"]
    packed = subprocess.run(command, capture_output=True)
    if packed.returncode:
        pytest.skip(f"needs commit {FORMER}; run `git fetch --unshallow`")
    folder = tmp_path_factory.mktemp("former")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


class Shell:
    """The command line of both versions, in one home."""

    def __init__(self, folder: Path, former: Path) -> None:
        self.folder = folder
        self._former = former
        names = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CI", "GITHUB_", "TPI_", "PYTHONPATH"))
        } | {name: str(folder / name) for name in names}

    def __call__(self, version: str, *arguments: str) -> str:
        environment = dict(self._environment)
        if version == "former":
            environment["PYTHONPATH"] = str(self._former)
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=patience(60),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path, former: Path) -> Iterator[Shell]:
    (tmp_path / "work").mkdir()
    (tmp_path / "task.sh").write_text(_SCRIPT)
    found = Shell(tmp_path, former)
    yield found
    found("present", "delete", "--all", "--yes", "--no-pull", "--force")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "second"), [("former", "present"), ("present", "former")])
def test_what_one_version_began_the_other_finishes(
    shell: Shell, first: str, second: str, kind: str
) -> None:
    ranks = 2 if kind == "gang" else 1
    where = ["--workdir", "work", "--output", "out"]
    shell(first, "create", "--name", "both", *where, *KINDS[kind], "task.sh")
    until(lambda: shell(first, "logs", "both").count("attempt 1") == ranks)
    assert json.loads(shell(second, "status", "both", "--json").splitlines()[0])
    shell(second, "stop", "both")
    shell(second, "start", "both")
    until(lambda: shell(first, "logs", "both").count("attempt 2") == ranks)
    if kind != "service":
        until(lambda: "succeeded" in shell(first, "status", "both"))
    shell(second, "delete", "both")
    attempts = sorted((shell.folder / "work" / "out").iterdir())
    assert [path.read_text() for path in attempts] == ["1\n2\n"]
