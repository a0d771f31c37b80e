"""CI runners on machines: who jobs are there, what they can find, and what a loss does to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from sojourn import runners
from sojourn.core.status import State
from tests.simcloud.machines.serving import forward
from tests.simcloud.machines.spec import Endpoint
from tests.simcloud.vm.sides import Side, machine_of, sides
from tests.simforge.github import SimGitHub
from tests.simforge.server import served
from tests.simforge.work import Job
from tests.support.waiting import patience, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin"),
        reason="machines hide their identity from jobs by iptables: apt-get install iptables",
    ),
]

# A job that looks for everything that is not its business.
NOSY = """
echo "I am $(id -un)"
env
cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' || :
grep -rsI . /etc/sojourn /var/lib/sojourn /opt/sojourn /run /root /tmp || :
curl -s -m 5 http://169.254.169.254/latest/meta-data/ && echo "META""DATA" || :
python3 -c 'import urllib.request as u
print("META" + "DATA", u.urlopen("http://169.254.169.254/", timeout=5).status)' 2>/dev/null || :
echo "looked around"
"""


@pytest.fixture
def forge(side: Side) -> Iterator[SimGitHub]:
    """On the loopback of this computer and of all machines."""
    with served(SimGitHub()) as made:
        assert isinstance(made, SimGitHub)
        made.work.lost_after = patience(made.work.lost_after)  # programs are late as well
        port = urlsplit(made.url).port
        assert port
        side.kit.host.reachable = (Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),)
        yield made


def launched(side: Side, forge: SimGitHub, **more: Any) -> runners.Launched:
    given = {"driver": "github", "repo": forge.repo, "token": forge.token, "single": False}
    made = runners.launch(**{**given, "cloud": side.kit.cloud, **more})
    assert made is not None
    return made


def finished(forge: SimGitHub, job: Job) -> Job:
    until(lambda: forge.work.settled(job).status == "completed", 60)
    return job


@sides("aws", full=("gcp", "az"))
def test_jobs_find_neither_tokens_nor_the_identity_of_the_machine(
    side: Side, forge: SimGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CML_TOKEN", forge.token)
    runner = launched(side, forge, token="", token_on_machine=True, idle_timeout=300)
    job = finished(forge, forge.work.queue(NOSY))
    assert job.conclusion == "success"
    assert "I am runner" in job.log
    assert "looked around" in job.log
    assert "METADATA" not in job.log
    assert forge.token not in job.log
    for token in forge.registration_tokens:
        assert token not in job.log
    machine = machine_of(side, runner).machine
    for process in machine.processes():
        assert forge.token not in repr(process)
    assert forge.token not in machine.console()
    assert forge.token not in repr([line.text for line in runner.logs()])
    for thing in side.in_account(runner.id):
        assert forge.token not in repr(thing)
    runner.remove()
    assert forge.work.runners == {}


@sides("aws", full=("gcp", "az"))
def test_a_loss_in_the_middle_of_a_job(side: Side, forge: SimGitHub) -> None:
    runner = launched(side, forge, token_on_machine=True, idle_timeout=15, spot=0)
    job = forge.work.queue("until test -e /dev/shm/go; do sleep 0.1; done")
    until(lambda: any(file.path == "jobs/now" for file in runner.changed()))
    side.account.interrupt(machine_of(side, runner).id, notice=False)
    until(lambda: job.attempt == 2 and job.status == "in_progress", 90)
    side.kit.appear("go")
    until(lambda: job.attempt == 2 and job.conclusion == "success", 60)
    until(lambda: runner.status().state is State.SUCCEEDED, 60)
    assert forge.work.ever == 1
    assert forge.work.runners == {}
    runner.remove(token=forge.token)


@sides("aws", full=("gcp", "az"))
def test_a_machine_that_cannot_download_the_program(
    side: Side, forge: SimGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for it after the registration, as every machine does, gets another one."""
    program, late = forge.program(), []

    def hear(event: object) -> None:
        late.extend([event] if "Registering" in str(event) else [])

    monkeypatch.setattr(forge, "program", lambda: b"" if late else program)
    runner = launched(side, forge, upload_program=True, idle_timeout=300, on_event=hear)
    assert late
    assert finished(forge, forge.work.queue("echo done")).conclusion == "success"
    runner.remove(token=forge.token)
    assert forge.work.runners == {}
