"""1 GiB over wires of a known speed: there the network is the limit, as it is for most people.

On loopback client and server share the processor, and whoever computes least wins, also by not
looking at what arrives. Here the server is a host of its own, in a network namespace, behind a
wire that lets through so many bits a second in either direction.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import trees
from bench.server import S3, started
from bench.storage import Seconds, ratio, table, timed
from bench.tools import OURS, S5CMD, Tool, installed

__all__ = ["main"]

_MBITS = (1000, 2500, 5000)
_ROUNDS = 3
_HERE, _THERE = "198.51.100.1", "198.51.100.2"  # of a net that is set apart for examples
_NOT_SLOWER = 0.97  # on a wire nobody can be much faster: what is less than this is not noise


def main(*, quick: bool = False) -> None:
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        print("Left out: making a wire takes root, and `ip` and `tc` of iproute2.")
        return
    tools = [tool for tool in installed()[0] if tool.name in (S5CMD, OURS)]
    seconds: Seconds = defaultdict(lambda: defaultdict(list))
    mib = 16 if quick else 1024
    with tempfile.TemporaryDirectory(prefix="bench-wire-") as folder:
        tree = trees.make_large(Path(folder, "large"), mib << 20)
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = _THERE  # for us and all that we start
        with _far_host() as (namespace, device), started(_THERE, _within(namespace)) as server:
            for mbit in _MBITS[-1:] if quick else _MBITS:
                _limit(namespace, device, mbit)
                for number in range(1 if quick else _ROUNDS):
                    _round(server, tree, tools, f"{mib:,} MiB at {mbit / 1000:g} Gbit/s", seconds)
                    tools = tools[::-1] if number < _ROUNDS - 1 else tools
    print(table(seconds, [tool.name for tool in tools]))
    if len(tools) > 1 and not quick:
        print(_judged(seconds))


def _round(server: S3, tree: Path, tools: list[Tool], row: str, seconds: Seconds) -> None:
    target = tree.with_name("target")
    for tool in tools:
        bucket = f"{tool.name}-wire"
        server.make_bucket(bucket)
        target.mkdir()
        up, down = tool.up(bucket, str(tree)), tool.down(bucket, str(target))
        seconds[f"{row}, up"][tool.name].append(timed(server, tool, up))
        seconds[f"{row}, down"][tool.name].append(timed(server, tool, down))
        if trees.summary(target) != trees.summary(tree):
            raise RuntimeError(f"{tool.name} did not bring everything back")
        shutil.rmtree(target)
        server.remove_bucket(bucket)


def _judged(seconds: Seconds) -> str:
    lines = ["", f"Bar, against {S5CMD}: not slower on a wire (at least {_NOT_SLOWER}x):"]
    for row, by_tool in seconds.items():
        found = ratio(by_tool, S5CMD)
        lines.append(f"- {row}: is {found:.2f}x: {'met' if found >= _NOT_SLOWER else 'MISSED'}")
    return "\n".join(lines)


@contextmanager
def _far_host() -> Iterator[tuple[str, str]]:
    """A host at the other end of a wire: its namespace, and the name of the wire at this end."""
    namespace, device = f"bench-{os.getpid()}", f"bench{os.getpid()}"
    _do("ip", "netns", "add", namespace)
    try:
        _do("ip", "link", "add", device, "type", "veth", "peer", "name", "wire", "netns", namespace)
        _do("ip", "addr", "add", f"{_HERE}/30", "dev", device)
        _do("ip", "link", "set", device, "up")
        _do(*_within(namespace), "ip", "addr", "add", f"{_THERE}/30", "dev", "wire")
        for name in ("wire", "lo"):
            _do(*_within(namespace), "ip", "link", "set", name, "up")
        yield namespace, device
    finally:
        _do("ip", "netns", "delete", namespace)  # and the wire with it


def _limit(namespace: str, device: str, mbit: int) -> None:
    """Let through no more than this, in either direction."""
    rate = ["root", "tbf", "rate", f"{mbit}mbit", "burst", "1mb", "latency", "20ms"]
    _do("tc", "qdisc", "replace", "dev", device, *rate)
    _do(*_within(namespace), "tc", "qdisc", "replace", "dev", "wire", *rate)


def _within(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def _do(*command: str) -> None:
    subprocess.run(command, check=True)
