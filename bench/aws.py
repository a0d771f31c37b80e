"""AWS, on the simulated account with 0.1 seconds for every call: how many calls verbs take, and how
long it is from `create` to the launch of the machine, with resources made at once or one by one.

The agent's zip is a stand-in of 1 MiB. There is no real machine, so it calls nobody.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING
from unittest import mock

import sojourn

if TYPE_CHECKING:
    from tests.simcloud.aws.account import SimAWS

_LATENCY = 0.1
_ENDED = {"sojourn:marked": "yes", "sojourn:rank:0": "succeeded 1 0"}


def main(*, quick: bool = False) -> None:
    with _account() as account:
        _create(account, rounds=1 if quick else 5)
        _look(account, tasks=20 if quick else 200)


@contextmanager
def _account() -> Iterator[SimAWS]:
    from tests.simcloud.aws.account import SimAWS

    with ExitStack() as opened:
        home = opened.enter_context(tempfile.TemporaryDirectory())
        account = opened.enter_context(SimAWS())
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "XDG_"))}
        variables = {**kept, **account.environment(), "HOME": home}
        opened.enter_context(mock.patch.dict(os.environ, variables, clear=True))
        stand_in = mock.patch("sojourn.clouds.vm.agent_files.bundle", return_value=bytes(1 << 20))
        opened.enter_context(stand_in)
        yield account


def _create(account: SimAWS, rounds: int) -> None:
    in_order = mock.patch("concurrent.futures.ThreadPoolExecutor", _in_order)
    ways: dict[str, AbstractContextManager[object]] = {
        "create, in sequence": in_order,
        "create, in parallel": nullcontext(),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    calls = dict.fromkeys(ways, 0)
    for number in range(rounds + 1):  # side by side, so that noise falls on both alike
        for way, patched in ways.items():
            account.delay(_LATENCY)
            with patched:
                taken, calls[way] = _one(account)
            if number:  # the first reads the models of the services
                seconds[way].append(taken)
    base = statistics.median(seconds["create, in sequence"])
    print(f"To the launch of the machine; every call takes {_LATENCY} s; medians of {rounds}\n")
    print("| what | calls | seconds | ratio |\n|---|---:|---:|---:|")
    for way, values in seconds.items():
        middle = statistics.median(values)
        print(f"| {way} | {calls[way]} | {middle:.2f} | {middle / base:.2f} |")


def _one(account: SimAWS) -> tuple[float, int]:
    before = len(account.instances())
    account.calls.clear()
    began = time.perf_counter()
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws"))
    calls = len(account.calls)
    account.wait(lambda: len(account.instances()) > before)
    taken = time.perf_counter() - began
    account.delay(0)
    handle.delete(fetch=False)
    return taken, calls


def _look(account: SimAWS, tasks: int) -> None:
    from sojourn import api
    from tests.simcloud.aws_user import User

    rows = []
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws"))
    found = api.get(handle.id)
    rows.append(("status", *_measured(account, found.status)))
    handle.delete(fetch=False)
    user = User(account.environment())
    user.make_template()
    for number in range(tasks):
        user.make_task(f"task-{number}", _ENDED)
    user.close()
    rows.append((f"list of {tasks} tasks", *_measured(account, api.overview)))
    print("\n| what | calls | seconds |\n|---|---:|---:|")
    for what, seconds, calls in rows:
        print(f"| {what} | {calls} | {seconds:.2f} |")


def _measured(account: SimAWS, verb: Callable[[], object]) -> tuple[float, int]:
    verb()
    account.calls.clear()
    account.delay(_LATENCY)
    began = time.perf_counter()
    verb()
    taken = time.perf_counter() - began
    account.delay(0)
    return taken, len(account.calls)


def _in_order(_: int = 0) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)
