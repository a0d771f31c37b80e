"""Puts the provider where Terraform and OpenTofu find it, and takes it away again.

    HOME/.terraform.d/plugins/HOST/iterative/iterative/VERSION/PLATFORM/   a package folder
        terraform-provider-iterative_vVERSION                              wrapper.sh
    HOME/.terraform.d/sojourn/python                                       which Python to run

Both tools search this plugins folder before they ask a registry, and need no configuration for
it. Terraform has always done so; OpenTofu does since 1.7, and before if ~/.terraform.d exists.
Each has a registry of its own, so each has its own copy of the wrapper. A third one serves
`source = "github.com/iterative/iterative"`, as a main.tf for a clone of the old provider has it.

The record of the Python lies beside the plugins folder, and not below $XDG_DATA_HOME, so that
whoever finds the wrapper finds the record: nothing but HOME decides on both.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

from sojourn.core.errors import Conflict, InvalidInput, MissingDependency, SojournError

__all__ = [
    "OLD_VERSIONS",
    "PROVIDER_VERSION",
    "SOURCE",
    "Change",
    "Installed",
    "Placed",
    "Uninstalled",
    "check_extra",
    "install",
    "platforms",
    "recorded_python",
    "uninstall",
]

# Goes on from the last version of Terraform Provider Iterative, 0.11.x, so that constraints such
# as ">= 0.8" or "~> 0.11.20" in users' files still hold. Lock files have the hash of the wrapper
# under this version: whoever changes the wrapper has to raise it.
PROVIDER_VERSION = "0.11.101"
SOURCE = "iterative/iterative"
# Of Terraform Provider Iterative: a main.tf may ask for exactly one of them. No version of it had
# as many patches.
OLD_VERSIONS = tuple(f"0.{minor}.{patch}" for minor in range(1, 12) for patch in range(30))

# Which tool takes the provider from where, as the first part of its source address.
_HOSTS = {
    "Terraform": "registry.terraform.io",
    "OpenTofu": "registry.opentofu.org",
    "either": "github.com",
}
_PROGRAM = "terraform-provider-iterative"
_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")
_MARK = b"#!/bin/sh\n# sojourn-terraform-wrapper\n"
_PARTS = ".sojourn-*.part"
_MODULES = {"grpc": "grpcio", "google.protobuf": "protobuf", "cryptography": "cryptography"}
_ARCHITECTURES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i386": "386",
    "i486": "386",
    "i586": "386",
    "i686": "386",
    "armv6l": "arm",
    "armv7l": "arm",
    "armv8l": "arm",
}


class Change(str, Enum):
    """What became of a file."""

    MADE = "made"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Placed:
    """A wrapper, for one tool or either. `beside`: what else is in its folder and should not be."""

    tool: str
    path: Path
    change: Change
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Installed:
    """What `install` did. `python` is the program, `record` the file that names it.

    `old`: how many versions of the old provider are served as well.
    """

    version: str
    python: str
    record: Path
    record_change: Change
    wrappers: tuple[Placed, ...]
    old: int = 0

    @property
    def changed(self) -> bool:
        changes = {self.record_change, *(placed.change for placed in self.wrappers)}
        return changes != {Change.UNCHANGED}


@dataclass(frozen=True)
class Uninstalled:
    """What `uninstall` removed. `old`: those of `files` that served the old provider's versions."""

    files: tuple[Path, ...]
    folders: tuple[Path, ...]

    @property
    def old(self) -> tuple[Path, ...]:
        return tuple(path for path in self.files if path.parents[1].name in OLD_VERSIONS)


def check_extra() -> None:
    """Raise `MissingDependency` if this Python cannot run the provider."""
    missing = [package for module, package in _MODULES.items() if not _found(module)]
    if missing:
        names = ", ".join(missing)
        raise MissingDependency("terraform", f"The Terraform provider needs {names}: not installed")


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package that it should be in is not there
        return False


def install(*, version: str = PROVIDER_VERSION, force: bool = False) -> Installed:
    """Place the wrapper for both tools, at all addresses, and record the Python that runs this.

    Without another `version`, it is found under the numbers of the old provider, too.
    `force`: also in place of a file that is not our own. Before the first change everything is
    checked. Can be repeated.
    """
    if not _VERSION.fullmatch(version):
        raise InvalidInput("version", f"must be three numbers, such as 0.11.20, got {version!r}")
    python, targets = _python(), _targets(version)
    for _, path in targets:
        _check(path, force=force)
    wrapper = _wrapper()
    record = _record()
    record_change = _place(record, os.fsencode(python) + b"\n", mode=0o644, through=record.parent)
    placed = tuple(
        Placed(
            tool, path, _place(path, wrapper, mode=0o755, through=path.parents[2]), _beside(path)
        )
        for tool, path in targets
    )
    old = OLD_VERSIONS if version == PROVIDER_VERSION else ()
    for each in old:
        _place_unless_foreign(each, wrapper)
    return Installed(version, python, record, record_change, placed, len(old))


def _targets(version: str) -> list[tuple[str, Path]]:
    """Which tool finds this version at which path."""
    return [
        (tool, _provider(host) / version / name / f"{_PROGRAM}_v{version}")
        for tool, host in _HOSTS.items()
        for name in platforms()
    ]


def _place_unless_foreign(version: str, wrapper: bytes) -> None:
    """A folder that has the old provider itself is left as it is."""
    for _, path in _targets(version):
        found = list(path.parent.iterdir()) if path.parent.is_dir() else []
        if all(each == path and _is_ours(each) for each in found):
            _place(path, wrapper, mode=0o755, through=path.parents[2])


def uninstall() -> Uninstalled:
    """Remove our wrappers of all versions, the record, and the folders that are empty then."""
    files: list[Path] = []
    folders: list[Path] = []
    for path in _ours():
        with suppress(FileNotFoundError):
            path.unlink()
            files.append(path)
    for path in files:
        folders += _remove_empty(path.parent, _root())
    return Uninstalled(tuple(files), tuple(folders))


def recorded_python() -> str:
    """The Python that the provider is started with; empty if it is not installed."""
    try:
        python = os.environ.get("SOJOURN_PYTHON") or _record().read_text().rstrip("\n")
    except (OSError, ValueError, SojournError):
        return ""
    wrappers = [path for path in _ours() if path != _record() and _is_ours(path)]
    return python if wrappers else ""


def platforms() -> tuple[str, ...]:
    """This computer, as Terraform spells it: `linux_amd64`.

    A Mac with an Apple chip runs programs for Intel as well, and which of them Terraform or this
    Python is says nothing of the other: there it is both.
    """
    if sys.platform == "darwin":
        return ("darwin_arm64", "darwin_amd64")
    machine = platform.machine()
    architecture = _ARCHITECTURES.get(machine.lower())
    if sys.platform != "linux" or architecture is None:
        raise SojournError(
            f"The Terraform provider does not support {platform.system()} on {machine}",
            hint="Use macOS, or Linux on amd64, arm64, 386 or arm. "
            "On Windows, use the Windows Subsystem for Linux.",
        )
    return (f"linux_{architecture}",)


def _root() -> Path:
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):  # the wrapper has nothing else to go by
        raise SojournError(
            f"Could not find your home folder: HOME is {home!r}", hint="Set HOME to its path."
        )
    return Path(home) / ".terraform.d"


def _provider(host: str) -> Path:
    return _root() / "plugins" / host / SOURCE


def _record() -> Path:
    return _root() / "sojourn" / "python"


def _wrapper() -> bytes:
    return Path(__file__).with_name("wrapper.sh").read_bytes()


def _python() -> str:
    """The wrapper reads a line, so a path of several lines would not be found again."""
    if not sys.executable or "\n" in sys.executable:
        raise SojournError(
            f"The provider cannot use this Python: its path is {sys.executable!r}",
            hint="Install Sojourn with another Python and try again.",
        )
    return sys.executable


def _check(path: Path, *, force: bool) -> None:
    """Raise `Conflict` if something is there that is not ours to replace."""
    if not os.path.lexists(path) or _is_ours(path):
        return
    if path.is_dir():
        raise Conflict(f"{path} is a folder", hint="Move it and try again.")
    if not force:
        raise Conflict(
            f"{path} already exists and is not Sojourn's: {_kind(path)}",
            hint="Run `sojourn terraform install --force` to replace it, or move it.",
        )


def _is_ours(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MARK)) == _MARK
    except OSError:
        return False


def _kind(path: Path) -> str:
    if path.is_symlink():
        return f"a link to {os.readlink(path)}"
    if not path.is_file():
        return "not a regular file"
    size = f"of {path.stat().st_size:,} bytes"
    with suppress(OSError), open(path, "rb") as file:
        if file.read(4) in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
            return f"a compiled program {size}, possibly Terraform Provider Iterative"
    return f"a file {size}"


def _beside(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(other for other in path.parent.iterdir() if other != path))


def _place(path: Path, content: bytes, *, mode: int, through: Path) -> Change:
    """Give a file this content, at once.

    `through` is the folder in which it is written before. It is not the package folder, which may
    have nothing but the wrapper in it at any time: Terraform hashes it whole.
    """
    before = os.path.lexists(path)
    if before and _holds(path, content, mode):
        return Change.UNCHANGED
    path.parent.mkdir(parents=True, exist_ok=True)
    head, _, tail = _PARTS.partition("*")
    descriptor, part = tempfile.mkstemp(prefix=head, suffix=tail, dir=through)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.chmod(part, mode)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return Change.REPLACED if before else Change.MADE


def _holds(path: Path, content: bytes, mode: int) -> bool:
    try:
        return path.read_bytes() == content and path.stat().st_mode & mode == mode
    except OSError:
        return False


def _ours() -> list[Path]:
    """All that we placed, and what was left of files that were being placed."""
    providers = [_provider(host) for host in _HOSTS.values()]
    wrappers = [path for folder in providers for path in folder.glob(f"*/*/{_PROGRAM}*")]
    record = _record()
    parts = [path for folder in (*providers, record.parent) for path in folder.glob(_PARTS)]
    return [*sorted(filter(_is_ours, wrappers)), record, *sorted(parts)]


def _remove_empty(folder: Path, last: Path) -> list[Path]:
    """Remove a folder and those above it, up to and with `last`, as far as they are empty."""
    removed: list[Path] = []
    with suppress(OSError):
        while folder != last.parent:
            folder.rmdir()
            removed.append(folder)
            folder = folder.parent
    return removed
