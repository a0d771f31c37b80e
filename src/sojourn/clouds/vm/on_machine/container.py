"""The script in a container of this machine: its image, and nothing of ours but its own folder.

Its environment goes by way of a file, which the command line and `docker inspect` do not show.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.disk import remove_tree
from sojourn.agent.given import ready
from sojourn.agent.neighbour import Neighbour, launcher
from sojourn.clouds.vm.on_machine.engine import Engine, EngineError, cannot, find, installed
from sojourn.clouds.vm.on_machine.within import MARK
from sojourn.core.errors import Cancelled, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sojourn.agent.process import RunningScript

__all__ = ["Contained", "full_name"]

_NAME = "sojourn-script"
# The network and the shared memory of the machine: there is nobody else on it. Files of the folder
# keep the labels that they have, healthchecks would count as processes of the script.
_WORDS = (
    *("--network", "host", "--ipc", "host", "--pids-limit", "-1", "--no-healthcheck"),
    *("--log-driver", "none", "--security-opt", "label=disable"),
)
_TAG_BEFORE_DIGEST = re.compile(r":[^/:@]+(?=@)")
_READY_WITHIN = 60.0  # seconds
_LOOK_EVERY = 0.5
_NO_TOOLKIT = ("could not select device driver", "unresolvable cdi devices", "nvidia.com/gpu")
_TAKEN = "already in use"  # its name, by one that is still being removed
_TOOLKIT = (
    "the machine image has no NVIDIA Container Toolkit, without which a container has no GPUs; "
    "choose a VM image that has it with options.vm_image"
)


class Contained:
    """Runs a script in a container of this image. `going`: whether the machine has to go."""

    def __init__(self, image: str, folder: Path, going: Callable[[], bool]) -> None:
        self._image = full_name(image)
        self._folder = folder
        self._mark = folder.parent / MARK  # the script cannot write there
        self._going = going
        self._engine: Engine | None = None
        self._neighbour = Neighbour(folder)

    def clear(self) -> None:
        """Remove what an agent that died here left, which the script may have changed."""
        self._mark.unlink(missing_ok=True)
        self._remove(find(self._going))
        remove_tree(self._folder)
        self._folder.mkdir(parents=True)

    def __call__(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Callable[[], None],
    ) -> RunningScript:
        """Nothing of the image runs before this."""
        self._engine = engine = installed(self._going)
        engine.wait()
        engine.pull(self._image)
        self._remove(engine)
        self._neighbour.prepare()
        self._run(engine)
        self._until_ready(engine)
        started = self._neighbour.start(file, workdir, environment, arguments, wake)
        self._tell(engine)
        return started

    def end(self) -> None:
        """The script has ended, and what it left goes with its container."""
        self._mark.unlink(missing_ok=True)
        self._neighbour.end()
        self._remove(self._engine)

    def _run(self, engine: Engine) -> None:
        gpus = engine.gpus()
        shared = f"{self._folder}:{self._folder}"
        mounts = ["--volume", shared, *self._files()]
        words = ["--name", _NAME, *_WORDS, *gpus, *mounts, "--entrypoint", "/bin/sh"]
        text = launcher(self._folder)
        try:
            engine.call("run", "--detach", "--rm", *words, self._image, "-c", text)
        except EngineError as error:
            why = str(error)
            if _TAKEN in why.lower():
                raise Transient(f"Could not start a container yet: {why}") from error
            if gpus and any(part in why.lower() for part in _NO_TOOLKIT):
                why = f"{_TOOLKIT}: {why}"
            raise cannot(f"could not start a container of {self._image}: {why}") from error

    def _files(self) -> list[str]:
        """The small files of the task, each at its path; commas in it would end the path."""
        words = []
        for file, path in ready(self._folder):
            fields = ("type=bind", f"source={file}", f"target={path}")
            words += ["--mount", ",".join(map(_quoted, fields))]
        return words

    def _until_ready(self, engine: Engine) -> None:
        give_up = time.monotonic() + _READY_WITHIN
        while not self._neighbour.wait(_LOOK_EVERY):
            if self._going():
                raise Cancelled
            try:
                running = engine.call("inspect", "--format", "{{.State.Running}}", _NAME)
            except EngineError:
                running = ""  # it goes when it ends
            if running != "true" and not self._neighbour.wait(0):
                raise cannot(f"the container of {self._image} ended before the script began")
            if time.monotonic() > give_up:
                raise Transient("The container of the script does not respond")

    def _tell(self, engine: Engine) -> None:
        """For commands beside the script, see `within`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(self._mark, flags, 0o600), "w") as file:
            json.dump({"program": engine.program, "name": _NAME}, file)

    def _remove(self, engine: Engine | None) -> None:
        """One that is not there is no trouble, nor is a daemon that has not started yet."""
        if engine:
            with suppress(EngineError, Cancelled):
                with suppress(EngineError):
                    engine.call("kill", _NAME)  # Podman would ask it first, and wait
                engine.call("rm", "--force", _NAME)


def _quoted(field: str) -> str:
    """A field of comma-separated values."""
    escaped = field.replace('"', '""')
    return f'"{escaped}"' if any(mark in field for mark in ',"\n') else field


def full_name(image: str) -> str:
    """With its registry: without one, Docker means its own, and Podman may ask whom it is of.

    Beside a digest a tag says nothing, and Podman takes only one of both.
    """
    image = _TAG_BEFORE_DIGEST.sub("", image)
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"
