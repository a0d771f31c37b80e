"""From a machine that is lost without a word to its script running again on the next one, on the
simulated clouds: how much of it is ours, and how much the cloud's.

Machines are real, small ones, and boot in a fraction of a second. A silent machine counts as lost
after a minute, so whoever waited for that would show here.
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

import sojourn

_OTHERS = ("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "SOJOURN_", "XDG_")
# How long ago the agent was started that started this script, by the clock of the kernel.
_SCRIPT = """#!/bin/sh
began=$(sed 's/.*) //' "/proc/$PPID/stat" | cut -d ' ' -f 20)
up=$(cut -d ' ' -f 1 /proc/uptime)
echo "running $(awk -v up="$up" -v began="$began" 'BEGIN { print up - began / 100 }')"
exec sleep 1000
"""
_WITHIN = 120.0  # seconds


def main(*, quick: bool = False) -> None:
    from tests.simcloud.machines.host import Host

    reason = Host.unavailable()
    if reason:
        print(f"Not measured: {reason}")
        return
    print("From the loss of a machine to its script running again; seconds, medians\n")
    print("| cloud | in all | from the agent's start |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as homes:
        for cloud, kit in _kits().items():
            home = Path(homes, cloud)
            home.mkdir()
            whole, ours = _measured(cloud, kit, home, rounds=1 if quick else 5)
            print(f"| {cloud} | {whole:.2f} | {ours:.2f} |")


def _kits() -> dict[str, Callable[[Path], Any]]:
    from tests.contract.clouds.aws_kit import AwsKit
    from tests.contract.clouds.az_kit import AzureKit
    from tests.contract.clouds.gcp_kit import GcpKit

    return {"aws": AwsKit, "gcp": GcpKit, "az": AzureKit}


def _measured(
    cloud: str, make: Callable[[Path], Any], home: Path, rounds: int
) -> tuple[float, float]:
    from sojourn.clouds.vm import machine_settings

    usual = machine_settings._TTL
    kit = make(home)
    try:
        machine_settings._TTL = usual  # tests are less patient
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OTHERS)}
        with mock.patch.dict(os.environ, {**kept, **kit.environment()}, clear=True):
            return _losses(cloud, kit, rounds)
    finally:
        kit.close()


def _losses(cloud: str, kit: Any, rounds: int) -> tuple[float, float]:
    handle = sojourn.create(sojourn.Task(_SCRIPT, cloud=cloud, spot=0))
    found = _lines(handle, 1)
    whole, ours = [], []
    for number in range(2, rounds + 2):
        began = time.monotonic()
        kit.lose_agent(handle, 0)
        found = _lines(handle, number)
        whole.append(time.monotonic() - began)
        ours.append(float(found[-1].split()[1]))
    handle.delete(fetch=False)
    return statistics.median(whole), statistics.median(ours)


def _lines(handle: sojourn.Handle, count: int) -> list[str]:
    """What the scripts printed, once that many have begun."""
    give_up = time.monotonic() + _WITHIN
    while True:
        found = [line.text for line in handle.logs() if line.text.startswith("running ")]
        if len(found) >= count:
            return found
        assert time.monotonic() < give_up, "it did not come back"
        time.sleep(0.05)
