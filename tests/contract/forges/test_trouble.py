"""What goes wrong with runners, and what is left then: nothing, on any forge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sojourn import Machine, runners
from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError, SojournError, Transient
from sojourn.core.status import State
from tests.contract.forges.bench import Bench
from tests.simforge.server import Call, Refusal
from tests.support.trees import files_below
from tests.support.waiting import until

_LAUNCH = (sys.executable, "-m", "sojourn.cli", "runner", "launch")


def typed(bench: Bench, **more: Any) -> list[str]:
    given = {**bench.options(**more)}
    given.pop("token")
    single = "--single" if given.pop("single") else "--no-single"
    travels = "--token-on-machine" if given.pop("token_on_machine", False) else ""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return [*_LAUNCH, single, *words, *([travels] if travels else [])]


def offline(bench: Bench) -> bool:
    return not any(each.online for each in bench.forge.work.runners.values())


def all_ended() -> bool:
    return all(status.state.ended for _, _, status in runners.list())


def killed_at(bench: Bench, number: int, command: list[str]) -> bytes:
    """What a command printed that is killed at its n-th call: nothing, if it was."""
    calls: list[Call] = []
    began = threading.Event()

    def kill(call: Call) -> None:
        began.wait()
        if not _is_of(process, call):
            return
        calls.append(call)
        if len(calls) == number:
            process.kill()
            raise Refusal(503, "nobody waits for this")

    bench.forge.before = kill
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    began.set()
    printed, _ = process.communicate()
    bench.forge.before = lambda call: None
    assert process.returncode == (0 if len(calls) < number else -signal.SIGKILL)
    return printed


def _is_of(process: subprocess.Popen[bytes], call: Call) -> bool:
    """Whether it is this one that calls: machines of those before it do so at any time, and who is
    killed between two calls of its own may leave half a task, which does not end."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {row[9] for row in rows if int(row[1].rpartition(":")[2], 16) == call.port}
    for link in Path(f"/proc/{process.pid}/fd").glob("*"):
        with suppress(OSError):
            if os.readlink(link)[len("socket:[") : -1] in inodes:
                return True
    return False


@pytest.mark.parametrize("single", [False, True], ids=["many", "single"])
def test_a_launcher_that_is_killed_at_any_call(
    bench: Bench, single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if single:
        bench.needs("single")
    monkeypatch.setenv("CML_TOKEN", bench.forge.token)
    command = typed(bench, single=single, idle_timeout=2, token_on_machine=True)
    for number in range(1, 100):
        if killed_at(bench, number, command):
            break
    assert number > 4, "it was never killed"
    until(all_ended, 60)
    until(lambda: offline(bench))
    last = bench.launch()
    assert [each.id for each, _, _ in runners.list()] == [last.id]
    assert len(bench.forge.work.runners) == 1


@pytest.mark.parametrize("single", [False, True], ids=["many", "single"])
def test_a_forge_that_is_away_leaves_nothing(bench: Bench, single: bool) -> None:
    def away(call: Call) -> None:
        if call.method == "POST":
            raise Refusal(503, "Service Unavailable", {"Retry-After": "0"})

    if single:
        bench.needs("single")
    bench.forge.before = away
    with pytest.raises(Transient, match="Service Unavailable"):
        bench.launch(single=single)
    assert runners.list() == []


def test_a_forge_that_goes_away_does_not_keep_the_machine(bench: Bench) -> None:
    runner = bench.launch(idle_timeout=2, token_on_machine=True)

    def away(call: Call) -> None:
        raise Refusal(503, "Service Unavailable", {"Retry-After": "0"})

    bench.forge.before = away
    bench.ended(runner, 60)
    bench.forge.before = lambda call: None
    until(lambda: offline(bench))
    bench.launch()
    assert len(bench.forge.work.runners) == 1


def test_a_token_that_was_revoked_does_not_keep_the_machine(bench: Bench) -> None:
    runner = bench.launch(idle_timeout=2, token_on_machine=True)
    bench.forge.token += "-renewed"
    bench.ended(runner, 60)
    assert runner.status().state is State.SUCCEEDED


def test_one_that_its_forge_forgot_ends(bench: Bench) -> None:
    """At once, or when it was idle for long enough: not every program ends by itself."""
    runner = bench.launch(idle_timeout=3)
    bench.forge.work.runners.clear()
    bench.ended(runner)


@pytest.mark.parametrize("count", [4, pytest.param(50, marks=pytest.mark.full)])
def test_many_in_a_row_leave_a_bounded_number(bench: Bench, count: int) -> None:
    bench.needs("single")
    for _ in range(count):
        job = bench.job()
        runner = bench.launch(single=True)
        bench.finished(job)
        bench.ended(runner)
        assert len(runners.list()) == 1
        assert len(bench.forge.work.runners) <= 1


def test_what_is_registered_without_a_machine_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CML_TOKEN", bench.forge.token)
    runner = bench.launch()
    runner.delete(fetch=False, force=True)  # not `remove`: as a plain task
    until(lambda: offline(bench))
    if not bench.forge.work.runners:
        return  # it could unregister itself
    found = [*_orphans(bench)]
    assert [each.registered.name for each in found] == [runner.id]
    for each in found:
        each.unregister(Context())
    assert bench.forge.work.runners == {}


def test_one_whose_cloud_cannot_be_seen_from_here_stays_registered(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a computer that has not logged in to its cloud, or to another account."""
    bench.launch()
    [row] = bench.forge.work.runners.values()
    row.offline_after = 0.0  # its machine is being replaced
    with monkeypatch.context() as elsewhere:
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            elsewhere.setenv(name, str(tmp_path / "elsewhere" / name))
        assert _orphans(bench) == []
        assert f"Keeping {row.name} registered, offline" in "".join(bench.told)
        there = bench.launch()
        assert row in bench.forge.work.runners.values()
        there.remove(token=bench.forge.token, force=True)


def _orphans(bench: Bench) -> list[runners.Orphan]:
    forge = bench.forge
    return runners.garbage(
        driver=forge.driver, repo=forge.repo, token=forge.token, on_event=bench.hear
    )


def test_a_program_that_is_not_what_it_should_be(bench: Bench) -> None:
    if not bench.forge.publishes_sums:
        pytest.skip(f"{bench.forge.driver} publishes no checksums of its program")
    bench.forge.program_sum = lambda: "0" * 64  # type: ignore[method-assign]
    with pytest.raises(SojournError, match="has SHA-256"):
        bench.launch()
    assert runners.list() == []


@pytest.mark.parametrize("damage", ["[" * 60_000, ""])
def test_a_task_that_a_job_damaged_is_not_in_the_way_of_other_runners(
    bench: Bench, tmp_path: Path, damage: str
) -> None:
    damaged, other = (bench.launch(idle_timeout=1) for _ in range(2))
    for each in (damaged, other):
        bench.ended(each)
    found = [path for path in files_below(tmp_path) if path.name == "task.json"]
    [file] = (path for path in found if damaged.id in str(path))
    file.write_text(damage)
    assert [each.id for each, _, _ in runners.list(on_event=bench.hear)] == [other.id]
    assert any(f"Could not tell what {damaged.id} is" in each for each in bench.told)
    assert Machine.all() == []
    last = bench.launch()
    assert [each.id for each, _, _ in runners.list()] == [last.id]
    with pytest.raises(IntegrityError):
        damaged.remove(token=bench.forge.token)
    damaged.remove(token=bench.forge.token, force=True)
    assert not damaged.exists()
    last.remove(token=bench.forge.token)
    bench.forge.work.runners.clear()  # of which nobody could tell any more
