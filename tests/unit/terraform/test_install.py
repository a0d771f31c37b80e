"""Where the provider is put, and how its wrapper behaves."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.core.errors import Conflict, InvalidInput, SojournError
from sojourn.terraform import install as module
from sojourn.terraform.install import (
    OLD_VERSIONS,
    PROVIDER_VERSION,
    Change,
    check_extra,
    install,
    platforms,
    uninstall,
)
from tests.terraform.project import tool_program

_HOSTS = {
    "Terraform": "registry.terraform.io",
    "OpenTofu": "registry.opentofu.org",
    "either": "github.com",
}
_AWKWARD = """it's a "folder" $HOME `x` \\n é"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SOJOURN_PYTHON", raising=False)
    return folder


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# Where things are put.


def test_both_tools_find_it(home: Path) -> None:
    done = install()
    assert done.version == PROVIDER_VERSION == "0.11.101"
    program = f"terraform-provider-iterative_v{PROVIDER_VERSION}"
    assert {(placed.tool, placed.path) for placed in done.wrappers} == {
        (
            tool,
            home / ".terraform.d/plugins" / host / "iterative/iterative/0.11.101" / name / program,
        )
        for tool, host in _HOSTS.items()
        for name in platforms()
    }
    for placed in done.wrappers:
        assert placed.change is Change.MADE
        assert os.access(placed.path, os.X_OK)
        assert list(placed.path.parent.iterdir()) == [placed.path]
        assert placed.beside == ()
    assert done.record == home / ".terraform.d/sojourn/python"
    assert done.record.read_text() == f"{sys.executable}\n"
    assert len(_tree(home)) == len(done.wrappers) * (1 + len(OLD_VERSIONS)) + 1


def test_the_wrapper_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = set()
    for name in ("one", _AWKWARD):
        monkeypatch.setenv("HOME", str(tmp_path / name))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name / "data"))
        monkeypatch.setattr(sys, "executable", f"/opt/{name}/bin/python")
        for version in (PROVIDER_VERSION, "0.11.20"):
            contents |= {placed.path.read_bytes() for placed in install(version=version).wrappers}
    assert len(contents) == 1


def test_lock_files_stay_valid() -> None:
    """They have a hash of the wrapper: whoever changes it has to raise `PROVIDER_VERSION`."""
    digest = hashlib.sha256(Path(module.__file__).with_name("wrapper.sh").read_bytes()).hexdigest()
    assert (PROVIDER_VERSION, digest) == (
        "0.11.101",
        "cba52c4e01c141c8f544f101d683d85b666478c86f287553fa8ee71202d375c7",
    )


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "x86_64", ("linux_amd64",)),
        ("linux", "aarch64", ("linux_arm64",)),
        ("linux", "i686", ("linux_386",)),
        ("linux", "armv7l", ("linux_arm",)),
        ("darwin", "arm64", ("darwin_arm64", "darwin_amd64")),
        ("darwin", "x86_64", ("darwin_arm64", "darwin_amd64")),
    ],
)
def test_platforms(
    system: str, machine: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert platforms() == expected


@pytest.mark.parametrize(("system", "machine"), [("win32", "AMD64"), ("linux", "riscv64")])
def test_a_platform_without_provider(
    system: str, machine: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(SojournError, match=f"does not support .* on {machine}") as refused:
        install()
    assert "Windows Subsystem for Linux" in refused.value.hint
    assert _tree(home) == {}


@pytest.mark.parametrize("executable", ["", "/opt/two\nlines/python"])
def test_a_python_that_cannot_be_recorded(
    executable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(SojournError, match="provider cannot use this Python"):
        install()
    assert _tree(home) == {}


@pytest.mark.parametrize("value", ["", "relative"])
def test_without_a_home(
    value: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", value)
    for verb in (install, uninstall):
        with pytest.raises(
            SojournError, match=f"Could not find your home folder: HOME is '{value}'"
        ):
            verb()
    assert list(tmp_path.iterdir()) == [home]


@pytest.mark.parametrize(
    "version", ["", "1", "1.2", "1.2.3.4", "1.2.x", "v1.2.3", "1.2.3\n", "٣.1.2"]
)
def test_versions_are_three_numbers(version: str, home: Path) -> None:
    with pytest.raises(InvalidInput, match="three numbers"):
        install(version=version)
    assert _tree(home) == {}


def test_missing_modules_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(SojournError, match="needs grpcio, protobuf, cryptography: not installed"):
        check_extra()


# Installing again.


def test_again_changes_nothing(home: Path) -> None:
    first = install()

    def stamps() -> list[tuple[int, int]]:
        found = [placed.path.stat() for placed in first.wrappers]
        return [(each.st_ino, each.st_mtime_ns) for each in found]

    before = stamps()
    again = install()
    assert first.changed
    assert not again.changed
    assert {placed.change for placed in again.wrappers} == {Change.UNCHANGED}
    assert stamps() == before


def test_another_python_replaces_the_record_only(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    monkeypatch.setattr(sys, "executable", "/opt/other/bin/python")
    again = install()
    assert again.record_change is Change.REPLACED
    assert {placed.change for placed in again.wrappers} == {Change.UNCHANGED}
    assert again.record.read_text() == "/opt/other/bin/python\n"


def test_an_older_or_damaged_wrapper_is_replaced(home: Path) -> None:
    older, not_executable, *_ = (placed.path for placed in install().wrappers)
    wrapper = older.read_bytes()
    older.write_bytes(wrapper[:60] + b"exit 3\n")
    not_executable.chmod(0o644)
    again = install()
    assert [placed.change for placed in again.wrappers[:2]] == [Change.REPLACED] * 2
    for path in (older, not_executable):
        assert path.read_bytes() == wrapper
        assert os.access(path, os.X_OK)


def test_a_failure_leaves_the_old_file_and_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    before = _tree(home)

    def fail(*paths: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(sys, "executable", "/opt/other/bin/python")
    with pytest.raises(OSError, match="no space"):
        install()
    assert _tree(home) == before


# What is not ours.


def test_a_foreign_file_is_replaced_by_force_only(home: Path) -> None:
    first, second, *_ = (placed.path for placed in install().wrappers)
    uninstall()
    second.parent.mkdir(parents=True)
    second.write_bytes(b"\x7fELF and so on")
    with pytest.raises(
        Conflict, match="a compiled program of 14 bytes, possibly Terraform Provider"
    ):
        install()
    assert second.read_bytes() == b"\x7fELF and so on"
    assert not first.exists(), "everything is checked before anything is made"
    assert install(force=True).wrappers[1].change is Change.REPLACED


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_in_the_way_is_named(kind: str, home: Path) -> None:
    path = install().wrappers[0].path
    path.unlink()
    if kind == "file":
        path.write_text("hello")
    elif kind == "link":
        path.symlink_to("/nowhere")
    else:
        path.mkdir()
    words = {"file": "a file of 5 bytes", "link": "a link to /nowhere", "folder": "a folder"}
    with pytest.raises(Conflict, match=words[kind]):
        install()
    if kind == "folder":
        with pytest.raises(Conflict, match="Move it and try again"):
            install(force=True)
    else:
        install(force=True)
        assert path.is_file()
        assert not path.is_symlink()


def test_others_in_the_package_folder_are_told(home: Path) -> None:
    path = install().wrappers[0].path
    path.with_name("LICENSE").touch()
    assert install().wrappers[0].beside == (path.with_name("LICENSE"),)


def test_uninstall_removes_ours_and_nothing_else(home: Path) -> None:
    plugins = home / ".terraform.d" / "plugins"
    name = platforms()[0]
    others = [
        plugins / "registry.terraform.io/hashicorp/null/3.2.1" / name / "terraform-provider-null",
        plugins / f"registry.terraform.io/iterative/iterative/0.11.19/{name}"
        "/terraform-provider-iterative_v0.11.19",
        plugins / "registry.terraform.io/iterative/iterative/0.11.20" / name / "README.md",
        home / ".terraform.d" / "credentials.tfrc.json",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not ours")
    before = _tree(home)
    for version in (PROVIDER_VERSION, "0.11.20", "1.0.0"):
        install(version=version)
    part = plugins / "registry.opentofu.org/iterative/iterative/.sojourn-x.part"
    part.touch()  # of an installation that was killed

    done = uninstall()
    assert len(done.files) - len(done.old) == 2 * len(_HOSTS) * len(platforms()) + 2
    assert part in done.files
    assert plugins / "registry.opentofu.org" in done.folders
    assert _tree(home) == before
    assert not (home / ".terraform.d" / "sojourn").exists()
    assert not (plugins / "registry.opentofu.org").exists()
    assert not (plugins / "github.com").exists()


def test_uninstall_leaves_no_folder(home: Path) -> None:
    install()
    uninstall()
    assert list(home.iterdir()) == []
    nothing = uninstall()
    assert (nothing.files, nothing.folders) == ((), ())


# The wrapper.

_MAIN = """
import os, signal, sys, time
import grpc

def main():
    print("handshake", grpc.NAME, *sys.argv[1:], flush=True)
    if os.environ.get("WAIT"):
        time.sleep(60)
    return int(os.environ.get("CODE", "0"))
"""


class Wrapper:
    """An installed wrapper, and a stand-in for Sojourn below `packages`."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.path = install().wrappers[0].path
        self.record = home / ".terraform.d" / "sojourn" / "python"
        self.cwd = folder / "project"
        self.cwd.mkdir()
        self.packages = folder / "packages"
        main = self.packages / "sojourn" / "terraform" / "__main__.py"
        main.parent.mkdir(parents=True)
        main.write_text(_MAIN)
        (self.packages / "sojourn" / "__init__.py").touch()
        (main.parent / "__init__.py").touch()
        (self.packages / "grpc.py").write_text("NAME = 'real'\n")
        self.environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.packages),
        }

    def __call__(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *args],
            cwd=self.cwd,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=30,
        )

    def refused(self, **environment: str) -> str:
        """The line that Terraform shows: the first one on standard output."""
        result = self(**environment)
        assert result.returncode == 1
        (line,) = result.stdout.splitlines()
        assert result.stderr.splitlines()[0] == line
        assert line.startswith("Sojourn: ")
        return line


@pytest.fixture
def wrapper(tmp_path: Path, home: Path) -> Wrapper:
    return Wrapper(tmp_path, home)


def _python_at(path: Path, *options: str) -> Path:
    """Another Python: the one that runs this, by another name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nFAKE=yes exec "{sys.executable}" {" ".join(options)} "$@"\n')
    path.chmod(0o755)
    return path


def test_it_runs_the_provider(wrapper: Wrapper) -> None:
    result = wrapper("an argument", "--x")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "handshake real an argument --x\n"
    assert list(wrapper.path.parent.iterdir()) == [wrapper.path], "Terraform hashes this folder"


def test_the_exit_code_goes_through(wrapper: Wrapper) -> None:
    assert wrapper(CODE="7").returncode == 7


def test_signals_go_through_and_no_shell_stays(wrapper: Wrapper) -> None:
    with subprocess.Popen(
        [wrapper.path],
        cwd=wrapper.cwd,
        env={**wrapper.environment, "WAIT": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "handshake real\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == -signal.SIGTERM


@pytest.mark.parametrize("safe", ["", "1"])
def test_files_in_the_current_folder_are_not_modules(wrapper: Wrapper, safe: str) -> None:
    names = ("sys", "os", "time", "signal", "grpc", "sojourn", "sitecustomize", "usercustomize")
    for name in names:
        (wrapper.cwd / f"{name}.py").write_text("import posix; posix._exit(99)\n")
    (wrapper.cwd / "sojourn").mkdir()
    (wrapper.cwd / "sojourn" / "__init__.py").write_text("import posix; posix._exit(98)\n")
    result = wrapper(PYTHONSAFEPATH=safe)
    assert (result.returncode, result.stdout) == (0, "handshake real\n")


@pytest.mark.parametrize("how", ["recorded", "overridden"])
def test_a_python_with_an_awkward_path(wrapper: Wrapper, tmp_path: Path, how: str) -> None:
    python = _python_at(tmp_path / _AWKWARD / "-bin " / "python 3")
    if how == "recorded":
        wrapper.record.write_text(f"{python}\n")
        result = wrapper()
    else:
        result = wrapper(SOJOURN_PYTHON=str(python))
    assert (result.returncode, result.stdout) == (0, "handshake real\n")
    wrapper.record.write_text(f"{python}-gone\n")
    assert f"is gone: {python}-gone. Run `sojourn terraform install`" in wrapper.refused()


def test_an_awkward_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / _AWKWARD
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert Wrapper(tmp_path, home)().stdout == "handshake real\n"


def test_the_variable_may_be_the_name_of_a_program(wrapper: Wrapper, tmp_path: Path) -> None:
    _python_at(tmp_path / "bin" / "mypython")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert wrapper(SOJOURN_PYTHON="mypython", PATH=path).returncode == 0
    line = wrapper.refused(SOJOURN_PYTHON="mypython")
    assert line == "Sojourn: SOJOURN_PYTHON is mypython, and there is no such program."


def test_no_python_is_recorded(wrapper: Wrapper) -> None:
    wrapper.record.unlink()
    line = wrapper.refused()
    assert f"there is no {wrapper.record}. Run `sojourn terraform install`" in line
    del wrapper.environment["HOME"]
    assert "Run `sojourn terraform install`" in wrapper.refused()


@pytest.mark.parametrize("kind", ["empty", "folder", "not executable"])
def test_the_record_names_no_program(wrapper: Wrapper, tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch(mode=0o644)
    named = {"empty": "", "folder": str(tmp_path), "not executable": str(tmp_path / "file")}
    wrapper.record.write_text(named[kind])
    assert "is gone" in wrapper.refused()


def test_a_python_without_sojourn(wrapper: Wrapper, tmp_path: Path) -> None:
    python = _python_at(tmp_path / "bare", "-I", "-S")
    wrapper.record.write_text(f"{python}\n")
    line = wrapper.refused()
    assert "cannot run the provider: ModuleNotFoundError: No module named 'sojourn'." in line
    assert line.endswith("Run `sojourn terraform install` where Sojourn is installed.")


def test_a_python_without_the_extra(wrapper: Wrapper) -> None:
    (wrapper.packages / "grpc.py").write_text("import not_there\n")
    line = wrapper.refused()
    assert f"{sys.executable} cannot run the provider: ModuleNotFoundError: No module" in line
    assert "Run `sojourn terraform install`" in line


def test_a_provider_that_does_not_start(wrapper: Wrapper) -> None:
    (wrapper.packages / "grpc.py").write_text("raise TypeError('wrong\\n  version')\n")
    assert "cannot run the provider: TypeError: wrong version." in wrapper.refused()


# With the tool itself.

_TOOLS = {"Terraform": "terraform", "OpenTofu": "tofu"}


class Tool:
    """Terraform or OpenTofu, in a folder with a main.tf, without configuration and network."""

    def __init__(self, name: str, folder: Path, home: Path) -> None:
        self.program = tool_program(_TOOLS[name])
        if not self.program:
            pytest.skip(f"install {_TOOLS[name]} to enable it: it is not in PATH")
        self.cwd = folder / "project"
        self.cwd.mkdir()
        (folder / "empty.tfrc").touch()
        self.lock = self.cwd / ".terraform.lock.hcl"
        self.environment = {
            "CHECKPOINT_DISABLE": "1",
            "HOME": str(home),
            "HTTPS_PROXY": "http://127.0.0.1:9",  # nobody listens there
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path.cwd()),
            "TF_CLI_CONFIG_FILE": str(folder / "empty.tfrc"),
        }

    def asks_for(self, version: str, source: str = "iterative/iterative") -> None:
        (self.cwd / "main.tf").write_text(
            "terraform {\n  required_providers {\n    iterative = {\n"
            f'      source  = "{source}"\n      version = "{version}"\n'
            '    }\n  }\n}\nprovider "iterative" {}\n'
        )

    def __call__(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.program, *args, "-no-color"],
            cwd=self.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def init(self, *args: str) -> None:
        result = self("init", *args)
        assert result.returncode == 0, result.stderr


@pytest.fixture(params=list(_TOOLS))
def tool(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Tool:
    return Tool(request.param, tmp_path, home)


@pytest.mark.parametrize("version", [">= 0.8", "~> 0.11", "~> 0.11.20"])
def test_init_finds_it(tool: Tool, version: str) -> None:
    install()
    tool.asks_for(version)
    tool.init()
    assert f'"{PROVIDER_VERSION}"' in tool.lock.read_text()


@pytest.mark.parametrize("version", ["0.5.1", "0.11.20", "~> 0.9.0"])
def test_init_finds_it_by_a_number_of_the_old_provider(tool: Tool, version: str) -> None:
    install()
    tool.asks_for(version)
    tool.init()
    assert tool("validate").returncode == 0


def test_the_old_provider_itself_stays_where_it_is(home: Path) -> None:
    old = home / ".terraform.d/plugins/registry.terraform.io/iterative/iterative/0.5.1"
    program = old / platforms()[0] / "terraform-provider-iterative_v0.5.1"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"\x7fELF")
    install()
    assert [path for path in old.rglob("*") if path.is_file()] == [program]
    assert program.read_bytes() == b"\x7fELF"


def test_init_finds_it_by_the_address_of_a_clone(tool: Tool) -> None:
    install()
    tool.asks_for("~> 0.11", "github.com/iterative/iterative")
    tool.init("--upgrade")
    assert 'provider "github.com/iterative/iterative"' in tool.lock.read_text()
    assert tool("validate").returncode == 0


def test_the_lock_file_stays_valid(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    tool.asks_for("~> 0.11")
    tool.init()
    locked = tool.lock.read_text()
    uninstall()
    monkeypatch.setattr(sys, "executable", "/opt/other/bin/python")
    install()
    tool.init()
    # On a colleague's computer, that has the lock file by way of git.
    shutil.rmtree(tool.cwd / ".terraform")
    monkeypatch.setenv("HOME", str(tmp_path / "colleague"))
    tool.environment["HOME"] = str(tmp_path / "colleague")
    install()
    tool.init("-lockfile=readonly")
    assert tool.lock.read_text() == locked


def test_from_a_version_to_another(tool: Tool) -> None:
    install(version="0.11.50")
    tool.asks_for("~> 0.11.0")
    tool.init()
    uninstall()
    install()
    assert "0.11.50 is no longer" in " ".join(tool("init").stderr.split())
    tool.init("-upgrade")


def test_the_tool_shows_what_to_do(tool: Tool, home: Path) -> None:
    install()
    tool.asks_for("~> 0.11")
    tool.init()
    (home / ".terraform.d" / "sojourn" / "python").write_text("/gone/python\n")
    shown = " ".join(tool("validate").stderr.split())
    assert "is gone: /gone/python. Run `sojourn terraform install` where" in shown
