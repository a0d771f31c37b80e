"""A laptop with an account whose machines only say that they run: the product's own calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import mock

from sojourn import clouds
from sojourn.clouds.vm.cleaning import Cleaner
from sojourn.core.context import Context
from sojourn.core.errors import NotFound
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Cloud, Member
from sojourn.core.status import Status
from sojourn.core.task import Storage, Task
from sojourn.engine import creation, imaging, lifecycle, observe, removal
from tests.support.waiting import until

ID = TaskId.for_name("faults", {})
SCRIPT = "#!/bin/sh\necho done\n"
IMAGE = "tools"
_REGION = "us-west"  # to look into all of them takes long
IMAGE_MAKER = imaging.maker_name(IMAGE, _REGION)


def _first_machine(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    """Once its cloud says that it runs."""
    while True:
        fleet = cloud.scaler(id).fleet(ctx)
        running = [each.id for each in fleet.machines if each.address] if fleet else []
        if running:
            return running[0]
        ctx.sleep(0.02)


class Laptop:
    """Every verb, each as a command of its own: nothing is remembered but the login.

    Of a cloud are `name`, `cloud`, `sdk`, what is loaded to log in, and `parts`: the kinds of what
    a task with a machine has, as the inventory of the account calls them. So does `of_image`, by
    how its lines begin.
    """

    name = ""
    sdk = ""
    parts: frozenset[str] = frozenset()
    of_image: tuple[str, ...] = ("image ", "snapshot ")  # all that there is of an image

    def __init__(self, sim: Any) -> None:
        self.sim = sim
        self.id = ID
        self.workdir = ""
        self.events: list[Any] = []

    @property
    def cloud(self) -> Cloud:
        raise NotImplementedError

    @property
    def ctx(self) -> Context:
        return Context(self.events.append)

    def task(self, **more: Any) -> Task:
        storage = Storage(workdir=self.workdir, output="output" if self.workdir else "")
        return clouds.placed(Task(SCRIPT, cloud=self.name, **{"storage": storage, **more}))

    def create(self, ctx: Context | None = None, **more: Any) -> None:
        launch = creation.Launch(ID, self.task(**more), {"SECRET": "of the task"})
        creation.create(ctx or self.ctx, self.cloud, launch)

    def status(self) -> Status:
        return observe.status(self.ctx, self.cloud, ID)

    def stop(self) -> None:
        lifecycle.stop(self.ctx, self.cloud, ID)

    def start(self) -> None:
        lifecycle.start(self.ctx, self.cloud, ID)

    def delete(self) -> None:
        removal.delete(self.ctx, self.cloud, ID)

    def exists(self) -> bool:
        return lifecycle.exists(self.ctx, self.cloud, ID)

    def make_image(self, ctx: Context | None = None) -> None:
        """As `sojourn image make tools` does, on a machine that only says that it runs."""
        task = self.task(stay=True, name=IMAGE_MAKER)
        launch = creation.Launch(TaskId.deterministic(IMAGE_MAKER), task, {})
        with (
            mock.patch.multiple(
                imaging,
                until_it_answers=lambda *_: None,
                _run_script=lambda *_: None,
                _machine_of=_first_machine,
            ),
            mock.patch.object(Cleaner, "clean", return_value=None),
        ):
            imaging.make(ctx or self.ctx, self.cloud, launch, IMAGE, SCRIPT)

    def delete_image(self) -> None:
        imaging.delete(self.ctx, self.cloud, IMAGE, _REGION)

    def images(self) -> list[tuple[str, bool]]:
        """The names of all in the region, and whether they are finished."""
        images = self.cloud.images()
        assert images
        found = images.all(self.ctx, _REGION)
        return [(each.name, each.ready) for each in found]

    def machines(self) -> tuple[Member, ...]:
        fleet = self.cloud.scaler(ID).fleet(self.ctx)
        assert fleet
        return fleet.machines

    def interrupt(self, running: Callable[[], list[str]], *, notice: bool) -> None:
        """Whichever runs: one may go between the look and the call."""

        def done() -> bool:
            for machine in running():
                with suppress(NotFound):
                    self.cloud.scaler(ID).interrupt(self.ctx, machine, notice=notice)
                    return True
            return False

        until(done)

    def calls_of(self, verb: Callable[[], object]) -> list[str]:
        """The calls that a verb makes, by name."""
        self.sim.calls.clear()
        verb()
        return [call.name for call in self.sim.calls]

    def ready_when_asked_twice(self, name: str, after: float = 3600) -> None:
        """Let time pass in the account as soon as a call of this name comes again."""
        seen: list[Any] = []

        def look(call: Any) -> None:
            seen.extend([call] if call.name == name else [])
            if len(seen) == 2:
                self.sim.watch(lambda _: None)
                self.sim.advance(after)

        self.sim.watch(look)

    def has_all(self) -> bool:
        """Whether everything that a task has is there, and a machine comes soon."""
        fleet = self.cloud.scaler(ID).fleet(self.ctx)
        if not fleet or fleet.wanted != 1:
            return False
        until(lambda: any(line.startswith("instance") for line in self.sim.inventory()))
        kinds = {line.split()[0] for line in self.sim.inventory()}
        return kinds >= self.parts
