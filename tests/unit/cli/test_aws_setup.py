"""AWS when it is not set up, when the login is over, and when its SDK is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from sojourn.core.installation import install_command
from tests.simcloud.aws.account import SimAWS
from tests.unit.cli.shell import Shell

_SPY = """
import atexit, sys
atexit.register(lambda: print("loaded", *sys.modules, file=sys.stderr))
from sojourn.cli import main
main()
"""
_WITHOUT_BOTO = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        gone = name.partition(".")[0] in ("boto3", "botocore")
        return None if gone else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Finder]
from sojourn.cli import main
main()
"""
_KEYS = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}


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
def account(shell: Shell) -> Iterator[SimAWS]:
    with SimAWS() as account:
        shell.environment |= account.environment()
        yield account
        for name in account.environment():
            del shell.environment[name]


@pytest.mark.parametrize("args", [["list"], ["gc"], ["status", "nothing"], ["doctor"]])
def test_who_does_not_use_aws_does_not_load_its_sdk(shell: Shell, args: list[str]) -> None:
    loaded = set(_python(shell, _SPY, *args).stderr.splitlines()[-1].split())
    assert "loaded" in loaded
    assert not loaded & {"boto3", "botocore", "sojourn.clouds.aws.cloud"}


@pytest.mark.parametrize("args", [["list"], ["gc"]])
def test_a_login_that_is_over_does_not_hide_other_clouds(
    shell: Shell, account: SimAWS, args: list[str]
) -> None:
    account.fail("s3:ListBuckets", code="ExpiredToken", status=400, times=9)
    task = shell.detached("true")
    shell.ok("logs", "--follow", task)
    done = shell(*args)
    assert done.returncode == 0
    assert shell.name(task) in done.stdout
    assert "Could not reach aws" in done.stderr
    assert "aws sso login" in done.stderr


def test_a_task_is_found_although_the_login_to_aws_is_over(shell: Shell, account: SimAWS) -> None:
    account.fail("s3:ListBuckets", code="ExpiredToken", status=400, times=9)
    task = shell.detached("true")
    assert shell("status", task[:-1]).stdout.startswith(task)


@pytest.mark.parametrize("id", ["tpi-a", "tpi-cc-1bvgxcyb-ylhzsit6"])
def test_a_task_that_may_be_where_nobody_could_look_is_not_said_to_be_gone(
    shell: Shell, account: SimAWS, id: str
) -> None:
    for operation in ("s3:ListBuckets", "s3:HeadBucket"):
        account.fail(operation, code="ExpiredToken", status=400, times=9)
    done = shell("status", id)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Could not find task {id}. Could not reach aws: ")
    assert "aws sso login" in done.stderr
    assert shell.rows("status", id)[0]["error"] == "AuthError"
    listed = shell("list")
    assert "No tasks found." not in listed.stderr
    assert "No tasks found in the clouds that could be reached." in listed.stderr


def test_an_endpoint_that_is_none_is_told(shell: Shell) -> None:
    shell.environment |= {**_KEYS, "AWS_ENDPOINT_URL": "127.0.0.1:9"}
    done = shell("run", "--cloud", "aws", "--", "true")
    assert "Traceback" not in done.stderr
    assert "Invalid endpoint: 127.0.0.1:9" in done.stderr
    assert "Check AWS_ENDPOINT_URL" in done.stderr


def test_a_task_of_this_computer_is_found_by_its_id_without_asking_aws(shell: Shell) -> None:
    shell.environment |= _KEYS
    task = shell.detached("true")
    done = _python(shell, _SPY, "status", task)
    assert done.stdout.startswith(task)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert not loaded & {"boto3", "botocore"}
    shell.ok("delete", task)


def test_a_run_on_aws_without_its_sdk_says_what_to_install(shell: Shell) -> None:
    shell.environment |= _KEYS
    done = _python(shell, _WITHOUT_BOTO, "run", "--cloud", "aws", "--", "true")
    assert done.returncode != 0
    assert "AWS needs boto3, which is not installed" in done.stderr
    assert f"Run `{install_command('aws')}`" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_tells_what_aws_needs_and_is_not_there(shell: Shell) -> None:
    done = _python(shell, _SPY, "doctor")
    assert "aws boto3" not in done.stdout  # nobody uses it here
    shell.environment |= {**_KEYS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    assert "ok    aws boto3" in _python(shell, _SPY, "doctor").stdout
    hidden = "from importlib import metadata\nreal = metadata.version\n"
    hidden += "def version(name):\n    if name == 'boto3': raise metadata.PackageNotFoundError\n"
    hidden += "    return real(name)\nmetadata.version = version\n"
    said = _python(shell, hidden + _WITHOUT_BOTO, "doctor").stdout
    assert f"not installed, required to run tasks; run `{install_command('aws')}`" in said


def test_a_list_without_the_sdk_of_aws_is_of_the_other_clouds(shell: Shell) -> None:
    shell.environment |= _KEYS
    done = _python(shell, _WITHOUT_BOTO, "list")
    assert (done.returncode, done.stdout.strip()) == (0, "")
    assert "No tasks found." in done.stderr
