"""`python -m bench NAME... [--quick]`: run benchmarks by name, or all of them."""

from __future__ import annotations

import sys

from bench import (
    clouds,
    digests,
    gangs,
    kube,
    local,
    memory,
    mpi,
    recovery,
    runners,
    startup,
    storage,
    terraform,
    walk,
    wire,
)

_ALL = {
    "startup": startup.main,
    "walk": walk.main,
    "local": local.main,
    "storage": storage.main,
    "wire": wire.main,
    "memory": memory.main,
    "digests": digests.main,
    "terraform": terraform.main,
    "clouds": clouds.main,
    "recovery": recovery.main,
    "gangs": gangs.main,
    "kube": kube.main,
    "mpi": mpi.main,
    "runners": runners.main,
}


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    names = [name for name in arguments if name != "--quick"] or list(_ALL)
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        raise SystemExit(f"There is no benchmark {unknown[0]}. There are: {', '.join(_ALL)}.")
    for name in names:
        print(f"## {name}\n")
        _ALL[name](quick=quick)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
