"""Starting costs little: nothing is loaded that is not needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.cli.shell import Shell

_HEAVY = {
    "asyncio",
    "boto3",
    "botocore",
    "concurrent.futures",
    "google",
    "grpc",
    "hashlib",
    "hcl2",
    "http.client",
    "lark",
    "msgspec",
    "multiprocessing",
    "obstore",
    "pathspec",
    "rich",
    "secrets",
    "ssl",
    "subprocess",
    "tqdm",
    "urllib.request",
    "yaml",
}


def _loaded(shell: Shell, *args: str) -> set[str]:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr))\n"
        "from sojourn.cli import main\n"
        "main()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *args],
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 0
    loaded = result.stderr.splitlines()[-1].split()
    assert loaded[0] == "loaded"
    return set(loaded)


def _of_click() -> set[str]:
    """What click itself loads: with Python 3.10 that is more than later."""
    code = "import sys; import click; print(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["list"], []])
def test_nothing_heavy_is_loaded(shell: Shell, args: list[str]) -> None:
    loaded = _loaded(shell, *(args or ["--help"]))
    assert not (loaded - _of_click()) & _HEAVY
    assert not {name for name in loaded if name.startswith("sojourn.storage")}


def test_help_needs_no_engine(shell: Shell) -> None:
    loaded = _loaded(shell, "--help")
    assert {name for name in loaded if name.startswith("sojourn")} == {
        "sojourn",
        "sojourn.cli",
        "sojourn.cli.app",
        "sojourn.cli.interrupts",
        "sojourn.cli.texts",
        "sojourn.core",
        "sojourn.core.errors",
        "sojourn.core.lazy",
        "sojourn.core.quickstart",
    }


def test_a_list_of_no_tasks_needs_no_engine_either(shell: Shell) -> None:
    loaded = _loaded(shell, "list")
    assert "sojourn.api" in loaded
    assert not {name for name in loaded if name.startswith("sojourn.engine.")}


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its dataclasses ask for annotations there")
@pytest.mark.parametrize("args", [["--help"], ["list"]])
def test_what_is_imported_for_one_function_is_not_loaded(shell: Shell, args: list[str]) -> None:
    assert "inspect" not in _loaded(shell, *args)


@pytest.mark.parametrize("args", [["run", "--help"], ["logs", "--help"], ["delete", "--help"]])
def test_help_of_a_command(shell: Shell, args: list[str]) -> None:
    assert not (_loaded(shell, *args) - _of_click()) & _HEAVY


def test_the_library_loads_nothing() -> None:
    code = "import sys; import sojourn; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in run.stdout.split() if name.startswith("sojourn")}
    assert ours == {"sojourn"}
