"""Creating a task: what is made in which order, and removed again if it does not come about."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from sojourn.core.clock import utc_now
from sojourn.core.command import command_of
from sojourn.core.errors import Cancelled, Conflict, NotFound, SojournError, Transient
from sojourn.core.parallel import together
from sojourn.engine import ledger, upload
from sojourn.engine.check import check_features, check_storage, local_workdir
from sojourn.engine.gitignore import OWN_FILE
from sojourn.engine.lifecycle import any_there, ensure_started, stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Data, Resource
    from sojourn.core.task import Task
    from sojourn.engine.gitignore import IgnoreRules

__all__ = ["Launch", "Plan", "check", "create", "origin_of", "plan", "push"]

_CLEAN_UP_WITHIN = 15 * 60.0  # seconds for removing what a broken-off creation made


@dataclass(frozen=True)
class Launch:
    """All that creating a task needs."""

    id: TaskId
    task: Task
    environment: dict[str, str]
    ignore: IgnoreRules | None = None
    gitignore: bool = False  # whether `ignore` has the rules of git
    programs: Mapping[str, Path] = field(default_factory=dict)  # for machines, by their SHA-256
    folder: str = field(default_factory=os.getcwd)  # where somebody asked for it
    began: str = field(default_factory=utc_now)
    command: str = ""  # what somebody typed to have it run


@dataclass(frozen=True)
class Plan:
    """What creating a task would do, and did not.

    `id`: empty if each creation has a new one; `resources` then have `ID` in its place.
    `upload`: None without a workdir. `advice`: how it could be at most half.
    """

    cloud: str
    id: str
    exists: bool
    resources: tuple[str, ...]
    upload: upload.Upload | None = None
    advice: str = ""


def check(ctx: Context, cloud: Cloud, task: Task) -> None:
    """Refuse, before anything is made, what could not be created."""
    check_storage(task.storage)
    check_features(task, cloud.features)
    for note in cloud.check(ctx, task):
        ctx.note(note)


def plan(ctx: Context, cloud: Cloud, launch: Launch) -> Plan:
    """What `create` would upload and make; checks the same, and makes nothing."""
    check(ctx, cloud, launch.task)
    storage = launch.task.storage
    resources = cloud.resources(launch.id, launch.task)
    known = str(launch.id) if launch.task.name else ""
    planned = Plan(
        cloud.name,
        known,
        bool(known) and any_there(ctx, resources),
        tuple(resource.title.replace(str(launch.id), known or "ID") for resource in resources),
    )
    if not storage.workdir:
        return planned
    workdir = local_workdir(storage)
    files, excluded = upload.look(workdir, launch.task.filters(), launch.ignore)
    _tell_of_unexpected(ctx, workdir, launch, files)
    advice = upload.advice(workdir, files, git=launch.gitignore)
    return replace(planned, upload=upload.summed(files, excluded), advice=advice)


def create(
    ctx: Context, cloud: Cloud, launch: Launch, until: Callable[[], None] | None = None
) -> bool:
    """Make everything, upload the workdir and start the machines; False if some was there before.

    `until`: what else it takes for the creation to be over, such as a machine that answers.
    If it fails or is interrupted, what was made is removed again, unless some of it was there
    before; what could not be removed is told.
    """
    check(ctx, cloud, launch.task)
    with ctx.whole():
        return _create(ctx, cloud, launch, until)


def _create(
    ctx: Context, cloud: Cloud, launch: Launch, until: Callable[[], None] | None = None
) -> bool:
    resources = cloud.resources(launch.id, launch.task)
    existed = any_there(ctx, resources)
    data = cloud.data(launch.id)
    if not existed:  # else it may be another task of this name, with a home of its own
        ledger.remember(origin_of(launch, data))
    try:
        with ctx.phase(f"Creating {launch.id.name}") as inside:
            _make(inside, cloud, data, launch, resources, existed=existed)
        if until is not None:
            until()
    except _TakenError:
        if not existed:
            ledger.withdraw(origin_of(launch, data))
        raise
    except BaseException as error:
        if existed:
            raise
        cleaning = ctx.shielded().within(_CLEAN_UP_WITHIN)
        if not _is_alone(cleaning, data):
            _hint(
                error,
                "Another command may be creating the same task, so nothing was removed. "
                f"Run `sojourn status {launch.id}` for details.",
            )
            raise
        with cleaning.phase(f"Deleting {launch.id.name}") as inside:
            left = _remove(inside, resources)
        if not left:
            ledger.forget(launch.id)
        if left:
            _hint(
                error,
                f"Could not remove: {', '.join(left)}. "
                f"Run `sojourn delete {launch.id}` to remove what is left.",
            )
        elif isinstance(error, Transient):
            _hint(error, "Everything created so far was removed.")
        elif isinstance(error, Cancelled):
            raise Cancelled("Cancelled; nothing was left behind") from error
        raise
    return not existed


def origin_of(launch: Launch, data: Data) -> ledger.Origin:
    """What this computer remembers of a task that `data` signed."""
    storage = launch.task.storage
    return ledger.Origin(
        id=str(launch.id),
        cloud=launch.task.cloud,
        folder=launch.folder,
        workdir=storage.workdir,
        output=storage.output,
        exclude=storage.exclude,
        created=launch.began,
        machine=launch.task.machine,
        mark=data.mark,
        runner=launch.task.runner is not None,
        command=launch.command or command_of(launch.task),
    )


class _TakenError(Conflict):
    """Somebody else's task is there: nothing of it is ours to remove."""


def _is_alone(ctx: Context, data: Data) -> bool:
    """Whether nobody else creates the same task; if that cannot be told, somebody may."""
    try:
        return data.alone(ctx)
    except (SojournError, OSError):
        return False


def _hint(error: BaseException, more: str) -> None:
    if isinstance(error, SojournError):
        error.hint = f"{error.hint}\n{more}".strip()


def _make(
    ctx: Context,
    cloud: Cloud,
    data: Data,
    launch: Launch,
    resources: Sequence[Resource],
    *,
    existed: bool,
) -> None:
    store, *others, scaler = resources
    try:
        _create_one(ctx, store)
        with ctx.step("Storing the task"):
            data.save(ctx, launch.task, launch.environment, ledger.this_user())
        ledger.remember(origin_of(launch, data))  # once more: somebody may have raced for this name
    except Conflict as error:
        raise _TakenError(f"{launch.id}: {error.message}", hint=error.hint) from error
    uploaded = partial(_upload, ctx, data, launch, existed=existed)
    try:
        if cloud.features.upload_through_machines:
            _create_all(ctx, [*others, scaler])
            uploaded()
        else:
            # The upload may take long, and needs nothing but the store.
            jobs = [uploaded, partial(_create_all, ctx, others)] if others else [uploaded]
            together(jobs, stop=ctx.cancel)
    except NotFound:
        _refuse_deleted(ctx, data, launch.id)
        raise
    if not cloud.features.upload_through_machines:
        _create_one(ctx, scaler)
    with ctx.step("Starting machines"):
        _refuse_deleted(ctx, data, launch.id)
        if existed:
            ensure_started(ctx, cloud.scaler(launch.id), data, launch.task)
        else:
            ledger.forget_log(launch.id)  # of a former task of this name
            cloud.scaler(launch.id).scale(ctx, launch.task.parallelism)


def _refuse_deleted(ctx: Context, data: Data, id: TaskId) -> None:
    """The upload may take long, and meanwhile somebody may delete what was there of it."""
    try:
        data.load(ctx)
    except NotFound as error:
        raise Conflict(
            f"{id} was deleted during its creation",
            hint="Create it again if you still need it.",
        ) from error


def _create_all(ctx: Context, resources: Sequence[Resource]) -> None:
    for stage in stages(resources):
        together([partial(_create_one, ctx, resource) for resource in stage], stop=ctx.cancel)


def _create_one(ctx: Context, resource: Resource) -> None:
    with ctx.step(f"Creating {resource.title}"):
        resource.create(ctx)


def _upload(ctx: Context, data: Data, launch: Launch, *, existed: bool) -> None:
    records = data.records(ctx, launch.task.parallelism) if existed else []
    if records and all(record.ended for record in records):
        ctx.warn(
            f"{launch.id} has already ended and does not run again: its log and results are old. "
            f"For a new run, run `sojourn delete {launch.id}` first or choose another name."
        )
    elif any(record.attempt for record in records):
        ctx.note(
            f"{launch.id} already exists; continuing without uploading workdir. "
            f"For a new run, run `sojourn delete {launch.id}` first."
        )
    else:
        push(ctx, data, launch)
        for sha256, file in launch.programs.items():
            with ctx.step("Uploading the runner program"):
                data.keep_program(ctx, sha256, file)


def push(ctx: Context, data: Data, launch: Launch) -> None:
    """Upload the workdir, if there is one."""
    if not launch.task.storage.workdir:
        return
    with ctx.step("Uploading workdir"):
        workdir = local_workdir(launch.task.storage)
        announce = partial(_announce, ctx, workdir, launch)
        data.push(ctx, workdir, launch.task.filters(), launch.ignore, announce)


def _announce(
    ctx: Context, workdir: Path, launch: Launch, files: Iterable[tuple[str, int]]
) -> None:
    """Tell what is about to be uploaded, if it is more than a little, and how it could be less."""
    found = list(files)
    _tell_of_unexpected(ctx, workdir, launch, found)
    whole = upload.summed(found)
    if whole.is_much:
        ctx.note(f"Uploading {whole}; largest: {whole.largest()}")
        if advice := upload.advice(workdir, found, git=launch.gitignore):
            ctx.note(advice)


def _tell_of_unexpected(
    ctx: Context, workdir: Path, launch: Launch, files: list[tuple[str, int]]
) -> None:
    """Tell what stays at home though nobody said so, and what should perhaps stay but does not."""
    if launch.ignore and launch.ignore.left_out:
        left = upload.left_out(workdir, launch.ignore.left_out)
        ctx.note(f"Not uploading {left}; use `--no-default-ignore` to upload everything")
    if secret := upload.secret(files):
        ctx.warn(f"Uploading {secret}, which may hold secrets; add to {OWN_FILE} to leave out")


def _remove(ctx: Context, resources: Sequence[Resource]) -> list[str]:
    """Remove it; returns the titles of what could not be removed.

    Then what comes after it in this order stays too, the store above all: it tells that there is
    something left.
    """
    for stage in reversed(stages(resources)):
        removed = together([partial(_try_to_remove, ctx, resource) for resource in stage])
        left = [resource.title for resource, gone in zip(stage, removed, strict=True) if not gone]
        if left:
            return left
    return []


def _try_to_remove(ctx: Context, resource: Resource) -> bool:
    try:
        if resource.read(ctx):
            with ctx.step(f"Removing {resource.title}"):
                resource.delete(ctx)
        else:
            resource.delete(ctx)
    except (SojournError, OSError):
        return False
    return True
