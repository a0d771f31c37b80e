"""Docker on this machine, or Podman, which takes the same words: found, installed, asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.agent.process import CannotStart
from sojourn.core.errors import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Engine", "EngineError", "cannot", "find", "installed"]

_PROGRAMS = ("docker", "podman")
_CARD = Path("/dev/nvidia0")
_CODE = 125  # what Docker ends with if a container cannot be run
_ASK_WITHIN = 120.0  # seconds
_STARTED_WITHIN = 60.0  # for its daemon, after a boot
_INSTALLED_WITHIN = 900.0
_PULLED_WITHIN = 3600.0
_PAUSES = (5.0, 15.0, 45.0)  # seconds between tries to pull
_TICK = 0.2
_LONGEST = 500  # characters of an error
_ADVICE = ("See 'docker", "Run 'docker")
_WHO = re.compile(r"^(docker: )?(Error( response from daemon)?: )?")
# Parts of errors that another try would only repeat.
_HOPELESS = (
    "authentication required",
    "denied",
    "does not exist",
    "manifest unknown",
    "name unknown",
    "no matching manifest",
    "no space left",
    "not found",
    "unauthorized",
)
_APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300")
_CHOOSE = "choose a VM image that has it with options.vm_image"


class EngineError(Exception):
    """It did not do what it was told to; the text is what it said."""


class Engine:
    """One that is there. `going`: whether the machine has to go, so that nothing is waited for."""

    def __init__(self, program: str, going: Callable[[], bool]) -> None:
        self.program = program
        self._going = going

    @property
    def _name(self) -> str:
        return os.path.basename(self.program)

    def call(self, *words: str, within: float = _ASK_WITHIN) -> str:
        """What it prints."""
        return _run([self.program, *words], within, self._going)

    def wait(self) -> None:
        """Until it responds: after a boot, its daemon may still be on its way."""
        give_up = time.monotonic() + _STARTED_WITHIN
        while True:
            try:
                self.call("version")
                return
            except EngineError as error:
                if time.monotonic() > give_up:
                    raise cannot(f"{self._name} does not respond: {error}") from error
            if self._name == "docker":
                _try(["systemctl", "start", "docker"], self._going)
            _pause(1.0, self._going)

    def pull(self, image: str) -> None:
        """Fetch an image, or have the one that is there already if that cannot be."""
        for pause in (*_PAUSES, None):
            say(f"pulling {image}")
            try:
                self.call("pull", "--quiet", image, within=_PULLED_WITHIN)
                return
            except EngineError as error:
                why = str(error)
            if self._has(image):
                say(f"could not pull {image}, using the one on this machine: {why}")
                return
            if pause is None or any(part in why.lower() for part in _HOPELESS):
                raise cannot(f"could not pull the container image {image}: {why}")
            say(f"could not pull {image}, retrying: {why}")
            _pause(pause, self._going)

    def _has(self, image: str) -> bool:
        try:
            self.call("image", "inspect", image)
        except EngineError:
            return False
        return True

    def gpus(self) -> Sequence[str]:
        """What has to be said for a container to have the GPUs of this machine."""
        if not _CARD.exists() and not _try(["nvidia-smi", "-L"], self._going):
            return ()
        if self._name == "podman":  # older ones have no other word for it
            return ("--device", "nvidia.com/gpu=all")
        return ("--gpus", "all")


def installed(going: Callable[[], bool]) -> Engine:
    """The one that this machine has. If there is none, Docker gets installed."""
    found = find(going)
    if found is None:
        _install(going)
        found = find(going)
    if found is None:
        raise cannot(f"the machine image has no Docker, and installing it did not help; {_CHOOSE}")
    return found


def cannot(why: str) -> CannotStart:
    """On other machines of the task it would be no better."""
    return CannotStart(why, _CODE)


def find(going: Callable[[], bool]) -> Engine | None:
    """The one that this machine has, if any."""
    programs = (shutil.which(name) for name in _PROGRAMS)
    return next((Engine(program, going) for program in programs if program), None)


def _install(going: Callable[[], bool]) -> None:
    if not shutil.which("apt-get"):
        raise cannot(f"the machine image has no Docker, and no apt-get to install it; {_CHOOSE}")
    say("the machine image has no Docker; installing it")
    try:
        _run([*_APT, "update"], _INSTALLED_WITHIN, going)
        _run([*_APT, "install", "--yes", "docker.io"], _INSTALLED_WITHIN, going)
    except EngineError as error:
        raise cannot(
            f"the machine image has no Docker, and installing it failed: {error}; {_CHOOSE}"
        ) from error


def _try(command: Sequence[str], going: Callable[[], bool]) -> bool:
    try:
        _run(command, _ASK_WITHIN, going)
    except EngineError:
        return False
    return True


def _run(command: Sequence[str], within: float, going: Callable[[], bool]) -> str:
    """What a command prints; raises EngineError with its last words, Cancelled if all has to go."""
    give_up = time.monotonic() + within
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )
    except OSError as error:
        raise EngineError(f"{command[0]}: {error.strerror}") from error
    while True:
        try:
            output, errors = process.communicate(timeout=_TICK)
            break
        except subprocess.TimeoutExpired:
            if not going() and time.monotonic() < give_up:
                continue
        process.kill()
        process.communicate()
        if going():
            raise Cancelled
        raise EngineError(f"{os.path.basename(command[0])} timed out")
    if process.returncode:
        raise EngineError(_last_words(errors or output) or f"exit code {process.returncode}")
    return output.strip()


def _last_words(text: str) -> str:
    """The last line of what a program said of its failure, without advice for people at a shell."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(_ADVICE)]
    return _WHO.sub("", told[-1])[-_LONGEST:].rstrip(".") if told else ""


def _pause(seconds: float, going: Callable[[], bool]) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if going():
            raise Cancelled
        time.sleep(_TICK)
