"""Builds Kubernetes and etcd as one program, with Go, from the sources in Go's module proxy."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.kube import places

__all__ = ["build", "built", "folder", "hyperkube"]

VERSION = "v1.36.3"
_MODULE = places.SOURCES / "hyperkube"
_INPUTS = ("go.mod", "go.sum", "main.go", "pause/main.go")
_STAMP = "k8s.io/component-base/version"
_LINKED = f"-s -w -X {_STAMP}.gitVersion={VERSION} -X {_STAMP}.gitMajor=1 -X {_STAMP}.gitMinor=36"
_FLAGS = ("-trimpath", "-ldflags", _LINKED)


def folder() -> Path:
    """Its name says how the programs are built; without it, they are not."""
    inputs = [(_MODULE / name).read_bytes() for name in _INPUTS]
    return places.cache() / f"programs-{places.digest([*inputs, repr(_FLAGS).encode()])}"


def hyperkube() -> Path:
    return folder() / "hyperkube"


def built() -> bool:
    return hyperkube().exists()


def build() -> None:
    """Takes ten minutes of two cores, four gigabytes of disk meanwhile, and one for good."""
    if built():
        return
    if not shutil.which("go"):
        raise RuntimeError(
            "Could not build Kubernetes: go not found. Install Go 1.26, or Debian's golang "
            "and set GOTOOLCHAIN=auto"
        )
    caches = places.cache() / "go"
    with places.building(folder()) as work:
        for name in ("build", "mod", "tmp"):
            (caches / name).mkdir(parents=True, exist_ok=True)
        _compile(caches, "./pause", work / "pause")
        _compile(caches, ".", work / "hyperkube")
    # Of no use until the versions change, which would compile almost all anew.
    for name in ("build", "tmp"):
        shutil.rmtree(caches / name, ignore_errors=True)


def _compile(caches: Path, package: str, target: Path) -> None:
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOCACHE": str(caches / "build"),
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
        "GOMODCACHE": str(caches / "mod"),
        "GOTMPDIR": str(caches / "tmp"),
    }
    command = ["nice", "-n", "5", "go", "build", *_FLAGS, "-o", str(target), package]
    done = subprocess.run(command, cwd=_MODULE, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"Could not build Kubernetes: go build failed in {_MODULE}")
