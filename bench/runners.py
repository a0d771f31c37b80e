"""CI runners of a simulated GitHub: from `launch` to online, on this computer and on simulated AWS,
and what an idle runner asks its forge.

The runner program is a stand-in that starts at once, so what is left is ours and the cloud's.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

_OTHERS = ("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "SOJOURN_", "XDG_", "GITHUB_", "CI")
_HOUR = 3600.0


def main(*, quick: bool = False) -> None:
    from tests.simcloud.machines.host import Host

    kits = {"local": _local}
    if reason := Host.unavailable():
        print(f"Only on this computer: {reason}\n")
    else:
        kits["aws"] = _aws
    print("| cloud | seconds to online, median | calls of the launch | calls in an idle hour |")
    print("|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as homes:
        for cloud, make in kits.items():
            home = Path(homes, cloud)
            home.mkdir()
            rounds, idle = (1, 10.0) if quick else (5, 60.0)
            seconds, calls, asked = _measured(make, home, rounds, idle)
            print(f"| {cloud} | {seconds:.2f} | {calls} | {asked * _HOUR / idle:.0f} |")


def _local(home: Path) -> Any:
    from tests.contract.clouds.local_kit import LocalKit

    return LocalKit(home)


def _aws(home: Path) -> Any:
    from tests.contract.clouds.aws_kit import AwsKit

    return AwsKit(home)


def _measured(
    make: Callable[[Path], Any], home: Path, rounds: int, idle: float
) -> tuple[float, int, int]:
    from tests.simforge.github import SimGitHub
    from tests.simforge.server import served

    kit = make(home)
    try:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OTHERS)}
        variables = {**kept, **kit.environment()}
        with mock.patch.dict(os.environ, variables, clear=True), served(SimGitHub()) as forge:
            _let_in(kit, forge)
            return _rounds(kit.cloud, forge, rounds, idle)
    finally:
        kit.close()


def _let_in(kit: Any, forge: Any) -> None:
    """Machines have a loopback of their own."""
    from tests.simcloud.machines.serving import forward
    from tests.simcloud.machines.spec import Endpoint

    port = urlsplit(forge.url).port
    if hasattr(kit, "host") and port:
        kit.host.reachable = (Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),)


def _rounds(cloud: str, forge: Any, rounds: int, idle: float) -> tuple[float, int, int]:
    from sojourn import runners

    given = {"driver": "github", "repo": forge.repo, "token": forge.token, "cloud": cloud}
    seconds, calls, asked = [], 0, 0
    for number in range(rounds):
        before, began = len(forge.calls), time.perf_counter()
        runner = runners.launch(**given, single=False, idle_timeout=0)
        seconds.append(time.perf_counter() - began)
        calls = len(forge.calls) - before
        if number == rounds - 1:
            before = len(forge.calls)
            time.sleep(idle)
            asked = len(forge.calls) - before
        assert runner is not None
        runner.remove(token=forge.token)
    return statistics.median(seconds), calls, asked


if __name__ == "__main__":
    main()
