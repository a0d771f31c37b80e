"""Builds Kubernetes and etcd as one program, with Go, from the sources in Go's module proxy."""

from __future__ import annotations

from pathlib import Path

from tests.kube import golang, places

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
    golang.require("Kubernetes")
    with places.building(folder()) as work:
        for package, name in (("./pause", "pause"), (".", "hyperkube")):
            golang.compile_package("Kubernetes", _MODULE, package, _FLAGS, work / name)
