"""The whole system on one page: what a cloud has to implement, and nothing else.

A cloud is an ordered list of resources. The engine runs it forwards to create, backwards to
delete and flat to read: no cloud writes its own steps. Names derive from the task's id, so every
verb finds again what an earlier one made, and can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sojourn.core.logpart import WHOLE, LogPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sojourn.core.activity import Activity
    from sojourn.core.context import Context
    from sojourn.core.events import CloudEvent, LogLine
    from sojourn.core.filters import Filters
    from sojourn.core.ids import TaskId
    from sojourn.core.report import Report
    from sojourn.core.status import RankRecord, Status
    from sojourn.core.task import Task

__all__ = [
    "ChangedFile",
    "Cloud",
    "Connection",
    "Data",
    "Features",
    "Fleet",
    "Found",
    "Ignore",
    "Images",
    "KeyPair",
    "LogCursor",
    "MadeImage",
    "Member",
    "Place",
    "Reach",
    "RemoteProcess",
    "Resource",
    "Scaler",
    "Terminal",
]


@dataclass(frozen=True)
class Features:
    """What a cloud can do beside the common verbs; data that can be read, never an exception."""

    # The store is reached by way of machines: the first one comes before the upload, and waits.
    upload_through_machines: bool = False
    # Made for one task, so that users can be added to them, and files be put anywhere.
    private_machines: bool = False
    shared_identity: bool = False  # all users of a machine can act in the cloud as the machine
    warm: bool = False  # machines can be kept for another run
    mpi: tuple[str, ...] = ("openmpi",)  # implementations
    instead_of_images: str = ""  # what to do where the disk of a machine cannot be made an image
    poll: float = 1.0  # seconds between looks while following; each costs what the cloud charges


@dataclass(frozen=True)
class Member:
    """One member of a scaler, as observed."""

    id: str
    address: str = ""
    started: str = ""


@dataclass(frozen=True)
class Fleet:
    """The machines of a scaler at one moment: how many it is to keep alive, and those that are.

    `stuck`: it tries no more, until it is scaled again.
    """

    wanted: int
    machines: tuple[Member, ...]
    stuck: bool = False


@dataclass(frozen=True)
class MadeImage:
    """An image that was made from a machine, `sojourn:NAME` in its region.

    `created` is in UTC; `base` is the image that the machine booted from. One that is not `ready`
    was never finished, or is just being made. `task`: the id of the task whose machine it was.
    """

    name: str
    region: str
    created: str = ""
    base: str = ""
    ready: bool = True
    task: str = ""


@dataclass(frozen=True)
class KeyPair:
    """What opens the machines of a task by SSH, as OpenSSH writes it."""

    public: str
    private: str = field(repr=False)


@dataclass(frozen=True)
class Terminal:
    """What a command on a machine is shown on: its size, and its kind as in TERM."""

    rows: int = 24
    columns: int = 80
    name: str = "xterm"


class Place(str, Enum):
    """Where a changed file is, seen from what comes home."""

    HOME = "home"
    WITHHELD = "withheld"  # in the output, but a program on this computer would run it by itself
    OWN = "own"  # in the output, below a folder such as .venv that is here and was not uploaded
    OUTSIDE = "outside"


class ChangedFile(NamedTuple):
    """A file that a task left in its workdir and that was not uploaded like this."""

    path: str
    size: int
    place: Place = Place.OUTSIDE


class Ignore(Protocol):
    """Decides, beside the filters, what is not uploaded."""

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether this path, relative to the workdir, stays at home."""


class Found(Protocol):
    """Told of the files of a folder."""

    def __call__(self, files: Iterable[tuple[str, int]]) -> None:
        """Their paths, relative to the folder, and their sizes."""


class LogCursor(Protocol):
    """How far the logs of a task were read; `Data.logs` moves it on."""


class Resource(Protocol):
    """One thing made in a cloud for a task. Constructors do no I/O.

    Neighbours of the same `stage` do not need each other: they are made at the same time.
    """

    stage: int

    @property
    def title(self) -> str:
        """What it is and its name, for people: "folder /x/y", "bucket tpi-..."."""

    def read(self, ctx: Context) -> bool:
        """Whether it exists, wholly or in part."""

    def create(self, ctx: Context) -> None:
        """Make it; if it is there already, make sure that it is right."""

    def delete(self, ctx: Context) -> None:
        """Remove it and all that is in it; if it is absent, do nothing."""


class Scaler(Resource, Protocol):
    """The cloud's own group that keeps N machines alive; created with none."""

    def scale(self, ctx: Context, machines: int) -> None:
        """Keep this many machines alive from now on. Absent: raises NotFound.

        Scaling down gives each machine that goes a notice and time to flush; it does not wait.
        """

    def fleet(self, ctx: Context) -> Fleet | None:
        """The machines that it is to keep alive, and those that are alive. Absent: None."""

    def events(self, ctx: Context) -> list[CloudEvent]:
        """What it tells of itself, oldest first; absent: none."""

    def obstacle(self, ctx: Context) -> str:
        """Why machines that are wanted do not come, or went without having done anything.

        Nothing is known, or it is absent: empty.
        """

    def keys(self, ctx: Context) -> KeyPair | None:
        """The key of its machines; there is none, or it is absent: None."""

    def console(self, ctx: Context, machine: str) -> str:
        """What a machine has printed on its console, at least the end of it, as it is.

        It is gone, or has none, or the cloud does not tell: empty.
        """

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        """Take one machine away like a spot market does. Absent: raises NotFound."""


class RemoteProcess(Protocol):
    """A command that runs on a machine. One thread may write while another one reads."""

    def write(self, data: bytes) -> None:
        """To its standard input; blocks while it is not read. Closed: raises BrokenPipeError."""

    def close_input(self) -> None:
        """Its standard input has no more."""

    def output(self) -> Iterator[tuple[int, bytes]]:
        """What it prints as it comes, after 1 or 2 for the stream, until it ends.

        On a terminal there is one stream, 1.
        """

    def resize(self, rows: int, columns: int) -> None:
        """Its terminal has another size now; without one, does nothing."""

    def signal(self, number: int) -> None:
        """Send it a signal; if it has ended, does nothing."""

    def wait(self) -> int:
        """Its exit code as a shell gives it: 128 + N for signal N."""

    def close(self) -> None:
        """End it if it still runs. Can be repeated."""


class Connection(Protocol):
    """A TCP connection to a port of a machine."""

    def read(self) -> bytes:
        """What came; blocks until something has. Nothing at the end."""

    def write(self, data: bytes) -> None:
        """Send all of this."""

    def close_write(self) -> None:
        """Nothing more will be sent; reading goes on. Not every cloud can tell the other side."""

    def close(self) -> None:
        """End it. Can be repeated."""


class Reach(Protocol):
    """The way into a machine that runs a rank. Machine gone: raises NotFound."""

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        """Run a command in the workdir, with the script's environment, until the machine ends.

        A program that cannot be run ends with 126 or 127, as in a shell.
        """

    def connect(self, ctx: Context, port: int) -> Connection:
        """Connect to a port that the machine itself reaches at 127.0.0.1."""


class Images(Protocol):
    """Images made from machines. Regions are those of a task, or the cloud's own."""

    def check(self, ctx: Context, task: Task) -> None:
        """Refuse, before anything is made, a machine whose disk cannot be made an image."""

    def clean(self, ctx: Context, id: TaskId, machine: str) -> None:
        """Remove all of the task from a machine's disk.

        Nothing can be run on the machine after it, and its scaler does not replace it.
        """

    def take(self, ctx: Context, id: TaskId, task: Task, machine: str, name: str) -> None:
        """Make a machine's disk the image of this name, and wait until it can be used."""

    def all(self, ctx: Context, region: str = "") -> list[MadeImage]:
        """All that there are, finished or not, in a region or in all of them."""

    def delete(self, ctx: Context, name: str, region: str) -> None:
        """Remove an image, finished or not; if it is absent, do nothing."""


class Data(Protocol):
    """What a task keeps: its description, workdir, logs, reports and results."""

    mark: str
    """Names this object among all that create the same task; `sign` leaves it in the store."""

    def sign(self, ctx: Context, creator: str) -> None:
        """Leave the mark of this object in the store, with the name of the task's creator."""

    def creators(self, ctx: Context) -> dict[str, str]:
        """The marks in the store, with the names that creators gave. Absent: none."""

    def save(
        self, ctx: Context, task: Task, environment: dict[str, str], creator: str = ""
    ) -> None:
        """Sign, and write the task down. If another one is there already: raises Conflict."""

    def alone(self, ctx: Context) -> bool:
        """Whether nobody signed it but this very object: what was made can be removed again."""

    def amend(self, ctx: Context, task: Task, environment: dict[str, str] | None = None) -> None:
        """Write a changed description of the task over the one there is. Absent: writes it.

        The environment is left as it is unless it is given.
        """

    def is_beginning_again(self, ctx: Context) -> bool:
        """Whether somebody began to forget what machines stored, and did not finish."""

    def begin_again(self, ctx: Context) -> None:
        """Forget all that machines stored, and have those that are still there run it again."""

    def load(self, ctx: Context) -> Task:
        """The task without its environment's values. Absent: raises NotFound."""

    def push(
        self,
        ctx: Context,
        workdir: Path,
        filters: Filters,
        ignore: Ignore | None,
        found: Found | None = None,
    ) -> None:
        """Upload the workdir; what is there already is not sent again.

        `found` is told of all its files before the first is sent.
        """

    def keep_program(self, ctx: Context, sha256: str, file: Path) -> None:
        """Put a program where machines find it by its SHA-256."""

    def pull(
        self, ctx: Context, output: str, into: Path, filters: Filters, memory: Path | None
    ) -> list[str]:
        """Bring `output` of all ranks home, into `into`/`output`; returns the paths written.

        A rank that has stored nothing has what was pushed. `memory`: the file on this computer in
        which pulls of this task remember what they wrote; without it, they replace nothing that
        differs from what was pushed.
        """

    def holds(self, ctx: Context, output: str) -> bool:
        """Whether any rank has anything at this path. Absent: no."""

    def changed(
        self,
        ctx: Context,
        output: str = "",
        filters: Filters | None = None,
        into: Path | None = None,
        memory: Path | None = None,
    ) -> list[ChangedFile]:
        """Files of all ranks that are new or differ from what was pushed, caches aside.

        The others are what `pull` takes, and decide on the place of each file; one that comes home
        counts even if it was written anew with the same bytes. `into`: None if it is not known yet.
        Absent: none.
        """

    def uploading(self, ctx: Context) -> Activity | None:
        """What whoever creates the task uploads just now. Absent: nothing."""

    def cursor(self) -> LogCursor:
        """A new cursor at the beginning of all logs."""

    def logs(self, ctx: Context, cursor: LogCursor, part: LogPart = WHOLE) -> Iterator[LogLine]:
        """The lines of a part after the cursor, in the order of their times; moves it.

        Absent: none.
        """

    def log_tail(self, ctx: Context, size: int) -> Iterator[LogLine]:
        """The last lines, of about this many bytes. Absent: none."""

    def watch(self, ctx: Context) -> None:
        """Tell the machines that somebody is following the logs just now."""

    def records(self, ctx: Context, parallelism: int) -> list[RankRecord]:
        """What is known of each rank, in order. Absent: of none anything."""

    def reports(self, ctx: Context) -> list[Report]:
        """Of all attempts that are over, by rank and attempt. Absent: none."""

    def created(self, ctx: Context) -> str:
        """When it was first saved, in UTC. Absent, or not known: empty."""

    def idle(self, ctx: Context) -> float:
        """Seconds since anything was written. Absent: infinitely many."""


class Cloud(Protocol):
    """Where tasks run. Constructors do no I/O."""

    name: str
    features: Features

    def address(self) -> str:
        """What it leads to, as far as is known without a call: if two clouds of a kind have the
        same address, they have the same tasks. Not known: empty."""

    def check_form(self, task: Task) -> None:
        """Refuse what cannot run here, as far as the task itself tells: without a call or an SDK.

        `check` does the same, and more.
        """

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        """Refuse, before anything is made, what cannot run here; yields notes for the user."""

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        """Pure; in the order of creation: the store first, the scaler last.

        `task` is None when it is not known, as when deleting.
        """

    def scaler(self, id: TaskId) -> Scaler:
        """The scaler of a task, whether or not it exists."""

    def data(self, id: TaskId) -> Data:
        """The data of a task, whether or not any exists."""

    def reach(self, id: TaskId, machine: str) -> Reach:
        """The way into a machine."""

    def images(self) -> Images | None:
        """The images made from machines; None: they cannot be made here."""

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        """All tasks of which anything exists, complete or not, from any shell."""

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        """The states of many tasks at a glance, in a call or two for all of them.

        Left out: those that need a closer look, which are asked one by one. That may be all.
        """
