"""A runner that was launched, and what its forge is told when it goes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.api import Handle
from sojourn.core.errors import (
    AuthError,
    Conflict,
    IntegrityError,
    InvalidInput,
    NotFound,
    SojournError,
)
from sojourn.runners.authorities import trust
from sojourn.runners.target import Target, address_of, find_place, no_token
from sojourn.runners.tokens import find_token, forge_of, known_forges, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.runner import Runner
    from sojourn.forges.forge import Forge, Registered

__all__ = ["Launched"]

_NOTICED_WITHIN = 20.0  # seconds until a forge sees that a job has ended with its machine
_LOOK_EVERY = 1.0


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
