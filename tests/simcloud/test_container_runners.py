"""A CI runner whose program runs in a container image, on a machine with a real Podman."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from sojourn import State, runners
from tests.contract.clouds.aws_kit import make
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.vm_kit import VmKit
from tests.simcloud.machines import containers
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.serving import forward
from tests.simcloud.machines.spec import Endpoint
from tests.simforge.github import SimGitHub
from tests.simforge.server import served
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin"),
        reason="machines hide their identity from jobs by iptables: apt-get install iptables",
    ),
]
# Stands in for the actions runner where there is nothing but busybox: for one job.
_RUN = r"""#!/bin/sh
made=$(printf %s "$ACTIONS_RUNNER_INPUT_JITCONFIG" | base64 -d)
unset ACTIONS_RUNNER_INPUT_JITCONFIG
part() { printf '%s' "$2" | sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p"; }
url=$(part url "$made") key=$(part key "$made")
call() { wget -q -O - --post-data "{\"key\": \"$key\"$2}" "$url/_program/$1"; }
job=
until [ -n "$job" ]; do
	sleep 0.2
	answer=$(call poll "") || exit 1
	job=$(part id "$answer")
done
GITHUB_RUN_ID=$(part run "$answer") sh -e "$ACTIONS_RUNNER_HOOK_JOB_STARTED"
log=$(sh -e -c "$(part script "$answer")" 2>&1 | tr -c ' -~' ';' | tr '"\\' '  ')
sh -e "$ACTIONS_RUNNER_HOOK_JOB_COMPLETED"
call done ", \"job\": \"$job\", \"code\": \"0\", \"log\": \"$log\"" >/dev/null
"""


class _SmallForge(SimGitHub):
    def program(self) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, text in (("config.sh", "#!/bin/sh\nexit 1\n"), ("run.sh", _RUN)):
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(text), 0o755
                archive.addfile(info, io.BytesIO(text.encode()))
        return gzip.compress(buffer.getvalue(), mtime=0)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VmKit]:
    if reason := Host.ssh_unavailable() or containers.unavailable("podman"):
        pytest.skip(reason)
    with in_use(make(tmp_path_factory), monkeypatch) as made:
        containers.install(made.host.image, "podman")
        yield made


@pytest.fixture
def forge(kit: VmKit) -> Iterator[SimGitHub]:
    """On the loopback of this computer and of all machines, which containers have as well."""
    with served(_SmallForge()) as made:
        assert isinstance(made, SimGitHub)
        made.work.lost_after = 60.0  # the program tells of a job when it is over
        port = urlsplit(made.url).port
        assert port
        kit.host.reachable = (Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),)
        yield made


def launched(forge: SimGitHub, **more: Any) -> runners.Launched:
    given = {"driver": "github", "repo": forge.repo, "token": forge.token, "single": True}
    image = f"docker://{containers.SMALL}"
    made = runners.launch(**{**given, "cloud": "aws", "image": image, **more})
    assert made is not None
    return made


_NOSY = (
    "echo I am $(id -un 2>/dev/null || id -u), from $FROM_IMAGE; env; "
    "cat /proc/*/environ 2>/dev/null | tr '\\\\0' ' ' || true; "
    "grep -rs . /etc/sojourn /var/lib/sojourn /opt/sojourn || true; echo looked around"
)


@pytest.mark.parametrize(
    ("image", "user", "number"),
    [(containers.SMALL, "runner", 1001), (containers.PERSON, "1234", 1234)],
)
def test_a_job_in_a_container_image(
    kit: VmKit, forge: SimGitHub, image: str, user: str, number: int
) -> None:
    """It is not root, and reaches neither the token nor the machine's identity, though containers
    have the network of the machine."""
    runner = launched(forge, token_on_machine=True, image=f"docker://{image}")
    [machine] = [each for each in kit.host.machines if each.alive]
    rules = machine.run("iptables", "--list-rules", "OUTPUT").stdout
    own = [each for each in rules.splitlines() if f"--uid-owner {number} " in each]
    rejected = [each for each in own if "-d 169.254.169.254/32" in each and "-j REJECT" in each]
    assert len(rejected) == 2, "of TCP and of UDP"
    job = forge.work.queue(_NOSY)
    until(lambda: forge.work.settled(job).status == "completed", 60)
    assert f"I am {user}, from yes" in job.log
    assert "looked around" in job.log
    assert forge.token not in job.log
    until(lambda: runner.status().state is State.SUCCEEDED, 60)
    assert forge.work.runners == {}
    runner.remove(token=forge.token)
