"""Up, down and again: Sojourn, rclone and s5cmd on the same server and the same files.

Every figure is a whole process, start-up included. All tools do one kind of work one after the
other before any goes on to the next, so that what else the machine does hits them alike.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from bench import trees
from bench.server import S3, started
from bench.tools import OURS, S5CMD, Tool, installed, our_environment, run

__all__ = ["Seconds", "main", "ratio", "table", "timed"]

_ROUNDS = 3
_UP, _DOWN, _SAME, _CHANGED = "up", "down", "nothing changed", "changed"
Seconds = dict[str, dict[str, list[float]]]  # by row, then by tool


class _Tree:
    """A folder, and the rows of the table that it is measured for."""

    def __init__(self, name: str, folder: Path, change: Callable[[Path], None], what: str) -> None:
        self.name = name
        self.folder = folder
        self.change = change
        self.rows = {kind: f"{name}, {kind}" for kind in (_UP, _DOWN, _SAME)}
        self.rows[_CHANGED] = f"{name}, {what} changed"


def main(*, quick: bool = False) -> None:
    tools, missing = installed()
    for name in missing:
        print(f"{name} is not installed, and is left out.")
    seconds: Seconds = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as folder, started() as server:
        small, large = _make_trees(Path(folder), quick)
        for number in range(1 if quick else _ROUNDS):
            turn = number % len(tools)
            for tree in (small, large):
                _round(server, tree, [*tools[turn:], *tools[:turn]], number, seconds)
    print(table(seconds, [tool.name for tool in tools]))
    if S5CMD not in missing and not quick:
        print(_judged(seconds, small, large))


def _make_trees(folder: Path, quick: bool) -> tuple[_Tree, _Tree]:
    count, mib = (200, 16) if quick else (10_000, 1024)
    return (
        _Tree(
            f"{count:,} x 10 KiB",
            trees.make_small(folder / "small", count, 10 << 10),
            trees.rewrite_one,
            "one file",
        ),
        _Tree(
            f"{mib:,} MiB",
            trees.make_large(folder / "large", mib << 20),
            trees.change_middle,
            "1 MiB",
        ),
    )


def _round(server: S3, tree: _Tree, tools: list[Tool], number: int, seconds: Seconds) -> None:
    buckets = {
        tool.name: f"{tool.name}-{tree.folder.name}-{number}".replace(" ", "-") for tool in tools
    }
    folder = str(tree.folder)
    targets = tree.folder.with_name("targets")
    for tool in tools:
        server.make_bucket(buckets[tool.name])
    for kind in tree.rows:
        if kind == _CHANGED:
            tree.change(tree.folder)
        for tool in tools:
            bucket = buckets[tool.name]
            if kind == _UP:
                command = tool.up(bucket, folder)
            elif kind == _DOWN:
                target = targets / tool.name
                target.mkdir(parents=True)
                command = tool.down(bucket, str(target))
            else:
                command = tool.sync(bucket, folder)
            seconds[tree.rows[kind]][tool.name].append(timed(server, tool, command))
            if kind == _DOWN and trees.summary(target) != trees.summary(tree.folder):
                raise RuntimeError(f"{tool.name} did not bring everything back")
    shutil.rmtree(targets)  # not before: new files are slow to make just after old ones went
    for bucket in buckets.values():
        server.remove_bucket(bucket)


def timed(server: S3, tool: Tool, command: list[str]) -> float:
    """How long a command of this tool takes, in seconds."""
    environment = our_environment(server) if tool.name == OURS else server.environment
    os.sync()  # nobody pays for what the one before left to be written
    start = time.perf_counter()
    run(command, environment)
    return time.perf_counter() - start


def table(seconds: Seconds, names: list[str]) -> str:
    """Medians, and how much faster we are than each of the others."""
    peers = [name for name in names if name != OURS]
    head = ["seconds (median)", *peers, OURS, *(f"{name} / {OURS}" for name in peers)]
    lines = [head, ["---"] * len(head)]
    for row, by_tool in seconds.items():
        medians = [f"{statistics.median(by_tool[name]):.2f}" for name in (*peers, OURS)]
        ratios = [f"{ratio(by_tool, name):.1f}x" for name in peers]
        lines.append([row, *medians, *ratios])
    widths = [max(len(cells) for cells in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def ratio(by_tool: dict[str, list[float]], peer: str) -> float:
    """How much faster we are: the median over rounds, for runs that stood side by side."""
    pairs = zip(by_tool[peer], by_tool[OURS], strict=True)
    return statistics.median(theirs / ours for theirs, ours in pairs)


def _judged(seconds: Seconds, small: _Tree, large: _Tree) -> str:
    """What we promise ourselves, against s5cmd."""
    bars = {
        small.rows[_UP]: 5.0,
        small.rows[_DOWN]: 5.0,
        large.rows[_UP]: 1.0,
        large.rows[_DOWN]: 1.0,
        small.rows[_SAME]: 5.0,
        small.rows[_CHANGED]: 5.0,
    }
    lines = ["", f"Bars, against {S5CMD}:"]
    for row, bar in bars.items():
        found = ratio(seconds[row], S5CMD)
        verdict = "met" if found >= bar else "MISSED"
        lines.append(f"- {row}: at least {bar:.1f}x, is {found:.2f}x: {verdict}")
    return "\n".join(lines)
