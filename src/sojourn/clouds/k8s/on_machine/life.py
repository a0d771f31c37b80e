"""Process 1 of the agent's container: wait for the upload, run the agent, serve what is left.

python3 -m sojourn.clouds.k8s.on_machine.life          beside a script
python3 -m sojourn.clouds.k8s.on_machine.life store    in a pod that only has the store
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.agent.background import say
from sojourn.agent.config import GONE, RANK_ENDED, TROUBLE, Config
from sojourn.agent.neighbour import Neighbour
from sojourn.agent.work import Agent
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.on_machine.locks import Locks
from sojourn.clouds.k8s.on_machine.taskstore import TaskStore
from sojourn.core.errors import SojournError
from sojourn.storage import layout
from sojourn.storage.lease import read_records, read_reports
from sojourn.storage.served.signs import ASKED, CONNECTED
from sojourn.storage.store import Store, StoreAddress, open_store

if TYPE_CHECKING:
    from sojourn.agent.process import Launch
    from sojourn.clouds.k8s.on_machine.warden import Warden

_LOOK_EVERY = 0.05
# Seconds without a word from the laptop that creates the task, after which it is not waited for.
_HELD_FOR = 300.0
_SILENT = 10.0  # seconds since a laptop asked for anything: nobody needs this pod any more
_SERVES_FOR = 3600.0  # at most, when all has ended; while others still run, laptops can ask them
_SERVES_BESIDE_OTHERS = 15.0
_TRIES = 3  # of the agent, in this pod
_PAUSE = 10.0  # seconds between them: a pod that fails is replaced at once, and again
_IMAGE_WITHIN = 3600.0  # for the script's image to be pulled
_MESSAGE = Path("/dev/termination-log")


class Life:
    """One pod of a task."""

    def __init__(self, settings: dict[str, Any], machine: str) -> None:
        self._settings = settings
        self._machine = machine
        self._going = threading.Event()
        self._neighbour = Neighbour(Path(places.FOLDER))
        self._root = Path(settings["folder"]) if settings["folder"] else None
        self._warden = _warden(settings, machine) if settings.get("mpi") else None

    def run(self) -> int:
        """Returns what the pod exits with: 0 if its rank has ended, else it is replaced."""
        if self._warden:
            self._warden.start()
        code = self._live()
        if self._warden and code != RANK_ENDED:
            self._warden.replace_own()
        return code

    def _live(self) -> int:
        self._listen()
        self._neighbour.prepare()
        if self._root:
            (self._root / places.OBJECTS).mkdir(parents=True, exist_ok=True)
            if self._settings["hold"] and not self._held():
                return RANK_ENDED if not self._going.is_set() else GONE
        if not self._has_neighbour():
            return GONE
        code = self._work()
        store = self._store()
        self._report(store)
        self._neighbour.end()
        if code == RANK_ENDED:
            with suppress(SojournError):
                store.put(places.left(self._machine), b"")
            self._serve(store)
        return code

    def _listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._going.set())

    def _held(self) -> bool:
        """Wait for the upload: whoever creates the task does it by way of this very pod."""
        assert self._root is not None  # noqa: S101 -- asked before
        uploaded = self._root / places.OBJECTS / layout.UPLOADED
        began = time.time()
        while not uploaded.exists():
            if self._going.wait(_LOOK_EVERY):
                return False
            if time.time() - max(began, _last(CONNECTED)) > _HELD_FOR:
                say("nobody uploads anything; giving up")
                return False
        return True

    def _has_neighbour(self) -> bool:
        give_up = time.monotonic() + _IMAGE_WITHIN
        while not self._neighbour.wait(_LOOK_EVERY * 2):
            if self._going.is_set() or time.monotonic() > give_up:
                return False
        return not self._going.is_set()

    def _store(self) -> Store:
        """As the agent sees it."""
        if self._root:
            url = f"file://{self._root / places.OBJECTS}"
            opened = open_store(StoreAddress(url))
        else:
            options = json.loads((Path(places.TASK) / places.STORE_OPTIONS).read_text())
            opened = open_store(StoreAddress(self._settings["store"], options))
        return TaskStore(opened, Path(places.TASK))

    def _work(self) -> int:
        config = Config(
            store=self._settings["store"],
            machine=self._machine,
            folder=places.FOLDER,
            rank=self._settings["rank"],
            ttl=self._settings["ttl"],
            grace=self._settings["grace"],
            look=self._settings["look"],
            address=os.environ.get("SOJOURN_ADDRESS", ""),
            cloud_mpi=True,
        )
        locks = None
        if self._root:
            locks = Locks(self._root / places.LOCKS)
            locks.take(self._machine)
        for attempt in range(_TRIES):
            try:
                agent = Agent(
                    config,
                    store=self._store(),
                    launch=self._launch(),
                    dead=locks,
                    once=True,  # a container runs a script once
                )
                code = agent.run()
            except (SojournError, OSError) as error:
                say(str(error))
                code = TROUBLE
            if code != TROUBLE or self._going.is_set():
                return code
            _tell(f"the agent failed {attempt + 1} times")
            if self._going.wait(_PAUSE):
                return GONE
            if self._neighbour.used:
                return TROUBLE  # a container runs a script once; another pod has a new one
        return TROUBLE

    def _launch(self) -> Launch:
        mpi, start = self._settings.get("mpi"), self._neighbour.start
        if not mpi:
            return start
        from sojourn.clouds.k8s.on_machine.mpi import mpi_launch  # only for those who use it

        return mpi_launch(start, self._settings["rank"], mpi["slots"], mpi["implementation"])

    def _report(self, store: Store) -> None:
        """Tell those who list tasks how this rank ended; without it they look closer."""
        with suppress(SojournError, OSError):
            rank = self._settings["rank"]
            found = [report for report in read_reports(store) if report.rank == rank]
            if found and found[-1].outcome.final:
                _tell(json.dumps(found[-1].to_dict()))

    def _serve(self, store: Store) -> None:
        """Stay while a laptop asks for things: another pod for it would take seconds to come.

        Not while it is just there: the pod still has all that the script asked for, GPUs too.
        """
        self._listen()  # the agent has listened for them
        if not self._root:
            return
        all_ended = False
        began = time.monotonic()
        while time.time() - _last(ASKED) < _SILENT and not self._going.wait(_LOOK_EVERY):
            if not all_ended:
                with suppress(SojournError, OSError):
                    all_ended = all(r.ended for r in read_records(store, self._settings["ranks"]))
            limit = _SERVES_FOR if all_ended else _SERVES_BESIDE_OTHERS
            if time.monotonic() - began > limit:
                return


def _warden(settings: dict[str, Any], machine: str) -> Warden:
    from sojourn.clouds.k8s.on_machine.warden import Cluster, Warden  # TLS takes some memory

    uid = os.environ["SOJOURN_POD"]
    return Warden(settings["id"], settings["rank"], machine, uid, Cluster)


def _last(sign: str) -> float:
    """When a laptop last gave this sign here, by this machine's clock."""
    try:
        return (Path(places.SIGNS) / sign).stat().st_mtime
    except OSError:
        return 0.0


def _tell(text: str) -> None:
    """For the status of the pod."""
    with suppress(OSError):
        _MESSAGE.write_text(text[:4000])


def only_store() -> int:
    """Of a pod that is there for the store alone, until nobody asks for anything any more."""
    going = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: going.set())
    began = time.time()
    while time.time() - max(began + _SILENT, _last(CONNECTED)) < 2 * _SILENT:
        if going.wait(0.2):
            break
    return 0


def main() -> int:
    """Read the settings and live."""
    Path(places.SIGNS).mkdir(parents=True, exist_ok=True)
    if sys.argv[1:] == ["store"]:
        return only_store()
    settings = json.loads((Path(places.TASK) / places.SETTINGS).read_text())
    settings["rank"] = int(os.environ["SOJOURN_RANK"])
    return Life(settings, os.environ["SOJOURN_MACHINE"]).run()


if __name__ == "__main__":
    os._exit(main())
