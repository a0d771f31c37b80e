"""Identifiers of tasks: `tpi-{name}-{salt}-{check}`, compatible with the old provider's.

The last part is a check of the two before it, so that a mistyped or made-up id is refused
before any cloud is asked about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.words import ADJECTIVES, ANIMALS, COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TaskId"]

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME_LENGTH = 28
_PATTERN = re.compile(r"tpi-(?P<name>[a-z0-9-]*)-(?P<salt>[a-z0-9]{8})-(?P<check>[a-z0-9]{8})")
_CI_NAMES = ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BITBUCKET_STEP_TRIGGERER_UUID")


def normalise(name: str) -> str:
    """Lower-case, dashes for all that is not a letter or digit, 28 characters at most."""
    dashed = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_NAME_LENGTH]
    return dashed.removeprefix("-").removesuffix("-")


def hash8(text: str) -> str:
    """The first 8 base-36 digits of the SHA-256 of a text."""
    import hashlib  # not free to load, and most commands have no id to look at

    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))[:8]


@dataclass(frozen=True, order=True)
class TaskId:
    """What a task and all that is made for it are called."""

    name: str
    salt: str
    check: str

    @classmethod
    def deterministic(cls, name: str) -> TaskId:
        """The one id that this name has, everywhere and always."""
        return cls._make(name, hash8(name))

    @classmethod
    def random(cls, name: str = "") -> TaskId:
        """A new id; without a name, with a readable one of three words."""
        import secrets  # not free to load either

        if not name:
            name = "-".join(secrets.choice(words) for words in (ADJECTIVES, COLOURS, ANIMALS))
        return cls._make(name, hash8(secrets.token_hex(32)))

    @classmethod
    def for_name(cls, name: str, environment: Mapping[str, str]) -> TaskId:
        """Deterministic if the user gave a name; else random, named after the CI run if any."""
        if name:
            return cls.deterministic(name)
        return cls.random(next((environment[v] for v in _CI_NAMES if environment.get(v)), ""))

    @staticmethod
    def looks_like(text: str) -> bool:
        """Whether it has the form of a whole id."""
        return _PATTERN.fullmatch(text) is not None

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Read an id back; one whose check part is wrong is refused."""
        match = _PATTERN.fullmatch(text)
        if not match:
            raise InvalidInput(
                "id", f"invalid task ID {text!r}; expected tpi-NAME-xxxxxxxx-xxxxxxxx"
            )
        parsed = cls(**match.groupdict())
        if parsed.check != hash8(parsed.name + parsed.salt):
            raise InvalidInput(
                "id", f"invalid task ID {text!r}: its checksum does not match; check it for typos"
            )
        return parsed

    @classmethod
    def _make(cls, name: str, salt: str) -> TaskId:
        name = normalise(name)
        return cls(name, salt, hash8(name + salt))

    @property
    def short(self) -> str:
        """16 characters, for clouds whose names must be short."""
        return self.salt + self.check

    def __str__(self) -> str:
        return f"tpi-{self.name}-{self.salt}-{self.check}"
