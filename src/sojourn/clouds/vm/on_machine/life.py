"""The life of a machine: the agent, notices for it, and the way out of the group."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn.agent.background import aside, say
from sojourn.agent.config import GONE, RANK_ENDED, Config
from sojourn.clouds.vm.on_machine import marks
from sojourn.clouds.vm.on_machine.authorized import authorize
from sojourn.clouds.vm.on_machine.hostkeys import publish
from sojourn.clouds.vm.on_machine.unstored import STORING
from sojourn.core.errors import SojournError
from sojourn.storage.lease import read_reports
from sojourn.storage.store import StoreAddress, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.clouds.vm.on_machine.group import Group
    from sojourn.clouds.vm.on_machine.settings import CloudSettings, MachineSettings
    from sojourn.core.report import Report
    from sojourn.storage.store import Store

__all__ = ["live"]

S = TypeVar("S", bound="CloudSettings")

_RIGHTS_EVERY = 5.0  # seconds
_NOTICE_EVERY = 2.0  # seconds; a notice comes half a minute before the end, or earlier
_RANK_AND_ATTEMPT = re.compile(r"\d{1,6} \d{1,6}", re.ASCII)
_DISK = "/opt/sojourn/disk"
_FAILURES = Path("/opt/sojourn/failures")


def live(file: Path, package: str, kind: type[S], join: Callable[[S], Group]) -> int:
    """Run the agent until its rank has ended or the machine goes; then leave the group.

    `file` has the settings, `package` is the cloud's.
    """
    cloud = kind.read(file)
    settings, group = cloud.common, join(cloud)
    refused = _refused(settings, group)
    STORING.unlink(missing_ok=True)  # of an agent that died
    # Not waited for: it may take long to be allowed, and with rights of the user's may never be.
    aside("deadline", group.put_off_deadline)
    agent = subprocess.Popen(
        [sys.executable, "-m", "sojourn.clouds.vm.on_machine.agent", package, str(file)],
        stdin=subprocess.PIPE,
        text=True,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.terminate())
    if settings.ssh_key:
        authorize(settings.user, settings.ssh_key)
    config = _config(settings, group.machine, refused)
    _tell(agent, config)
    aside(
        "host keys",
        lambda: publish(lambda: _opened(config), f"{settings.host_keys}{config.machine}"),
    )
    aside("notices", lambda: _watch(agent, group, settings.heartbeat, marked=settings.marks))
    code = agent.wait()
    if code == -signal.SIGTERM:
        code = GONE  # it was told to go before it could listen
    if code == GONE:
        group.leave(for_good=False)
        return 0
    if code == RANK_ENDED:
        _end(settings, config, group)
        return 0
    failures = _failures()
    if failures < settings.failures:
        return 1  # systemd starts it again
    _give_up(settings, config, failures)
    group.leave(for_good=True)
    return 0


def _end(settings: MachineSettings, config: Config, group: Group) -> None:
    """Leave for good. A gang that gave up may still wait for a machine that never came."""
    ranks = settings.gang
    reports = _reports(config) if ranks or settings.marks else []
    if settings.marks:
        group.mark(marks.tags_of(reports))
    ended = {report.rank for report in reports if report.outcome.final}
    group.leave(for_good=True, last=0 < ranks <= len(ended))


def _config(settings: MachineSettings, machine: str, refused: str) -> Config:
    """What the agent has to know."""
    return Config(
        store=settings.store,
        store_options=settings.store_options,
        machine=machine,
        folder=_DISK,
        dead=(machine,),  # its former life, before a crash or a reboot
        ttl=settings.ttl,
        grace=settings.grace,
        notice=settings.notice,
        refused=refused,
    )


def _refused(settings: MachineSettings, group: Group) -> str:
    """Why this machine is not to run the script: it could not end by itself, and would cost money.

    Our own identities have their rights, if late; those of users may never get them.
    """
    if not settings.given:
        return ""
    give_up = time.monotonic() + settings.rights_within
    while action := group.denied():
        if time.monotonic() > give_up:
            return (
                f"permission_set is not allowed {action}, so its machines cannot end by themselves "
                f"and cost money until the task is deleted. Run `sojourn delete {settings.id}`, "
                f"grant it, and create the task again; {settings.page} has all that it needs"
            )
        say(f"not allowed yet, retrying: {action}")
        time.sleep(_RIGHTS_EVERY)
    return ""


def _failures() -> int:
    """How often the agent ended with an error on this machine, this time included."""
    count = len(_FAILURES.read_bytes()) if _FAILURES.exists() else 0
    _FAILURES.write_bytes(b"." * (count + 1))
    return count + 1


def _tell(agent: subprocess.Popen[str], config: Config) -> None:
    if agent.stdin:
        with agent.stdin:
            agent.stdin.write(config.text())


def _opened(config: Config) -> Store:
    return open_store(StoreAddress(config.store, config.store_options))


def _reports(config: Config) -> list[Report]:
    """Of all ranks, so that what another machine was not able to tell is told after all."""
    try:
        return read_reports(_opened(config))
    except SojournError as error:
        say(f"could not read the reports: {error}")
        return []


def _watch(agent: subprocess.Popen[str], group: Group, heartbeat: float, *, marked: bool) -> None:
    """Hand notices of the cloud on to the agent, and get it the time to store its work.

    `marked`: what the agent cannot store is told at the group.
    """
    warned = False
    told = ""
    while agent.poll() is None:
        if marked and (now := _unstored()) != told:
            told = now
            rank, attempt = map(int, now.split())
            aside("mark", partial(group.mark, marks.unstored(rank, attempt)))
        try:
            reason = group.notice()
            if reason:
                say(f"notice: {reason}")
                agent.terminate()
                while not _ends_within(agent, heartbeat):
                    group.ask_for_time()
                return
            warning = "" if warned else group.warning()
            if warning:
                warned = True
                say(warning)
        except OSError as error:
            say(f"the metadata service does not answer: {error}")
        time.sleep(_NOTICE_EVERY)


def _unstored() -> str:
    """The rank and attempt whose results the agent cannot store; empty: none."""
    try:
        told = STORING.read_text()
    except (OSError, ValueError):
        return ""
    return told if _RANK_AND_ATTEMPT.fullmatch(told) else ""


def _ends_within(agent: subprocess.Popen[str], seconds: float) -> bool:
    try:
        agent.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _give_up(settings: MachineSettings, config: Config, failures: int) -> None:
    """Tell why: on the next machine it would hardly fare better."""
    why = f"The machine gave up after the agent failed {failures} times; see its journal"
    try:
        _opened(config).put(f"{settings.problem_folder}{config.machine}", why.encode())
    except SojournError as error:
        say(f"could not store the reason: {error}")
