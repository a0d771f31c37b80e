"""CI runners: machines that serve the jobs of a repository, and are gone when nobody needs them.

They are tasks: every verb of a task works on them. What a forge has to be told is done here.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.api import Handle, overview
from sojourn.api import get as get_task
from sojourn.api.finding import task_of
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.durations import parse_seconds
from sojourn.core.errors import (
    AuthError,
    Conflict,
    IntegrityError,
    InvalidInput,
    NotFound,
    SojournError,
)
from sojourn.core.parallel import together
from sojourn.runners import launching
from sojourn.runners.authorities import trust
from sojourn.runners.launching import IDLE_TIMEOUT, Settings
from sojourn.runners.sweeping import orphans
from sojourn.runners.target import Target, address_of, find_place, find_target, no_token
from sojourn.runners.tokens import GENERAL, find_token, forge_of, known_forges, refuse_foreign

if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.runner import Runner
    from sojourn.core.status import Status
    from sojourn.forges.forge import Forge, Registered
    from sojourn.taskfiles.changes import Fields

__all__ = [
    "Launched",
    "Orphan",
    "Settings",
    "check",
    "garbage",
    "get",
    "launch",
    "list",
    "make",
    "of",
]

_AT_ONCE = 16
_NOTICED_WITHIN = 20.0  # seconds until a forge sees that a job has ended with its machine
_LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Orphan:
    """A runner that is registered, and has no machine any more."""

    repo: str
    registered: Registered
    forge: Forge

    def unregister(self, ctx: Context) -> None:
        """Have its forge forget it."""
        if not self.forge.unregister(ctx, self.registered.id):
            raise Conflict(f"{self.registered.name} is running a job")


class Launched(Handle):
    """A runner that was launched. Every verb of a task works on it; `delete` unregisters it."""

    def runner(self) -> Runner:
        """What it is, as it was launched."""
        found = self.task().runner
        if found is None:
            raise Conflict(
                f"{self.id} is a task, not a runner",
                hint=f"Run `sojourn status {self.id}` for details.",
            )
        return found

    def registered(self, token: str = "") -> Registered | None:
        """As its forge lists it now; None if it is not there. Raises AuthError without a token."""
        runner = self.runner()
        return self._among(self._forge(runner, token).runners(self._ctx), runner)

    def remove(
        self,
        *,
        token: str = "",
        force: bool = False,
        ca_file: str = "",
        runner: Runner | None = None,
        repo: str = "",
    ) -> None:
        """Unregister it, then delete its task. One that runs a job stays, unless forced.

        `runner`: what it is, if that is known from elsewhere: its task may be gone, or be in a
        store in which jobs can write, and the token goes where it says. `repo`: the repository
        that a token is for which was not used here before.
        """
        try:
            trust(ca_file)
        except (SojournError, OSError) as error:  # must not keep a machine either
            self._ctx.warn(f"Ignoring ca_file: {error}")
        if repo:
            address_of(repo)  # refuses what is none, before anything is deleted
        named = runner is not None
        if runner is None:
            runner = self._known(force)
        gone = runner is None or self._unregister(runner, token, named, repo)
        if not gone and not force:
            why = forges.lacking(runner.driver).get("reuse_idle") if runner else ""
            unknown = f"Cannot tell whether {self.id} is running a job: {why}"
            raise Conflict(
                unknown if why else f"{self.id} is running a job",
                hint=f"Wait, or run `sojourn runner delete --force {self.id}` to end the job.",
            )
        if not gone:
            self._ctx.warn(f"{self.id} is running a job, which ends with it")
        self.delete(fetch=False, force=force)
        if runner and not gone and not self._forgotten(runner, token, named, repo):
            self._ctx.warn(f"{runner.name} stays registered until its forge notices that it ended.")

    def _known(self, force: bool) -> Runner | None:
        """What it is; None if its task is gone, wholly or in part, or nobody can tell any more."""
        try:
            return self.runner()
        except NotFound:
            return None
        except IntegrityError as error:
            if not force:
                raise
            self._ctx.warn(f"{self.id} stays registered if it is a runner: {error.message}")
            return None

    def _forgotten(self, runner: Runner, token: str, named: bool, repo: str) -> bool:
        """Unregister it after its job has ended with its machine, which a forge may see late."""
        give_up = time.monotonic() + _NOTICED_WITHIN
        while not self._unregister(runner, token, named, repo):
            if time.monotonic() > give_up:
                return False
            self._ctx.sleep(_LOOK_EVERY)
        return True

    def _unregister(self, runner: Runner, token: str, named: bool, repo: str) -> bool:
        """False if it runs a job. What the forge does not let us do must not keep a machine."""
        try:
            forge = self._forge(runner, token, named=named, repo=repo)
            found = self._among(forge.runners(self._ctx), runner)
            return found is None or forge.unregister(self._ctx, found.id)
        except SojournError as error:
            self._ctx.warn(
                f"{runner.name} stays registered, offline: {error.message}. "
                "The next launch for the same repository on this computer removes it."
            )
            return True

    def _forge(self, runner: Runner, token: str, *, named: bool = False, repo: str = "") -> Forge:
        """`named`: a configuration has the repository, not only the task, which may lie in a store
        that machines can write to. `repo`: as the user named it for the token."""
        address = address_of(runner.repo)
        if token:
            _refuse_elsewhere(token, address, repo, named=named)
        else:
            named = named or forge_of(address) == _forge_here()
            token = find_token(runner.driver, address, os.environ, named=named)
        if not token:
            raise no_token(runner.driver, address, os.environ)
        refuse_foreign(runner.driver, address, token)
        return Target(runner.driver, address, token).settled(self._ctx).open()

    @staticmethod
    def _among(found: Sequence[Registered], runner: Runner) -> Registered | None:
        return next((each for each in found if runner.task in each.labels), None)


def _refuse_elsewhere(token: str, address: str, repo: str, *, named: bool) -> None:
    """A token goes where runners were launched with it, or where the user says that it is for."""
    forge, known = forge_of(address), known_forges(token)
    if repo and forge_of(address_of(repo)) != forge:
        raise AuthError(f"the task has {address} as its repository, not {address_of(repo)}")
    if repo or forge in known:
        return
    if known:
        raise AuthError(f"the token is for {', '.join(sorted(known))}, not for {address}")
    if not named and forge != _forge_here():
        raise AuthError(
            f"cannot tell whether the token is for {address}, which only the task names",
            hint=f"Use --repo {address} if it is.",
        )


def _forge_here() -> str:
    """That of the repository that we are in; none: empty."""
    try:
        return forge_of(find_place("", "", os.environ)[1])
    except InvalidInput:
        return ""


def launch(
    *,
    driver: str = "",
    repo: str = "",
    token: str = "",
    labels: str | Sequence[str] = "cml",
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
        _seconds(given.pop("idle_timeout", IDLE_TIMEOUT)),
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


def make(
    settings: Settings, fields: Fields, *, id: TaskId | None = None, ctx: Context
) -> Launched | None:
    """The same. `id`: of an earlier launch that was broken off, whose runner may be online."""
    made = launching.launch(ctx, settings, fields, id)
    if made is None:
        return None
    return Launched(made.cloud, made.id, ctx, made.task)


def check(settings: Settings, fields: Fields, *, ctx: Context) -> None:
    """Refuse what could not be launched; makes nothing."""
    launching.check(ctx, settings, fields)


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


def get(id: str, *, on_event: OnEvent | None = None, ctx: Context | None = None) -> Launched:
    """The runner of this id, which may be shortened while it is unique."""
    return of(get_task(id, on_event=on_event, ctx=ctx))


def of(handle: Handle) -> Launched:
    """The runner that a task is."""
    return Launched(handle._cloud, handle._id, handle._ctx)


def list(  # noqa: A001 -- as in `sojourn runner list`
    *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> builtins.list[tuple[Launched, Runner, Status]]:
    """All runners with their states, of all clouds that can be asked."""
    ctx = ctx or context_for(on_event)
    rows = overview(ctx=ctx)
    runners: builtins.list[Runner | None] = []
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        runners += together([partial(_runner_of, ctx, handle) for handle, _ in some])
    return [
        (of(handle), runner, status)
        for (handle, status), runner in zip(rows, runners, strict=True)
        if runner is not None
    ]


def garbage(
    *,
    driver: str = "",
    repo: str = "",
    token: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> builtins.list[Orphan]:
    """Runners of a repository, found as `launch` finds it, whose machines are gone.

    The forge of a repository that is not given but found is asked only if it is known that the
    token is for it.
    """
    ctx = ctx or context_for(on_event)
    try:
        target = find_target(driver, repo, token, os.environ, named=bool(repo))
    except (AuthError, InvalidInput) as error:
        if repo:
            raise
        if isinstance(error, AuthError) and any(map(os.environ.get, GENERAL)):
            ctx.note(f"Not looking for runners without a machine. {error.message}.")
        return []  # there is no repository here, or no token for it
    try:
        forge = target.settled(ctx).open()
        found = orphans(ctx, target.repo, forge.runners(ctx))
        return [Orphan(target.repo, each, forge) for each in found]
    except SojournError as error:
        ctx.warn(f"Could not look for runners of {target.repo}: {error.message}")
        return []


def _runner_of(ctx: Context, handle: Handle) -> Runner | None:
    task = task_of(ctx, handle)
    return task.runner if task else None
