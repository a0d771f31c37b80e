"""Google Cloud when it is not set up, when a login is over, and when its libraries are missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from sojourn.core.installation import install_command
from tests.simcloud.gcp.account import SimGCP
from tests.unit.cli.shell import Shell

_SPY = """
import atexit, sys
atexit.register(lambda: print("loaded", *sys.modules, file=sys.stderr))
from sojourn.cli import main
main()
"""
# As if no distribution had a package `google`.
_WITHOUT = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        gone = name.partition(".")[0] == "google"
        return None if gone else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Finder]
from sojourn.cli import main
main()
"""
_OVER = {"code": "authError", "status": 401, "times": 99}


def _python(shell: Shell, code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=shell.environment,
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def account(shell: Shell) -> Iterator[SimGCP]:
    with SimGCP() as account:
        shell.environment |= account.environment()
        yield account
        for name in account.environment():
            del shell.environment[name]


@pytest.mark.parametrize("args", [["list"], ["status", "nothing"]])
def test_who_does_not_use_it_does_not_load_its_libraries(shell: Shell, args: list[str]) -> None:
    loaded = set(_python(shell, _SPY, *args).stderr.splitlines()[-1].split())
    assert "loaded" in loaded
    assert not loaded & {"google.auth", "httpx", "sojourn.clouds.gcp.cloud"}


def test_a_login_that_is_over_does_not_hide_other_clouds(shell: Shell, account: SimGCP) -> None:
    account.fail("*", **_OVER)  # type: ignore[arg-type]
    task = shell.detached("true")
    shell.ok("logs", "--follow", task)
    done = shell("list")
    assert done.returncode == 0
    assert shell.name(task) in done.stdout
    assert "Could not reach gcp" in done.stderr
    assert "gcloud auth application-default login" in done.stderr


def test_a_task_that_may_be_where_nobody_could_look_is_not_said_to_be_gone(
    shell: Shell, account: SimGCP
) -> None:
    account.fail("*", **_OVER)  # type: ignore[arg-type]
    done = shell("status", "tpi-cc-1bvgxcyb-ylhzsit6")
    assert done.returncode == 2
    assert "Could not find task tpi-cc-1bvgxcyb-ylhzsit6. Could not reach gcp: " in done.stderr


def test_a_run_without_its_libraries_says_what_to_install(shell: Shell) -> None:
    done = _python(shell, _WITHOUT, "run", "--cloud", "gcp", "--", "true")
    assert done.returncode != 0
    assert "Google Cloud needs google.auth, which is not installed" in done.stderr
    assert f"Run `{install_command('gcp')}`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_list_without_its_libraries_is_of_the_other_clouds(shell: Shell) -> None:
    shell.environment["GOOGLE_APPLICATION_CREDENTIALS"] = "/a/key.json"
    done = _python(shell, _WITHOUT, "list")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_is_none_is_told(shell: Shell, account: SimGCP) -> None:
    shell.environment["SOJOURN_GCP_ENDPOINT"] = "127.0.0.1:9"
    done = shell("run", "--cloud", "gcp", "--", "true")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "Invalid endpoint: 127.0.0.1:9" in done.stderr
    assert "Check SOJOURN_GCP_ENDPOINT" in done.stderr
