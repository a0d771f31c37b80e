"""`sojourn terraform`: what it says, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sojourn.cli.app import cli
from sojourn.core.errors import MissingDependency
from sojourn.core.installation import install_command
from sojourn.terraform.install import PROVIDER_VERSION, platforms
from tests.unit.cli.shell import Shell, stubs

_HOSTS = ("registry.terraform.io", "registry.opentofu.org", "github.com")


@pytest.fixture
def ready(shell: Shell) -> Shell:
    stubs(shell)
    return shell


def _wrappers(shell: Shell, version: str = PROVIDER_VERSION) -> list[Path]:
    plugins = shell.home / ".terraform.d" / "plugins"
    return [
        plugins / host / "iterative/iterative" / version / name / _program(version)
        for host in _HOSTS
        for name in platforms()
    ]


def _program(version: str) -> str:
    return f"terraform-provider-iterative_v{version}"


@pytest.mark.parametrize("name", ["install", "uninstall"])
def test_help_has_an_example(shell: Shell, name: str) -> None:
    shown = shell.ok("terraform", name, "--help")
    assert shown.startswith(f"Usage: sojourn terraform {name} ")
    assert f"\n  sojourn terraform {name}\n" in shown
    assert "--json" in shown


def test_it_says_what_is_where_and_what_is_next(ready: Shell) -> None:
    shown = ready.ok("terraform", "install")
    assert shown.startswith(f"Installed provider version {PROVIDER_VERSION}\n")
    for path in _wrappers(ready):
        assert str(path) in shown
    assert sys.executable in shown
    assert 'iterative = { source = "iterative/iterative" }' in shown
    assert "terraform init -upgrade" in shown
    assert "remove that block" not in shown

    again = ready.ok("terraform", "install")
    assert again.startswith(f"Already installed: provider version {PROVIDER_VERSION}\n")
    assert "made" not in again

    removed = ready.ok("terraform", "uninstall").splitlines()
    assert {f"Removed {path}" for path in _wrappers(ready)} < set(removed)
    assert list(ready.home.iterdir()) == []
    nothing = ready("terraform", "uninstall")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr == "Nothing to remove.\n"


def test_another_version(ready: Shell) -> None:
    shown = ready.ok("terraform", "install", "--version", "0.11.20")
    assert all(path.exists() for path in _wrappers(ready, "0.11.20"))
    assert "remove that block from it" in shown
    ready.ok("terraform", "uninstall")


@pytest.mark.parametrize("version", ["", "0.11", "v0.11.20", "0.11.20-beta", "00.1.2", "../../x"])
def test_a_version_that_is_none(ready: Shell, version: str) -> None:
    result = ready("terraform", "install", f"--version={version}")
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        result.stderr
        == f"Error: version: must be three numbers, such as 0.11.20, got {version!r}\n"
    )
    assert list(ready.home.iterdir()) == []


def test_a_foreign_file(ready: Shell) -> None:
    path = _wrappers(ready)[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF" + bytes(1996))
    refused = ready("terraform", "install")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        f"{path} already exists and is not Sojourn's: a compiled program of 2,000 bytes"
        in refused.stderr
    )
    assert "--force" in refused.stderr
    row = json.loads(ready("terraform", "install", "--json").stdout)
    assert row["error"] == "Conflict"

    assert "replaced" in ready.ok("terraform", "install", "--force")
    ready.ok("terraform", "uninstall")


def test_something_else_in_the_package_folder(ready: Shell) -> None:
    other = _wrappers(ready)[0].with_name("README.md")
    other.parent.mkdir(parents=True)
    other.touch()
    result = ready("terraform", "install")
    assert result.returncode == 0
    shown = f"~/{other.relative_to(ready.home)}"
    assert result.stderr.startswith(f"Warning: Unexpected file {shown}: lock files")
    ready.ok("terraform", "uninstall")
    other.unlink()


def test_a_home_that_cannot_be_used(ready: Shell) -> None:
    (ready.home / ".terraform.d").symlink_to("/dev/null")
    result = ready("terraform", "install")
    assert result.returncode == 1
    assert "Not a directory" in result.stderr
    (ready.home / ".terraform.d").unlink()


@pytest.mark.parametrize("absent", ["grpc", "google", "cryptography"])
def test_the_extra_is_missing(absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> object:
        if name == "google.protobuf" and absent == "google":
            raise ModuleNotFoundError("No module named 'google'", name="google")
        return None if name == absent else object()

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sojourn.terraform.install.find_spec", find_spec)
    result = CliRunner().invoke(cli, ["terraform", "install"])
    assert isinstance(result.exception, MissingDependency)
    assert f"`{install_command('terraform')}`" in result.exception.hint
    assert list(tmp_path.iterdir()) == []


def test_the_names_of_the_extra_are_right() -> None:
    """Where it is installed, it is found."""
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("the extra `terraform` is not installed: pip install '.[terraform]'")
    from sojourn.terraform.install import check_extra

    check_extra()


def test_what_was_installed_is_told_in_lines(shell: Shell) -> None:
    stubs(shell)
    told = shell.ok("terraform", "install").splitlines()
    shell.ok("terraform", "uninstall")
    assert told[0].startswith("Installed provider version ")
    assert [line.split()[0] for line in told[1:3]] == ["Terraform", "OpenTofu"]
    assert not any("(" in line for line in told[1:3])
