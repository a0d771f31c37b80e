"""What a machine is told: first by its first script, and then by a file of its own. No secrets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["BootData", "CloudSettings", "MachineSettings"]

S = TypeVar("S", bound="CloudSettings")


@dataclass(frozen=True, kw_only=True)
class MachineSettings:
    """What machines of every cloud are told. `marks`, `gang` and `container` came later."""

    id: str
    page: str  # the cloud's, in the docs
    wheels: Sequence[str]  # the hashes of what it may unpack
    store: str  # as machines see it
    store_options: Mapping[str, Any]
    problem_folder: str  # in the store, as are the keys
    host_keys: str
    minutes: int  # after which it ends, whatever happens
    marks: bool = False  # it tells at its group how ranks ended
    given: bool  # its rights are an identity of the user's
    gang: int = 0  # the ranks of one
    notice: float  # seconds that it has once it is to be taken away
    heartbeat: float  # how often one that stores its work asks for more time
    ttl: float  # seconds of silence after which a machine counts as lost
    grace: float
    patience: float  # for what it boots with; new rights may not be known everywhere yet
    rights_within: float  # the same, for rights of an identity of the user's
    failures: int  # of the agent, after which it gives up
    container: str = ""  # the image that the script runs in
    user: str  # whom the image lets in
    ssh_key: str  # that opens it, too


@dataclass(frozen=True)
class CloudSettings:
    """A cloud adds what else its machines need; all of it is on one level as data."""

    common: MachineSettings
    boot: str  # the URL of the folder that it boots from
    problems: str  # the URL of the folder for why it could not

    def as_data(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        return {**asdict(self.common), **own}

    @classmethod
    def parse(cls: type[S], data: Mapping[str, Any]) -> S:
        """Of a machine that another version made, some may be missing."""
        common = {
            each.name: data[each.name] for each in fields(MachineSettings) if each.name in data
        }
        own = {each.name: data[each.name] for each in fields(cls)[1:]}
        return cls(MachineSettings(**common), **own)

    @classmethod
    def read(cls: type[S], file: Path) -> S:
        return cls.parse(json.loads(file.read_text()))


class BootData(TypedDict):
    """The part of it that the first script reads, which has no room for this module."""

    page: str
    wheels: list[str]
    minutes: int
    patience: float
    boot: str
