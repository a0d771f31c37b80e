"""The whole life of a machine on a cloud whose machines boot, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.contract.clouds.vm_kit import VmKit
from tests.support.waiting import until
from tests.terraform.project import Project

_ADDRESS = "iterative_machine.machine"
# The block of the old provider's page; `{image}` by its own name, as in whole_life.
_MACHINE = """
resource "iterative_machine" "machine" {{
  {cloud}
  region            = "us-west"
  name              = "machine"
  instance_hdd_size = 10
  instance_type     = "m"
  image             = "{image}"
  {more}
}}
"""
_SCRIPT = 'startup_script = "#!/bin/sh\\necho started\\n"'


@contextmanager
def _on_the_road(kit: VmKit, project: Project) -> Iterator[None]:
    """The way of `ssh` to simulated machines is in the home of whoever has the kit."""
    link = Path(project.environment["HOME"]) / ".ssh"
    link.symlink_to(Path(kit.environment()["HOME"]) / ".ssh")
    try:
        yield
    finally:
        link.unlink()


def live_as_machine(kit: VmKit, project: Project, cloud: str, image: str) -> None:
    """From plan to destroy, with a loss; `cloud` as the page has it, empty if it has none."""
    with _on_the_road(kit, project):
        _live(project, cloud, image)
    assert kit.leaks() == []


def _live(project: Project, cloud: str, image: str) -> None:
    named = f'cloud = "{cloud}"' if cloud else ""
    project.write(_MACHINE.format(cloud=named, image=image, more=_SCRIPT))
    project.init()
    project.plan(code=2)
    project.apply()
    first = project.task(_ADDRESS)
    assert first["state"] == "running"
    assert first["instance_ip"]
    assert first["instance_launch_time"]
    assert "PRIVATE KEY" in first["ssh_private"]
    assert project.sojourn("exec", first["id"], "--", "echo", "here").out == "here\n"
    project.plan(code=0)

    project.sojourn("interrupt", first["id"], "--no-notice")
    until(lambda: _started(project, first["id"]) == 2, 100)
    second = project.refreshed(_ADDRESS)
    assert second["id"] == first["id"]
    assert second["instance_launch_time"] != first["instance_launch_time"]
    project.plan(code=0)
    project.destroy()


def _started(project: Project, id: str) -> int:
    return project.sojourn("logs", id).out.count("started\n")


def live_with_own_key(kit: VmKit, project: Project, cloud: str, image: str) -> None:
    """A key as the old provider took it opens the machine, and never leaves this computer."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    (project.folder / "key").touch(mode=0o600)
    (project.folder / "key").write_text(private)
    more = 'ssh_private = file("key")'
    project.write(_MACHINE.format(cloud=f'cloud = "{cloud}"', image=image, more=more))
    project.init()
    with _on_the_road(kit, project):
        project.apply()
        made = project.task(_ADDRESS)
        assert made["ssh_private"] == private
        assert made["ssh_public"].startswith("ssh-rsa ")
        keys = "/home/ubuntu/.ssh/authorized_keys"
        assert made["ssh_public"] in project.sojourn("exec", made["id"], "--", "cat", keys).out
        project.plan(code=0)
        project.destroy()
    assert kit.leaks() == []
