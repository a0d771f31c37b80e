"""Jobs of CI runners on machines with a real Docker: who uses it is root there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from sojourn import runners
from sojourn.core.errors import SojournError
from sojourn.core.events import Event, Warned
from tests.contract.clouds.aws_kit import make
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.vm_kit import VmKit
from tests.simcloud.machines import containers
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.serving import forward
from tests.simcloud.machines.spec import Endpoint
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

_STARTED = """#!/bin/sh -e
groupadd --force docker
systemctl start docker
# The registry may start after the machine.
timeout 300 sh -c 'until docker pull -q localhost:5000/small:1; do sleep 0.2; done'
"""
_THEIRS = f"{_STARTED}useradd --create-home --groups docker runner\n"
# The container has the network of the machine, and its user is root, whoever the job is. The
# service refuses to speak with those who have no session, so any answer at all is one.
_ATTACK = f"""
docker run --rm --network host {containers.SMALL} \\
    nc -w 5 169.254.169.254 80 </dev/null && echo "REA""CHED" || true
python3 -c 'import socket
socket.create_connection(("169.254.169.254", 80), 5)
print("REA" + "CHED directly")' || true
echo "groups: $(id -Gn)"
echo "looked around"
"""


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VmKit]:
    if reason := Host.ssh_unavailable() or containers.unavailable("docker"):
        pytest.skip(reason)
    with in_use(make(tmp_path_factory), monkeypatch) as made:
        containers.install(made.host.image, "docker")
        yield made


@pytest.fixture
def forge(kit: VmKit) -> Iterator[SimGitHub]:
    """On the loopback of this computer and of all machines."""
    with served(SimGitHub()) as made:
        assert isinstance(made, SimGitHub)
        made.work.lost_after = patience(made.work.lost_after)
        port = urlsplit(made.url).port
        assert port
        kit.host.reachable = (Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),)
        yield made


def launched(forge: SimGitHub, **more: Any) -> runners.Launched:
    given = {"driver": "github", "repo": forge.repo, "token": forge.token, "single": False}
    given |= {"cloud": "aws", "startup_script": _STARTED, "idle_timeout": 300}
    made = runners.launch(**{**given, **more})
    assert made is not None
    return made


def attacked(forge: SimGitHub) -> Job:
    job = forge.work.queue(_ATTACK)
    until(lambda: forge.work.settled(job).status == "completed", 120)
    assert "looked around" in job.log
    return job


def test_jobs_have_no_docker_unless_it_was_asked_for(kit: VmKit, forge: SimGitHub) -> None:
    runner = launched(forge)
    job = attacked(forge)
    assert "groups: runner" in job.log
    assert "permission denied" in job.log
    assert "REACHED" not in job.log
    runner.remove(token=forge.token)


def test_with_docker_jobs_are_root_and_the_launcher_says_so(kit: VmKit, forge: SimGitHub) -> None:
    """This is what the page and the warning tell: no rule for users holds for root."""
    told: list[str] = []

    def hear(event: Event) -> None:
        told.extend([event.message] if isinstance(event, Warned) else [])

    runner = launched(forge, docker=True, on_event=hear)
    assert any("they can become root on the machine" in each for each in told)
    job = attacked(forge)
    assert "groups: runner docker" in job.log
    assert "REACHED" in job.log
    assert "REACHED directly" not in job.log
    runner.remove(token=forge.token)


def test_a_user_of_the_image_with_docker_is_refused(kit: VmKit, forge: SimGitHub) -> None:
    with pytest.raises(SojournError) as failed:
        launched(forge, startup_script=_THEIRS)
    text = f"{failed.value.message} {failed.value.hint}"
    assert "the image lets its user runner use /run/docker.sock" in text
    assert forge.work.runners == {}
