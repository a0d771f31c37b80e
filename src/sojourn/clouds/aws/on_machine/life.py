"""The life of an EC2 machine: the agent, notices for it, and the way out of the group."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.agent.background import aside, say
from sojourn.agent.config import GONE, RANK_ENDED, Config
from sojourn.clouds.aws.on_machine import marks, metadata, signing
from sojourn.core.errors import SojournError
from sojourn.storage.lease import read_reports
from sojourn.storage.store import StoreAddress, open_store

if TYPE_CHECKING:
    from sojourn.core.report import Report

_NOTICE_EVERY = 2.0  # seconds; a spot notice comes two minutes before the end
_TRIES = 10
_MARKING = 3  # tries: it is of no use to the task itself
_SPOT = "/meta-data/spot/instance-action"
_REBALANCE = "/meta-data/events/recommendations/rebalance"
_LIFECYCLE = "/meta-data/autoscaling/target-lifecycle-state"
_DISK = "/opt/sojourn/disk"
_FAILURES = Path("/opt/sojourn/failures")
_PUT_OFF = Path("/run/sojourn-deadline")  # is there once the deadline was put off, since the boot


def main() -> int:
    """Run the agent until its rank has ended or the machine goes; then leave the group."""
    group = Group(json.loads(Path(sys.argv[1]).read_text()))
    # Not waited for: it may take long to be allowed, and a profile of the user's may never be.
    aside("deadline", group.put_off_deadline)
    agent = subprocess.Popen(
        [sys.executable, "-m", "sojourn.agent", "-"], stdin=subprocess.PIPE, text=True
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.terminate())
    config = group.config()
    _tell(agent, config)
    aside("notices", lambda: _watch(agent, group))
    code = agent.wait()
    if code == -signal.SIGTERM:
        code = GONE  # it was told to go before it could listen
    if code == RANK_ENDED and group.marks:
        group.mark(_reports(config))
    if code in (RANK_ENDED, GONE):
        group.leave(for_good=code == RANK_ENDED)
        return 0
    failures = _failures()
    if failures < group.most_failures:
        return 1  # systemd starts it again
    group.give_up(config, failures)
    return 0


def _failures() -> int:
    """How often the agent ended with an error on this machine, this time included."""
    count = len(_FAILURES.read_bytes()) if _FAILURES.exists() else 0
    _FAILURES.write_bytes(b"." * (count + 1))
    return count + 1


def _tell(agent: subprocess.Popen[str], config: Config) -> None:
    if agent.stdin:
        with agent.stdin:
            agent.stdin.write(config.text())


def _reports(config: Config) -> list[Report]:
    """Of all ranks, so that what another machine was not able to tell is told after all."""
    try:
        return read_reports(open_store(StoreAddress(config.store, config.store_options)))
    except SojournError as error:
        say(f"could not read the reports: {error}")
        return []


def _watch(agent: subprocess.Popen[str], group: Group) -> None:
    """Hand notices of the cloud on to the agent, and get it the time to store its work."""
    moving = False
    while agent.poll() is None:
        try:
            token = metadata.token()
            reason = _notice(token)
            if reason:
                say(f"notice: {reason}")
                agent.terminate()
                group.hold(agent)
                return
            if not moving and metadata.get(_REBALANCE, token):
                moving = True
                say("rebalance recommendation: AWS may interrupt this machine soon")
        except OSError as error:
            say(f"the metadata service does not answer: {error}")
        time.sleep(_NOTICE_EVERY)


def _notice(token: str) -> str:
    if metadata.get(_SPOT, token):
        return "spot interruption"
    if _taken(token):
        return "terminated by the Auto Scaling group"
    return ""


def _taken(token: str) -> bool:
    """Whether the group has begun to end this machine."""
    return metadata.get(_LIFECYCLE, token) == "Terminated"


def _ends_within(agent: subprocess.Popen[str], seconds: float) -> bool:
    try:
        agent.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class Group:
    """This machine's group, as far as its role lets it do anything with it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        found = metadata.get("/meta-data/instance-id", metadata.token())
        if not found:
            raise OSError("the metadata service returned no instance ID")
        self._machine = found
        self.marks = bool(settings.get("marks"))
        self.most_failures = int(settings["failures"])

    def config(self) -> Config:
        """What the agent has to know."""
        return Config(
            store=self._settings["store"],
            store_options=self._settings["store_options"],
            machine=self._machine,
            folder=_DISK,
            dead=(self._machine,),  # its former life, before a crash or a reboot
            ttl=self._settings["ttl"],
            grace=self._settings["grace"],
        )

    def leave(self, *, for_good: bool) -> None:
        """Take this machine, alone, out of the group; otherwise another one comes.

        The group may do so already. Either way it waits until this machine is ready.
        """
        if not self._is_taken():
            self._call(
                "TerminateInstanceInAutoScalingGroup",
                InstanceId=self._machine,
                ShouldDecrementDesiredCapacity="true" if for_good else "false",
            )
        self._about_hook("CompleteLifecycleAction", LifecycleActionResult="CONTINUE")

    def give_up(self, config: Config, failures: int) -> None:
        """Tell why, and leave for good: on the next machine it would hardly fare better."""
        why = f"The machine gave up after the agent failed {failures} times; see its journal"
        try:
            store = open_store(StoreAddress(config.store, config.store_options))
            store.put(f"{self._settings['problem_folder']}{self._machine}", why.encode())
        except SojournError as error:
            say(f"could not store the reason: {error}")
        self.leave(for_good=True)

    def hold(self, agent: subprocess.Popen[str]) -> None:
        """Have the group wait for as long as the agent stores its work."""
        while not _ends_within(agent, self._settings["heartbeat"]):
            if self._is_taken():
                self._about_hook("RecordLifecycleActionHeartbeat", 1)

    def _is_taken(self) -> bool:
        try:
            return _taken(metadata.token())
        except OSError as error:
            say(f"the metadata service does not answer: {error}")
            return False

    def _about_hook(self, action: str, tries: int = _TRIES, **form: str) -> None:
        self._call(
            action,
            tries,
            AutoScalingGroupName=self._settings["id"],
            LifecycleHookName=self._settings["hook"],
            InstanceId=self._machine,
            **form,
        )

    def mark(self, reports: list[Report]) -> None:
        """Tell how ranks ended, for those who list tasks; without it they look closer."""
        form: dict[str, str] = {}
        for number, (key, value) in enumerate(marks.tags_of(reports).items(), 1):
            tag = {
                "ResourceId": self._settings["id"],
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": "false",
            }
            form |= {f"Tags.member.{number}.{name}": text for name, text in tag.items()}
        if form:
            self._call("CreateOrUpdateTags", tries=_MARKING, **form)

    def put_off_deadline(self) -> None:
        """The time of the task starts anew with every boot of a machine, but not of the agent."""
        if _PUT_OFF.exists():
            return
        deadline = datetime.now(timezone.utc) + timedelta(minutes=self._settings["minutes"])
        done = self._call(
            "PutScheduledUpdateGroupAction",
            AutoScalingGroupName=self._settings["id"],
            ScheduledActionName=self._settings["deadline"],
            StartTime=deadline.strftime("%Y-%m-%dT%H:%M:%SZ"),
            DesiredCapacity="0",
        )
        if done:
            _PUT_OFF.touch()

    def _call(self, action: str, tries: int = _TRIES, **form: str) -> bool:
        """Whether it was done. If not, the machine's own timer and the group's remain."""
        body = urllib.parse.urlencode({"Action": action, "Version": "2011-01-01", **form}).encode()
        for attempt in range(tries):
            try:
                with urllib.request.urlopen(self._signed(body), timeout=30):
                    return True
            except urllib.error.HTTPError as error:
                say(f"{action} failed: {error.read()[:500]!r}")
            except OSError as error:
                say(f"{action} failed: {error}")
            time.sleep(min(30, 2**attempt))
        return False

    def _signed(self, body: bytes) -> urllib.request.Request:
        return signing.signed(
            "POST",
            self._settings["autoscaling"],
            "autoscaling",
            self._settings["region"],
            metadata.credentials(),
            body,
            "application/x-www-form-urlencoded; charset=utf-8",
        )


if __name__ == "__main__":
    sys.exit(main())
