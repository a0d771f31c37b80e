"""The agent on a machine that boots: it asks the cloud which other machines are gone.

python3 -m sojourn.clouds.vm.on_machine.agent PACKAGE SETTINGS, with the agent's document on the
standard input. PACKAGE is the cloud's own, with a class `Gone` in its module `gone`, and `Settings`
in `settings`.
"""

import sojourn.core.quickstart  # noqa: F401, I001 -- before all that uses dataclasses

import os
import sys
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sojourn.agent.background import say
from sojourn.agent.config import TROUBLE, Config
from sojourn.agent.environment import inherited
from sojourn.agent.given import put_on_machine
from sojourn.agent.work import Agent
from sojourn.clouds.vm.on_machine.beside import NUMBER
from sojourn.clouds.vm.on_machine.container import Contained
from sojourn.clouds.vm.on_machine.unstored import tell
from sojourn.clouds.vm.on_machine.visited import MachineScript
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from sojourn.agent.process import RunningScript
    from sojourn.clouds.vm.on_machine.settings import CloudSettings

__all__ = ["Dead"]


class Dead:
    """Machines that are gone: those that the document names, and those that the cloud tells of.

    A cloud that does not answer tells of none: then a machine has to be silent for long enough.
    """

    def __init__(self, known: "Container[str]", gone: "Container[str]") -> None:
        self._known = known
        self._gone = gone

    def __contains__(self, machine: object) -> bool:
        if machine in self._known:
            return True
        try:
            return machine in self._gone
        except (OSError, HTTPException) as error:
            say(f"could not ask whether {machine} is gone: {error}")
            return False


class _Beside:
    """Runs the script here, and tells those who run commands beside it which process it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / NUMBER

    def __call__(
        self,
        file: Path,
        workdir: Path,
        environment: "Mapping[str, str]",
        arguments: "Sequence[str]",
        wake: "Callable[[], None]",
    ) -> "RunningScript":
        put_on_machine(self._folder)
        started = MachineScript(file, workdir, {**inherited(os.environ), **environment}, arguments)
        self._file.write_text(str(started.pid))
        return started


def _run_contained(config: Config, dead: Dead, image: str) -> int:
    contained = Contained(image, Path(config.folder), lambda: agent.going)
    agent = Agent(config, dead=dead, launch=contained, unstored=tell)
    contained.clear()
    try:
        return agent.run()
    finally:
        contained.end()


def main() -> int:
    package = sys.argv[1]
    kind = cast("type[CloudSettings]", import_module(f"{package}.settings").Settings)
    settings = kind.read(Path(sys.argv[2]))
    gone = cast("Container[str]", import_module(f"{package}.gone").Gone(settings))
    try:
        config = Config.parse(sys.stdin.read())
        folder, dead = Path(config.folder), Dead(config.dead, gone)
        if image := settings.common.container:
            return _run_contained(config, dead, image)
        return Agent(config, dead=dead, launch=_Beside(folder), unstored=tell).run()
    except SojournError as error:
        say(str(error))
        return TROUBLE


if __name__ == "__main__":
    os._exit(main())  # as `sojourn.agent` does
