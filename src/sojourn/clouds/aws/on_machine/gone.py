"""Which machines EC2 knows to be gone."""

from __future__ import annotations

import urllib.parse
import urllib.request
from xml.etree import ElementTree

from sojourn.clouds.aws.on_machine import metadata, signing
from sojourn.clouds.aws.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.gone import GoneMachines

__all__ = ["Gone"]

_VERSION = "2016-11-15"  # of the API
_ASK_EVERY = 1.0  # seconds
_ABSENCES = 3
_WITHIN = 10.0


class Gone(GoneMachines[Settings]):
    """By the task's tag."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _ASK_EVERY, _ABSENCES)

    def _look(self) -> dict[str, bool]:
        return {machine: state == "terminated" for machine, state in self._states().items()}

    def _states(self) -> dict[str, str]:
        form = {
            "Action": "DescribeInstances",
            "Version": _VERSION,
            "Filter.1.Name": f"tag:{self._settings.tag}",
            "Filter.1.Value.1": self._settings.common.id,
        }
        request = signing.signed(
            "POST",
            self._settings.ec2,
            "ec2",
            self._settings.region,
            metadata.credentials(),
            urllib.parse.urlencode(form).encode(),
            "application/x-www-form-urlencoded; charset=utf-8",
        )
        with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
            text: bytes = answer.read()
        try:
            return _states_in(text)
        except ElementTree.ParseError as error:
            raise OSError(f"EC2 answered strangely: {error}") from error


def _states_in(text: bytes) -> dict[str, str]:
    tree = ElementTree.fromstring(text)  # noqa: S314 -- of EC2 itself
    if not any(element.tag.endswith("}reservationSet") for element in tree.iter()):
        raise OSError("EC2 answered strangely")
    found = {}
    for element in tree.iter():
        parts = {part.tag.rpartition("}")[2]: part for part in element}
        if {"instanceId", "instanceState"} <= parts.keys():
            names = [e.text for e in parts["instanceState"] if e.tag.endswith("}name")]
            found[str(parts["instanceId"].text)] = str(names[0]) if names else ""
    return found
