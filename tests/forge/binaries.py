"""Builds Gitea with Go, from the sources in Go's module proxy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.kube import places

__all__ = ["VERSION", "build", "built", "folder"]

VERSION = "1.26.0"
_MODULE = f"code.gitea.io/gitea@v{VERSION}"
_FLAGS = (
    *("-trimpath", "-tags", "sqlite sqlite_unlock_notify"),
    *("-ldflags", f"-s -w -X main.Version={VERSION}"),
)
_READ_AT_RUN_TIME = ("options", "public", "templates")  # the front end is not built, nor needed


def folder() -> Path:
    """Its name says how the program is built; without it, it is not."""
    inputs = [_MODULE.encode(), repr(_FLAGS).encode()]
    return _cache() / f"gitea-{VERSION}-{places.digest(inputs)}"


def _cache() -> Path:
    return places.cache().with_name("forge")


def built() -> bool:
    return (folder() / "gitea").exists()


def build() -> None:
    """Takes 10 to 25 minutes, three gigabytes of disk meanwhile, and 120 megabytes for good."""
    for program in ("go", "gcc"):
        if not shutil.which(program):
            raise RuntimeError(
                f"Could not build Gitea: {program} not found. Install Go 1.26 and gcc, or Debian's "
                "golang and gcc and set GOTOOLCHAIN=auto"
            )
    with places.locked("forge"):
        if not built():
            _build(_cache() / "go")


def _build(caches: Path) -> None:
    for name in ("build", "mod", "tmp"):
        (caches / name).mkdir(parents=True, exist_ok=True)
    with places.building(folder()) as work:
        # In its own module Go heeds the versions that Gitea replaces; elsewhere it refuses them.
        source = work / "source"
        shutil.copytree(_downloaded(caches), source)
        _go(caches, source, "build", *_FLAGS, "-o", str(work / "gitea"), ".")
        for name in _READ_AT_RUN_TIME:
            (source / name).rename(work / name)
        shutil.rmtree(source)
    # Of no use until the version changes, which would compile almost all anew.
    shutil.rmtree(caches, ignore_errors=True)


def _downloaded(caches: Path) -> Path:
    said = _go(caches, caches, "mod", "download", "-json", _MODULE)
    return Path(json.loads(said)["Dir"])


def _go(caches: Path, where: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "CGO_ENABLED": "1",  # of SQLite
        "GOCACHE": str(caches / "build"),
        "GOFLAGS": "-modcacherw -buildvcs=false",
        "GOMODCACHE": str(caches / "mod"),
        "GOTMPDIR": str(caches / "tmp"),
    }
    command = ["nice", "-n", "15", "go", *arguments]
    done = subprocess.run(
        command, cwd=where, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    if done.returncode:
        raise RuntimeError(f"Could not build Gitea: go {arguments[0]} failed in {where}")
    return done.stdout.decode()
