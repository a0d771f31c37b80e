"""Clouds whose machines boot, on simulated accounts with 0.1 seconds for every call: how many calls
verbs take, and how long it is from `create` to the launch of the machine, with resources made at
once or one by one.

The agent's zip is a stand-in of 1 MiB. There is no real machine, so it calls nobody.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import sojourn

_LATENCY = 0.1
_TASKS = 90  # each has a service account on Google Cloud, of which a project has 100
_OTHERS = ("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "SOJOURN_", "XDG_")
_Row = tuple[str, int, float, float]


def main(*, quick: bool = False) -> None:
    made: dict[str, list[_Row]] = {}
    looked: dict[str, list[tuple[str, int, float]]] = {}
    for cloud, simulated in _accounts().items():
        with _using(simulated) as account:
            made[cloud] = _create(account, cloud, rounds=1 if quick else 5)
            looked[cloud] = _look(account, cloud, tasks=5 if quick else _TASKS)
    print(f"To the launch of the machine; every call takes {_LATENCY} s\n")
    print("| cloud | what | calls | seconds | ratio |\n|---|---|---:|---:|---:|")
    for cloud, rows in made.items():
        for what, calls, seconds, ratio in rows:
            print(f"| {cloud} | {what} | {calls} | {seconds:.2f} | {ratio:.2f} |")
    print("\n| cloud | what | calls | seconds |\n|---|---|---:|---:|")
    for cloud, found in looked.items():
        for what, calls, seconds in found:
            print(f"| {cloud} | {what} | {calls} | {seconds:.2f} |")


def _accounts() -> dict[str, Callable[[], Any]]:
    from tests.simcloud.aws.account import SimAWS
    from tests.simcloud.az.account import SimAzure
    from tests.simcloud.gcp.account import SimGCP

    known: dict[str, Callable[[], Any]] = {"aws": SimAWS, "gcp": SimGCP, "az": SimAzure}
    return {name: made for name, made in known.items() if name in sojourn.clouds.KINDS}


@contextmanager
def _using(simulated: Callable[[], Any]) -> Iterator[Any]:
    with ExitStack() as opened:
        home = opened.enter_context(tempfile.TemporaryDirectory())
        account = opened.enter_context(simulated())
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OTHERS)}
        variables = {**kept, **account.environment(), "HOME": home}
        opened.enter_context(mock.patch.dict(os.environ, variables, clear=True))
        stand_in = mock.patch("sojourn.clouds.vm.agent_files.bundle", return_value=bytes(1 << 20))
        opened.enter_context(stand_in)
        opened.callback(os.chdir, Path.cwd())
        yield account


def _create(account: Any, cloud: str, rounds: int) -> list[_Row]:
    in_order = mock.patch("concurrent.futures.ThreadPoolExecutor", _in_order)
    ways: dict[str, AbstractContextManager[object]] = {
        "create, in sequence": in_order,
        "create, in parallel": nullcontext(),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    calls = dict.fromkeys(ways, 0)
    for number in range(rounds + 1):  # side by side, so that noise falls on both alike
        for way, patched in ways.items():
            with patched:
                taken, calls[way] = _one(account, cloud)
            if number:  # the first loads what it needs
                seconds[way].append(taken)
    base = statistics.median(seconds["create, in sequence"])
    middles = {way: statistics.median(values) for way, values in seconds.items()}
    return [(way, calls[way], middle, middle / base) for way, middle in middles.items()]


def _one(account: Any, cloud: str) -> tuple[float, int]:
    before = len(account.instances())
    account.calls.clear()
    account.delay(_LATENCY)
    began = time.perf_counter()
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud=cloud))
    calls = len(account.calls)
    account.wait(lambda: len(account.instances()) > before)
    taken = time.perf_counter() - began
    account.delay(0)
    _remove(account, handle)
    return taken, calls


def _remove(account: Any, handle: sojourn.Handle) -> None:
    """Azure waits for a machine to say that it has stored its work, and there is no real one."""
    with ThreadPoolExecutor(1) as pool:
        removal = pool.submit(handle.delete, fetch=False)
        while not wait([removal], 0.5).done:
            if handle.cloud == "az":
                account.advance(600)
        removal.result()


def _look(account: Any, cloud: str, tasks: int) -> list[tuple[str, int, float]]:
    from sojourn import api

    # Small ones: of the cores of larger ones, an Azure subscription has enough for 43 tasks.
    task = sojourn.Task("#!/bin/sh\ntrue", cloud=cloud, machine="s")
    handles = [sojourn.create(task) for _ in range(tasks)]
    found = api.get(handles[0].id)
    rows = [
        ("status", *_measured(account, found.status)),
        (f"list of {tasks} tasks", *_measured(account, api.overview)),
    ]
    for handle in handles:
        _remove(account, handle)
    return rows


def _measured(account: Any, verb: Callable[[], object]) -> tuple[int, float]:
    verb()
    account.calls.clear()
    account.delay(_LATENCY)
    began = time.perf_counter()
    verb()
    taken = time.perf_counter() - began
    account.delay(0)
    return len(account.calls), taken


def _in_order(_: int = 0) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)
