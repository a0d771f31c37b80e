"""Launching a runner: a task whose script is the forge's runner program."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sojourn import clouds, engine, forges
from sojourn.core.environment import resolve_environment
from sojourn.core.errors import Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.core.runner import CREDENTIALS, TOKEN, Runner
from sojourn.core.task import Storage, Task
from sojourn.forges import network
from sojourn.runners.authorities import read_authorities, trust
from sojourn.runners.programs import at_hand
from sojourn.runners.script import runner_script
from sojourn.runners.sweeping import sweep
from sojourn.runners.target import Target, find_target
from sojourn.runners.tokens import remember
from sojourn.taskfiles.changes import changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud
    from sojourn.core.runner import Program
    from sojourn.forges.forge import Forge, Registered, Registration
    from sojourn.taskfiles.changes import Fields

__all__ = ["IDLE_TIMEOUT", "Made", "Settings", "check", "launch"]

IDLE_TIMEOUT = 300  # seconds
_JOB_USER = "runner"
_LOOK_EVERY = 2.0  # seconds between questions to a forge
_UNDO_WITHIN = 60.0
_VOLUME = re.compile(r"[\w./@~-]+(:[\w./@~,-]+)*")  # one that needs no quotes anywhere
_ROOT = re.compile(r"/|.*/[\w-]+\.sock")  # on the machine: whoever has it is root


@dataclass(frozen=True)
class Settings:
    """What a runner is, beside its machine. `single`: None is what suits the repository."""

    driver: str = ""
    repo: str = ""
    token: str = field(default="", repr=False)
    name: str = ""
    labels: tuple[str, ...] = ("cml",)
    idle_timeout: int = IDLE_TIMEOUT
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


class Made(NamedTuple):
    """A runner that is online."""

    cloud: Cloud
    id: TaskId
    task: Task


def check(ctx: Context, settings: Settings, fields: Fields) -> None:
    """Refuse what could not be launched; makes nothing. Names are not looked at: one that is taken
    now may be free then."""
    target, forge = _opened(ctx, settings)
    with ctx.step(f"Asking {target.repo}"):
        forge.check(ctx)
    cloud = clouds.load(fields.get("cloud", Task.cloud))
    travels = _token_travels(cloud, settings, forge, fields)
    _warn_of_jobs(ctx, cloud, settings, travels=travels)
    runner = _runner(target, settings, _id_for(settings), {})
    engine.creation.check(ctx, cloud, _task(cloud, runner, settings, fields))


def _opened(ctx: Context, settings: Settings) -> tuple[Target, Forge]:
    """Whom it is for, after all that can be refused without asking anybody."""
    settings.check()
    target = find_target(settings.driver, settings.repo, settings.token, os.environ)
    settings.check_for(target.driver)
    trust(settings.ca_file)
    if target.is_in_clear:
        ctx.warn(f"{target.repo} is not encrypted: anybody on the way can read the token.")
    target = target.settled(ctx)
    settings.check_for(target.driver)
    return target, target.open()


def launch(
    ctx: Context, settings: Settings, fields: Fields, id: TaskId | None = None
) -> Made | None:
    """Returns when the runner is online. None: another one was there to be used again.

    `id`: that of an earlier launch, which may have been broken off.
    """
    target, forge = _opened(ctx, settings)
    cloud = clouds.load(fields.get("cloud", Task.cloud))
    with ctx.step(f"Asking {target.repo}"):
        repository = forge.check(ctx)
        remember(target.token, target.repo)
        registered = forge.runners(ctx)
        if id is not None:
            if earlier := _earlier(ctx, cloud, id, forge, registered):
                return earlier
            registered = [each for each in registered if str(id) not in each.labels]
        if _is_there(ctx, settings, registered):
            return None
        programs = forge.programs(ctx)
    settings = _with_single(ctx, settings, repository.public, target.driver)
    chosen = id or _id_for(settings)
    runner = _runner(target, settings, chosen, programs)
    travels = _token_travels(cloud, settings, forge, fields)
    _warn_of_jobs(ctx, cloud, settings, travels=travels)
    task = _task(cloud, runner, settings, fields)
    engine.creation.check(ctx, cloud, task)
    sweep(ctx, cloud, target.repo, forge, registered)
    environment = resolve_environment(task.environment, os.environ, ci=False)
    online = partial(_until_online, ctx, cloud, chosen, forge, runner)
    with at_hand(ctx, programs if settings.upload_program else {}) as files, ctx.whole():
        try:
            with ctx.step(f"Registering {runner.name}"):
                registration = forge.register(ctx, runner)
            keys = _credentials(registration, target, settings.ca_file, travels=travels)
            given = {**environment, CREDENTIALS: keys}
            made = engine.creation.Launch(chosen, task, given, programs=files)
            engine.creation.create(ctx, cloud, made, online)
        except BaseException:
            _undo(ctx, forge, runner)
            raise
    ctx.note(forge.limits)
    return Made(cloud, chosen, task)


def _runner(
    target: Target, settings: Settings, id: TaskId, programs: Mapping[str, Program]
) -> Runner:
    return Runner(
        target.driver,
        target.repo,
        settings.name or str(id),
        str(id),
        settings.labels,
        bool(settings.single),
        settings.idle_timeout,
        programs,
    )


def _earlier(
    ctx: Context, cloud: Cloud, id: TaskId, forge: Forge, registered: Sequence[Registered]
) -> Made | None:
    """What is there of an earlier launch: it is taken if it is online, else removed.

    Credentials of a runner are made for one launch, and can be read nowhere: it cannot go on.
    """
    own = [each for each in registered if str(id) in each.labels]
    if any(each.online for each in own):
        with suppress(NotFound):
            return Made(cloud, id, cloud.data(id).load(ctx))
    if engine.lifecycle.exists(ctx, cloud, id):
        ctx.note(f"Removing {id}, which was not completed")
        engine.removal.delete(ctx, cloud, id, fetch=False)
    for each in own:
        forge.unregister(ctx, each.id)
    return None


def _is_there(ctx: Context, settings: Settings, registered: Sequence[Registered]) -> bool:
    """Whether there is a runner that will do."""
    for each in registered:
        if settings.name and each.name == settings.name:
            if settings.reuse or settings.reuse_idle:
                ctx.note(f"Runner {each.name} is already registered")
                return True
            raise Conflict(
                f"A runner named {each.name} is already registered",
                hint="Choose another name, or use --reuse to use the one that is there.",
            )
        fits = each.online and set(settings.labels) <= each.labels
        if fits and (settings.reuse or (settings.reuse_idle and each.busy is False)):
            ctx.note(f"Runner {each.name} is online and has all labels")
            return True
    return False


def _with_single(ctx: Context, settings: Settings, public: bool, driver: str) -> Settings:
    single = settings.single
    if single is None:
        reused = settings.reuse or settings.reuse_idle
        single = public and not reused and "single" not in forges.lacking(driver)
    if public and not settings.single:
        ctx.warn(
            "The repository is public: jobs of pull requests from forks, which anybody can open, "
            "may run on this machine." + (" It ends after one job (single)." if single else "")
        )
    return replace(settings, single=single)


def _id_for(settings: Settings) -> TaskId:
    """Always a new one: a runner that ended is not launched again, but another one like it."""
    return TaskId.random(settings.name) if settings.name else TaskId.for_name("", os.environ)


def _token_travels(cloud: Cloud, settings: Settings, forge: Forge, fields: Fields) -> bool:
    """Whether the machine gets the token: to unregister itself and to re-run lost jobs.

    Where jobs could read it, it has to be asked for, however little it can do.
    """
    if settings.token_on_machine is not None:
        if settings.token_on_machine and fields.get("permission_set"):
            raise InvalidInput(
                "token_on_machine",
                "cannot be combined with permission_set, by which jobs could read the token",
            )
        return settings.token_on_machine
    if not cloud.features.private_machines or settings.docker or fields.get("permission_set"):
        return False
    return forge.may_travel()


def _warn_of_jobs(ctx: Context, cloud: Cloud, settings: Settings, *, travels: bool) -> None:
    """Say what jobs can reach, where it is more than their own."""
    if not cloud.features.private_machines:
        token = ", including the token" if travels else ""
        ctx.warn(f"Jobs on {cloud.name} run as your user and can read all that you can{token}.")
    elif settings.docker:
        ctx.warn(
            "Jobs can use Docker, so they can become root on the machine: they can read the "
            "runner's credential and act in the cloud as the machine."
        )


def _task(cloud: Cloud, runner: Runner, settings: Settings, fields: Fields) -> Task:
    # Whoever gives machines an identity of their own choice wants jobs to have it.
    hide = cloud.features.shared_identity and not fields.get("permission_set")
    own = {
        "job_user": _JOB_USER if cloud.features.private_machines else "",
        "hide_identity": "1" if hide else "",
        "docker": "1" if settings.docker else "",
        "docker_volumes": " ".join(settings.docker_volumes),
    }
    plain = Task(
        runner_script(runner, settings.startup_script, own),
        runner=runner,
        timeout=0,
        storage=Storage(output=""),
        name=settings.name,
    )
    return clouds.placed(changed(plain, fields))


def _credentials(registration: Registration, target: Target, ca_file: str, *, travels: bool) -> str:
    found = {**registration.credentials, network.CERTIFICATES: read_authorities(ca_file)}
    if travels:
        found[TOKEN] = target.token
    return json.dumps(found)


def _until_online(ctx: Context, cloud: Cloud, id: TaskId, forge: Forge, runner: Runner) -> None:
    def offline() -> str:
        own = (each for each in forge.runners(ctx) if runner.task in each.labels)
        return "" if any(each.online for each in own) else "the runner is not online yet"

    engine.answering.until(ctx, cloud, id, offline, "Waiting for the runner", _LOOK_EVERY)


def _undo(ctx: Context, forge: Forge, runner: Runner) -> None:
    """After a launch that failed: the forge must not count on it."""
    ctx = ctx.shielded().within(_UNDO_WITHIN)
    try:
        for each in forge.runners(ctx):
            if runner.task in each.labels:
                forge.unregister(ctx, each.id)
    except SojournError as error:
        ctx.warn(f"Could not unregister {runner.name}: {error.message}")
