"""What a runner is to be, beside its machine, and what of it contradicts itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sojourn import forges
from sojourn.core.errors import InvalidInput
from sojourn.core.runner import Runner

__all__ = ["Settings"]

_VOLUME = re.compile(r"[\w./@~-]+(:[\w./@~,-]+)*")  # one that needs no quotes anywhere
_ROOT = re.compile(r"/|.*/[\w-]+\.sock")  # on the machine: whoever has it is root


@dataclass(frozen=True)
class Settings:
    """What a runner is, beside its machine. `single`: None is what suits the repository."""

    driver: str = ""
    repo: str = ""
    token: str = field(default="", repr=False)
    name: str = ""
    labels: tuple[str, ...] = Runner.labels
    idle_timeout: int = Runner.idle_timeout
    single: bool | None = None
    reuse: bool = False
    reuse_idle: bool = False
    startup_script: str = ""
    token_on_machine: bool | None = None
    docker: bool = False
    docker_volumes: tuple[str, ...] = ()
    ca_file: str = ""
    upload_program: bool = False

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.single and (self.reuse or self.reuse_idle):
            raise InvalidInput("single", "cannot be combined with reuse")
        if not self.labels or not all(self.labels):
            raise InvalidInput("labels", "must be a comma-separated list such as 'cml,gpu'")
        for volume in self.docker_volumes:
            if not _VOLUME.fullmatch(volume):
                raise InvalidInput(
                    "docker_volumes", f"must be like /on/machine:/in/container, got {volume!r}"
                )
            if _ROOT.fullmatch(volume.partition(":")[0]) and not self.docker:
                raise InvalidInput(
                    "docker_volumes", f"{volume} makes jobs root on the machine; set docker as well"
                )
        if self.docker and self.token_on_machine:
            raise InvalidInput(
                "token_on_machine",
                "cannot be combined with docker: jobs that use Docker are root, and could read it",
            )

    def check_for(self, driver: str) -> None:
        """Refuse what this forge does not have."""
        if self.docker_volumes and "docker_volumes" not in forges.options_of(driver):
            raise InvalidInput("docker_volumes", f"not supported for {driver}")
        for name, why in forges.lacking(driver).items():
            if getattr(self, name):
                raise InvalidInput(name, f"not supported for {driver}: {why}")
