"""The whole life of a CI runner on clouds with machines of their own, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.contract.clouds.vm_kit import VmKit
from tests.simcloud.machines.serving import forward
from tests.simcloud.machines.spec import Endpoint
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.support.waiting import until
from tests.terraform.project import Project

__all__ = ["RIGHT", "WRONG", "live_as_runner", "on_machines"]

RIGHT, WRONG = "iterative_cml_runner", "iterative_machine"  # the page's examples have the second
# The block of the old provider's page, with an image by its own name, as in whole_life.
_RUNNER = """
resource "{kind}" "runner" {{
    repo          = "{repo}"
    driver        = "github"
    labels        = "tf"
    cloud         = "{cloud}"
    region        = "us-west"
    instance_type = "m"
    {more}
}}
"""
_WHO = "echo I am $(id -un)"


@contextmanager
def on_machines(kit: VmKit) -> Iterator[SimForge]:
    """A forge that this computer and all machines reach at the same address."""
    with served(SimGitHub()) as forge:
        port = urlsplit(forge.url).port
        assert port
        kit.host.reachable = (Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),)
        yield forge


def live_as_runner(
    project: Project, forge: SimForge, cloud: str, more: str = "", kind: str = RIGHT
) -> None:
    """From plan to destroy, with a job; nothing is left at the forge."""
    project.environment["CML_TOKEN"] = forge.token
    project.write(_RUNNER.format(kind=kind, repo=forge.repo, cloud=cloud, more=more))
    project.init()
    project.plan(code=2)
    said = project.apply().said
    assert ("A runner is another resource: iterative_cml_runner" in said) is (kind == WRONG)
    job = forge.work.queue(_WHO, "tf")
    until(lambda: forge.work.settled(job).status == "completed", 60)
    assert (job.conclusion, job.log) == ("success", "I am runner\n")
    project.plan(code=0)
    project.destroy()
    assert forge.work.runners == {}
