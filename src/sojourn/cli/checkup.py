"""What `sojourn doctor` looks at."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from sojourn import __version__, clouds
from sojourn.core.errors import InvalidInput
from sojourn.core.finding import Finding
from sojourn.core.installation import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.about import About

__all__ = ["checkup"]

_LIBRARIES = ("blake3", "click", "lark", "msgspec", "obstore", "python-hcl2", "pyyaml", "tqdm")


def checkup() -> Iterator[Finding]:
    """Look at everything; nothing is changed. Clouds that are set up are asked."""
    yield Finding("ok", "sojourn", __version__)
    yield _python()
    for library in _LIBRARIES:
        yield _library(library)
    yield from _clouds()
    for tool in ("terraform", "tofu", "git"):
        found = shutil.which(tool)
        yield Finding("ok" if found else "note", tool, found or "not found (optional)")
    yield _provider()


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    if sys.platform not in ("linux", "darwin"):
        return Finding("problem", "python", f"{detail}: tasks run on Linux and macOS only")
    return Finding("ok", "python", detail)


def _library(name: str) -> Finding:
    try:
        return Finding("ok", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding("problem", name, "not installed; install Sojourn again")


def _clouds() -> Iterator[Finding]:
    try:
        names = clouds.names()
    except InvalidInput as error:
        yield Finding("problem", "settings", str(error))
        return
    for name in names:
        yield from _cloud(name)


def _cloud(name: str) -> Iterator[Finding]:
    about = clouds.about(name)
    named = clouds.named_clouds().get(name)
    signs = [named.origin] if named else clouds.signs(name)
    if named:
        yield Finding("ok", name, f"{about.title}, named in {named.origin}")
    elif about.variables or about.files:
        found = f"credentials found: {', '.join(signs)}" if signs else "no credentials found"
        yield Finding("note", name, found)
    if signs:
        yield from (_package(name, about, package) for package in about.packages)
    if not clouds.is_set_up(name):
        return
    try:
        yield from clouds.examine(name)
    except Exception as error:  # nothing that it answers ends the check-up
        yield Finding("note", f"{name} account", f"check failed: {error}")


def _package(cloud: str, about: About, name: str) -> Finding:
    """A note at most: who has credentials need not use them for this."""
    subject = f"{cloud} {name}"
    try:
        return Finding("ok", subject, metadata.version(name))
    except metadata.PackageNotFoundError:
        run = f"run `{install_command(about.extra)}`"
        return Finding("note", subject, f"not installed, required to run tasks; {run}")


def _provider() -> Finding:
    """The Terraform provider, and the Python that it was installed with."""
    from sojourn.terraform.install import SOURCE, recorded_python

    subject = "provider"
    python = recorded_python()
    if not python:
        install = "run `sojourn terraform install`"
        return Finding("note", subject, f"{SOURCE} not installed; {install}")
    program = shutil.which(python)
    if program is None:
        again = "run `sojourn terraform install` again"
        return Finding("note", subject, f"its Python {python} no longer exists; {again}")
    probe = "import sojourn.terraform, grpc, google.protobuf, cryptography"
    done = subprocess.run([program, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["unknown error"])[-1]
        again = "run `sojourn terraform install` where Sojourn is installed"
        return Finding("note", subject, f"{python} cannot run it: {why}; {again}")
    return Finding("ok", subject, f"{SOURCE}, with {python}")
