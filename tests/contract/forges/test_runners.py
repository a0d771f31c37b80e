"""What a runner does, on any forge."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sojourn import forges, runners
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Conflict, InvalidInput, SojournError
from sojourn.core.events import Event
from sojourn.core.ids import TaskId
from sojourn.core.status import State
from sojourn.taskfiles.changes import Fields
from tests.contract.forges.bench import Bench
from tests.simforge.server import Call, Refusal
from tests.support.waiting import until


def test_it_is_online_and_carries_out_jobs(bench: Bench) -> None:
    runner = bench.launch()
    assert any(" ends " in text for text in bench.told), "how long jobs may take is not told"
    found = runner.registered(bench.forge.token)
    assert found is not None
    assert found.online
    assert {"cml", runner.id} <= found.labels
    first, second = bench.job("echo one"), bench.job("exit 3")
    assert bench.finished(first).conclusion == "success"
    assert "one" in first.log
    assert bench.finished(second).conclusion == "failure"
    assert runner.status().state is State.RUNNING


def test_a_job_can_ask_for_this_very_runner(bench: Bench) -> None:
    one, other = bench.launch(), bench.launch()
    job = bench.job("echo hello", other.id)
    assert bench.finished(job).runner == other.id
    assert one.id != other.id


def test_without_jobs_it_ends_and_is_forgotten(bench: Bench) -> None:
    runner = bench.launch(idle_timeout=1, token_on_machine=True)
    bench.ended(runner)
    assert runner.status().state is State.SUCCEEDED
    assert runner.status().reason == "no job for 1s"
    assert bench.forge.work.runners == {}


def test_a_job_is_not_idleness(bench: Bench) -> None:
    job = bench.job("sleep 4; echo slept")
    runner = bench.launch(idle_timeout=1, token_on_machine=True)
    assert bench.finished(job).conclusion == "success"
    assert "slept" in job.log
    bench.ended(runner)


def test_what_a_forge_lacks_is_refused_with_the_reason(bench: Bench) -> None:
    if not forges.lacking(bench.forge.driver):
        pytest.skip("it lacks nothing")
    for name, why in forges.lacking(bench.forge.driver).items():
        with pytest.raises(InvalidInput, match=f"{name}: not supported .*: {why}"):
            bench.launch(**{name: True})
    assert bench.forge.work.ever == 0


def test_a_single_one_ends_after_one_job(bench: Bench) -> None:
    bench.needs("single")
    runner = bench.launch(single=True)
    first, second = bench.job("echo first"), bench.job("echo second")
    assert bench.finished(first).conclusion == "success"
    bench.ended(runner)
    assert runner.status().state is State.SUCCEEDED
    assert second.status == "queued"
    assert bench.forge.work.runners == {}


def test_one_that_is_lost_goes_on_elsewhere_as_the_same_runner(bench: Bench) -> None:
    runner = bench.launch()
    bench.kit.lose_agent(runner, 0)
    until(lambda: runner.status().ranks[0].attempt == 2)
    job = bench.job()
    assert bench.finished(job).conclusion == "success"
    assert bench.forge.work.ever == 1


def test_a_job_that_was_lost_is_run_again(bench: Bench, tmp_path: Path) -> None:
    """Only then does it end: however long it takes until its machine is lost."""
    runner = bench.launch(token_on_machine=True)
    mark = tmp_path / "was-here"
    job = bench.job(f"test -e {mark} || {{ touch {mark}; sleep 600; }}")
    until(lambda: any(file.path in ("jobs/now", "busy") for file in runner.changed()))
    bench.kit.lose_agent(runner, 0)
    until(lambda: job.attempt == 2 and job.status == "completed", 60)
    assert job.conclusion == "success"


def test_ended_ones_are_removed_by_the_next_launch(bench: Bench) -> None:
    first = bench.launch(idle_timeout=1, token_on_machine=False)
    bench.ended(first)
    until(lambda: not any(each.online for each in bench.forge.work.runners.values()))
    second = bench.launch()
    assert not first.exists()
    assert [each.name for each in bench.forge.work.runners.values()] == [second.id]


def test_a_launch_that_was_broken_off_is_completed(bench: Bench) -> None:
    forge = bench.forge
    runner = bench.launch(name="builder")
    settings = runners.Settings(forge.driver, forge.repo, forge.token, "builder", single=False)
    fields: Fields = {"cloud": bench.kit.cloud}
    ctx = Context()

    taken = runners.make(settings, fields, id=TaskId.parse(runner.id), ctx=ctx)
    assert taken is not None
    assert (taken.id, forge.work.ever) == (runner.id, 1)

    runner.stop()
    until(lambda: not any(each.online for each in forge.work.runners.values()))
    again = runners.make(settings, fields, id=TaskId.parse(runner.id), ctx=ctx)
    assert again is not None
    assert again.id == runner.id
    found = again.registered(forge.token)
    assert (found and found.name, len(forge.work.runners)) == ("builder", 1)
    assert bench.finished(bench.job()).conclusion == "success"


def test_one_that_fits_is_used_again(bench: Bench) -> None:
    bench.launch(labels="cml,gpu")
    assert runners.launch(**bench.options(labels="gpu", reuse=True)) is None
    other = bench.launch(labels="big", reuse=True)
    assert other.exists()


def test_one_that_is_busy_is_not_idle(bench: Bench, tmp_path: Path) -> None:
    bench.needs("reuse_idle")
    first = bench.launch()
    enough = tmp_path / "enough"
    job = bench.job(f"until test -e {enough}; do sleep 0.1; done")
    bench.working(first, job)
    assert runners.launch(**bench.options(reuse=True)) is None
    second = bench.launch(reuse_idle=True)
    assert second.exists()
    enough.touch()
    bench.finished(job)


def test_a_name_is_taken_once(bench: Bench) -> None:
    bench.launch(name="builder")
    with pytest.raises(Conflict, match="builder is already registered"):
        bench.launch(name="builder")
    assert runners.launch(**bench.options(name="builder", reuse=True)) is None


def test_one_with_a_job_is_not_deleted(bench: Bench) -> None:
    runner = bench.launch()
    job = bench.job("sleep 60")
    bench.working(runner, job)
    with pytest.raises(Conflict, match="is running a job"):
        runner.remove(token=bench.forge.token)
    assert runner.exists()
    runner.remove(token=bench.forge.token, force=True)
    assert not runner.exists()
    bench.forge.work.runners.clear()  # a forge forgets it when it has noticed the loss


def test_a_token_that_is_wrong_makes_nothing(bench: Bench) -> None:
    with pytest.raises(AuthError, match="rejected the token"):
        bench.launch(token="wrong")
    assert runners.list() == []
    assert bench.forge.work.ever == 0


def test_a_forge_that_is_busy_is_waited_for(bench: Bench) -> None:
    refused: list[float] = []

    def busy(call: Call) -> None:
        if len(refused) < 3:
            refused.append(time.monotonic())
            raise Refusal(429, "slow down", {"Retry-After": "1"})

    bench.forge.before = busy
    bench.launch()
    assert refused[2] - refused[0] >= 2


def test_a_launch_that_fails_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(SojournError, match="startup script ended with exit code 5"):
        bench.launch(startup_script="#!/bin/sh\necho preparing\nexit 5\n")
    assert runners.list() == []
    assert bench.forge.work.runners == {}


def test_a_program_that_only_this_computer_can_download(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes later than the registration gets another one."""
    program, hear, late = bench.forge.program(), bench.hear, []

    def listen(event: Event) -> None:
        late.extend([event] if "Registering" in str(event) else [])
        hear(event)

    monkeypatch.setattr(bench, "hear", listen)
    monkeypatch.setattr(bench.forge, "program", lambda: b"" if late else program)
    with pytest.raises(SojournError, match="has SHA-256"):
        bench.launch()
    late.clear()
    runner = bench.launch(upload_program=True)
    assert bench.finished(bench.job()).conclusion == "success"
    assert runner.status().state is State.RUNNING


def test_the_startup_script_comes_first(bench: Bench) -> None:
    script = "#!/bin/sh\necho prepared > $HOME/prepared\n"
    runner = bench.launch(startup_script=script, environment={"HOME": "/tmp"})
    lines = [line.text for line in runner.logs()]
    assert not any("startup" in line for line in lines)


def test_a_public_repository_has_runners_for_one_job(bench: Bench) -> None:
    bench.forge.public = True
    runner = bench.launch(single=None)
    assert runner.runner().single is ("single" not in forges.lacking(bench.forge.driver))
    assert any("public" in text for text in bench.told)


def test_a_workdir_comes_without_what_is_ignored(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    for name in (".sojournignore", "secret", "tool"):
        (tmp_path / "work" / name).write_text("secret\n")
    runner = bench.launch(workdir="work")
    found = runner.exec("ls").stdout.decode().split()
    assert ("tool" in found, "secret" in found) == (True, False)
