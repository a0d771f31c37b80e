"""Builds mpi-operator, with Go, from the sources in Go's module proxy."""

from __future__ import annotations

from pathlib import Path

from tests.kube import golang, places

__all__ = ["VERSION", "build", "built", "program"]

VERSION = "0.8.2"
_MODULE = places.SOURCES / "operator"
_INPUTS = ("go.mod", "go.sum")
_PACKAGE = "github.com/kubeflow/mpi-operator"
_FLAGS = ("-trimpath", "-ldflags", f"-s -w -X {_PACKAGE}/pkg/version.Version=v{VERSION}")


def program() -> Path:
    """Its folder's name says how it is built; without it, it is not."""
    inputs = [(_MODULE / name).read_bytes() for name in _INPUTS]
    folder = f"operator-{places.digest([*inputs, repr(_FLAGS).encode()])}"
    return places.cache() / folder / "mpi-operator"


def built() -> bool:
    return program().exists()


def build() -> None:
    """Quicker after Kubernetes, as both share most packages."""
    if built():
        return
    golang.require("mpi-operator")
    with places.building(program().parent) as work:
        package = f"{_PACKAGE}/cmd/mpi-operator"
        golang.compile_package("mpi-operator", _MODULE, package, _FLAGS, work / program().name)
