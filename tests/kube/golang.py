"""Compiles Go programs from the sources in Go's module proxy. Which ones does not belong here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kube import places

__all__ = ["compile_package", "forget", "require"]


def require(what: str) -> None:
    """Say what to do where there is no Go."""
    if not shutil.which("go"):
        raise RuntimeError(
            f"Could not build {what}: go not found. Install Go 1.26, or Debian's golang "
            "and set GOTOOLCHAIN=auto"
        )


def compile_package(what: str, module: Path, package: str, flags: Sequence[str], to: Path) -> None:
    caches = _caches()
    for name in ("build", "mod", "tmp"):
        (caches / name).mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOCACHE": str(caches / "build"),
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
        "GOMODCACHE": str(caches / "mod"),
        "GOTMPDIR": str(caches / "tmp"),
    }
    command = ["nice", "-n", "5", "go", "build", *flags, "-o", str(to), package]
    done = subprocess.run(command, cwd=module, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"Could not build {what}: go build failed in {module}")


def forget() -> None:
    """Compiled packages are of no use until versions change, which compiles almost all anew."""
    for name in ("build", "tmp"):
        shutil.rmtree(_caches() / name, ignore_errors=True)


def _caches() -> Path:
    return places.cache() / "go"
