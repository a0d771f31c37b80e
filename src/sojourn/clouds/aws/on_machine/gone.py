"""Which machines EC2 knows to be gone. A machine that is only cut off is not."""

from __future__ import annotations

import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any
from xml.etree import ElementTree

from sojourn.clouds.aws.on_machine import metadata, signing

__all__ = ["Gone"]

_VERSION = "2016-11-15"  # of the API
_ASK_EVERY = 1.0  # seconds; an agent that waits looks several times a second
_ABSENCES = 3  # answers in a row: one that was just launched may not be known everywhere yet
_WITHIN = 10.0


class Gone:
    """`machine in gone` asks EC2. Raises OSError if it does not tell."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._gone: set[object] = set()
        self._asked: dict[object, float] = {}
        self._absent: dict[object, int] = {}

    def __contains__(self, machine: object) -> bool:
        if machine in self._gone:
            return True
        now = time.monotonic()
        if now - self._asked.get(machine, -_ASK_EVERY) < _ASK_EVERY:
            return False
        self._asked[machine] = now
        state = self._state(str(machine))
        self._absent[machine] = 0 if state else self._absent.get(machine, 0) + 1
        if state != "terminated" and self._absent[machine] < _ABSENCES:
            return False
        self._gone.add(machine)
        return True

    def _state(self, machine: str) -> str:
        """Empty: EC2 does not know it, or not any more."""
        form = {
            "Action": "DescribeInstances",
            "Version": _VERSION,
            "Filter.1.Name": "instance-id",
            "Filter.1.Value.1": machine,
        }
        request = signing.signed(
            "POST",
            self._settings["ec2"],
            "ec2",
            self._settings["region"],
            metadata.credentials(),
            urllib.parse.urlencode(form).encode(),
            "application/x-www-form-urlencoded; charset=utf-8",
        )
        with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
            text: bytes = answer.read()
        try:
            return _state_in(text)
        except ElementTree.ParseError as error:
            raise OSError(f"EC2 answered strangely: {error}") from error


def _state_in(text: bytes) -> str:
    tree = ElementTree.fromstring(text)  # noqa: S314 -- of EC2 itself
    for element in tree.iter():
        if element.tag.endswith("}instanceState"):
            return next((str(e.text) for e in element if e.tag.endswith("}name")), "")
    if not any(element.tag.endswith("}reservationSet") for element in tree.iter()):
        raise OSError("EC2 answered strangely")
    return ""
