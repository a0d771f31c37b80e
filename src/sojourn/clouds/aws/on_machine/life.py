"""The life of an EC2 machine: its Auto Scaling group, and what the metadata service tells."""

from __future__ import annotations

import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.clouds.aws.on_machine import metadata, signing
from sojourn.clouds.aws.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.life import live
from sojourn.clouds.vm.on_machine.trying import MARKING, is_done

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPOT = "/meta-data/spot/instance-action"
_REBALANCE = "/meta-data/events/recommendations/rebalance"
_LIFECYCLE = "/meta-data/autoscaling/target-lifecycle-state"


class AutoScalingGroup:
    """The group, as the machine's role lets it be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        found = metadata.get("/meta-data/instance-id", metadata.token())
        if not found:
            raise OSError("the metadata service returned no instance ID")
        self.machine = found

    def denied(self) -> str:
        """A heartbeat of a machine that nobody ends is an error of another kind."""
        action = "RecordLifecycleActionHeartbeat"
        try:
            with urllib.request.urlopen(self._signed(_form(action, self._hook)), timeout=30):
                return ""
        except urllib.error.HTTPError as error:
            said = error.read()[:500]
            return f"autoscaling:{action}" if b"AccessDenied" in said else ""
        except OSError as error:
            say(f"{action} failed: {error}")
            return ""

    def notice(self) -> str:
        token = metadata.token()
        if metadata.get(_SPOT, token):
            return "spot interruption"
        if _taken(token):
            return "terminated by the Auto Scaling group"
        return ""

    def warning(self) -> str:
        if metadata.get(_REBALANCE, metadata.token()):
            return "rebalance recommendation: AWS may interrupt this machine soon"
        return ""

    def ask_for_time(self) -> None:
        if self._is_taken():
            self._call("RecordLifecycleActionHeartbeat", self._hook, 1)

    def leave(self, *, for_good: bool, last: bool = False) -> None:
        """The group may do so already. Either way it waits until this machine is ready.

        If another machine is still wanted, it finds nothing to do and leaves in the same way.
        """
        if not self._is_taken():
            form = {
                "InstanceId": self.machine,
                "ShouldDecrementDesiredCapacity": "true" if for_good else "false",
            }
            self._call("TerminateInstanceInAutoScalingGroup", form)
        self._call("CompleteLifecycleAction", {**self._hook, "LifecycleActionResult": "CONTINUE"})

    def _is_taken(self) -> bool:
        try:
            return _taken(metadata.token())
        except OSError as error:
            say(f"the metadata service does not answer: {error}")
            return False

    @property
    def _hook(self) -> dict[str, str]:
        return {
            "AutoScalingGroupName": self._settings.common.id,
            "LifecycleHookName": self._settings.hook,
            "InstanceId": self.machine,
        }

    def mark(self, tags: Mapping[str, str]) -> None:
        form: dict[str, str] = {}
        for number, (key, value) in enumerate(tags.items(), 1):
            tag = {
                "ResourceId": self._settings.common.id,
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": "false",
            }
            form |= {f"Tags.member.{number}.{name}": text for name, text in tag.items()}
        if form:
            self._call("CreateOrUpdateTags", form, MARKING)

    def put_off_deadline(self) -> None:
        """Only laptops set that of the group."""

    def _call(self, action: str, form: Mapping[str, str], *tries: int) -> None:
        def call() -> None:
            with urllib.request.urlopen(self._signed(_form(action, form)), timeout=30):
                pass

        is_done(action, call, *tries)

    def _signed(self, body: bytes) -> urllib.request.Request:
        return signing.signed(
            "POST",
            self._settings.autoscaling,
            "autoscaling",
            self._settings.region,
            metadata.credentials(),
            body,
            "application/x-www-form-urlencoded; charset=utf-8",
        )


def _form(action: str, more: Mapping[str, str]) -> bytes:
    return urllib.parse.urlencode({"Action": action, "Version": "2011-01-01", **more}).encode()


def _taken(token: str) -> bool:
    """Whether the group has begun to end this machine."""
    return metadata.get(_LIFECYCLE, token) == "Terminated"


if __name__ == "__main__":
    sys.exit(live(Path(sys.argv[1]), "sojourn.clouds.aws.on_machine", Settings, AutoScalingGroup))
