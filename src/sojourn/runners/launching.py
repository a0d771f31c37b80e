"""Launching a runner: a task whose script is the forge's runner program."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sojourn import api, clouds, forges
from sojourn.api import creating
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.context import Context
from sojourn.core.durations import parse_seconds
from sojourn.core.errors import Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.core.runner import CREDENTIALS, TOKEN, Runner
from sojourn.core.task import Storage, Task
from sojourn.forges import network
from sojourn.runners.authorities import read_authorities, trust
from sojourn.runners.launched import Launched
from sojourn.runners.programs import at_hand
from sojourn.runners.script import runner_script
from sojourn.runners.settings import Settings
from sojourn.runners.sweeping import sweep
from sojourn.runners.target import Target, find_target
from sojourn.runners.tokens import remember
from sojourn.taskfiles.changes import changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Unpack

    from sojourn.core.interfaces import Cloud
    from sojourn.core.runner import Program
    from sojourn.forges.forge import Forge, Registered, Registration
    from sojourn.taskfiles.changes import Fields

__all__ = ["check", "launch", "make"]

_JOB_USER = "runner"
_LOOK_EVERY = 2.0  # seconds between questions to a forge
_UNDO_WITHIN = 60.0


def launch(
    *,
    driver: str = "",
    repo: str = "",
    token: str = "",
    labels: str | Sequence[str] = Runner.labels,
    single: bool | None = None,
    reuse: bool = False,
    reuse_idle: bool = False,
    startup_script: str = "",
    token_on_machine: bool | None = None,
    ca_file: str = "",
    docker: bool = False,
    docker_volumes: Sequence[str] = (),
    upload_program: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **fields: Unpack[Fields],
) -> Launched | None:
    """Launch a runner and wait until it is online.

    Returns None if `reuse` or `reuse_idle` found one that will do. `fields`: those of a task, for
    its machine; `idle_timeout` is the time without a job after which it ends, 0 for no limit.

    `docker`: jobs can use the machine's Docker, with which they can become root there.
    `docker_volumes`: what the containers of jobs have of the machine (GitLab only). `ca_file`: the
    certificates to trust, of a forge with a private CA, as a path or as PEM; the machine trusts
    them, too.

    `upload_program`: this computer downloads the runner program, for machines that cannot.

    What is not given is found: driver and repository from the CI that this program runs in or from
    git, the token from CML_TOKEN, REPO_TOKEN or the forge's own variable.
    """
    given: Fields = {**fields}
    settings = Settings(
        driver,
        repo,
        token,
        given.pop("name", ""),
        tuple(label.strip() for label in _split(labels)),
        _seconds(given.pop("idle_timeout", Runner.idle_timeout)),
        single,
        reuse,
        reuse_idle,
        startup_script,
        token_on_machine,
        docker,
        tuple(docker_volumes),
        ca_file,
        upload_program,
    )
    return make(settings, given, ctx=ctx or context_for(on_event))


def _split(labels: str | Sequence[str]) -> Sequence[str]:
    return labels.split(",") if isinstance(labels, str) else labels


def _seconds(value: int | str) -> int:
    """Nothing below 0 makes sense; cml took it for no limit."""
    try:
        return max(0, value if isinstance(value, int) else parse_seconds(value))
    except ValueError as error:
        raise InvalidInput(
            "idle_timeout", f"must be a duration such as '5m', or 0 for no limit, got {value!r}"
        ) from error


def check(settings: Settings, fields: Fields, *, ctx: Context) -> None:
    """Refuse what could not be launched; makes nothing. Names are not looked at: one that is taken
    now may be free then."""
    target, forge = _opened(ctx, settings)
    with ctx.step(f"Asking {target.repo}"):
        forge.check(ctx)
    cloud = clouds.load(fields.get("cloud", Task.cloud))
    travels = _token_travels(cloud, settings, forge, fields)
    _warn_of_jobs(ctx, cloud, settings, travels=travels)
    runner = _runner(target, settings, _id_for(settings), {})
    api.check(_task(cloud, runner, settings, fields), ctx=ctx)


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


def make(
    settings: Settings, fields: Fields, *, id: TaskId | None = None, ctx: Context
) -> Launched | None:
    """The same, from all that a runner is to be.

    `id`: that of an earlier launch, which may have been broken off.
    """
    target, forge = _opened(ctx, settings)
    cloud = clouds.load(fields.get("cloud", Task.cloud))
    with ctx.step(f"Asking {target.repo}"):
        repository = forge.check(ctx)
        remember(target.token, target.repo)
        registered = forge.runners(ctx)
        if id is not None:
            if earlier := _earlier(ctx, cloud.name, id, forge, registered):
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
    # Nothing is told: it is checked again when it is created.
    api.check(task, ctx=Context(deadline=ctx.deadline, cancelled=ctx.cancelled))
    sweep(ctx, task.cloud, target.repo, forge, registered)
    online = partial(_until_online, ctx, forge, runner)
    with at_hand(ctx, programs if settings.upload_program else {}) as files, ctx.whole():
        try:
            with ctx.step(f"Registering {runner.name}"):
                registration = forge.register(ctx, runner)
            keys = _credentials(registration, target, settings.ca_file, travels=travels)
            given = {CREDENTIALS: keys}
            launched = creating.make(
                Launched, ctx, task, online, id=chosen, environment=given, programs=files
            )
        except BaseException:
            _undo(ctx, forge, runner)
            raise
    ctx.note(forge.limits)
    return launched


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
    ctx: Context, cloud: str, id: TaskId, forge: Forge, registered: Sequence[Registered]
) -> Launched | None:
    """What is there of an earlier launch: it is taken if it is online, else removed.

    Credentials of a runner are made for one launch, and can be read nowhere: it cannot go on.
    """
    own = [each for each in registered if str(id) in each.labels]
    earlier = Launched.of(api.get(str(id), cloud=cloud, ctx=ctx))
    if any(each.online for each in own):
        with suppress(NotFound):
            earlier.task()
            return earlier
    if earlier.exists():
        ctx.note(f"Removing {id}, which was not completed")
        earlier.delete(fetch=False)
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


def _until_online(ctx: Context, forge: Forge, runner: Runner, launched: Launched) -> None:
    def offline() -> str:
        own = (each for each in forge.runners(ctx) if runner.task in each.labels)
        return "" if any(each.online for each in own) else "the runner is not online yet"

    launched.wait_until(offline, "Waiting for the runner", _LOOK_EVERY)


def _undo(ctx: Context, forge: Forge, runner: Runner) -> None:
    """After a launch that failed: the forge must not count on it."""
    ctx = ctx.shielded().within(_UNDO_WITHIN)
    try:
        for each in forge.runners(ctx):
            if runner.task in each.labels:
                forge.unregister(ctx, each.id)
    except SojournError as error:
        ctx.warn(f"Could not unregister {runner.name}: {error.message}")
