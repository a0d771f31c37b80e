"""What commands and machines of different versions tell each other, by way of a store.

Both are read from the golden file, too: a new version reads what this one wrote.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sojourn import clouds
from sojourn.agent.config import Config
from sojourn.clouds.vm.machine_settings import machine_settings
from sojourn.core.activity import Activity, Doing
from sojourn.core.gang import Mpi
from sojourn.core.report import Outcome, Report
from sojourn.core.runner import Program, Runner
from sojourn.core.task import Storage, Task
from sojourn.storage import lease as leases
from sojourn.storage.data import load_task, task_text
from sojourn.storage.folder import FolderStore
from sojourn.storage.gangs import Ending, Mark, Member, Rounds
from sojourn.storage.lease import Lease, Leases, read_records, read_reports
from sojourn.storage.manifest import FILE, FOLDER, LINK, Entry, Manifest, Part, decode, encode
from sojourn.storage.store import StoreAddress
from tests.golden.frozen import FOLDER as GOLDEN
from tests.golden.frozen import same_json

_NOW = "2026-01-31T12:34:56.123456Z"
_PLAIN = Task(
    "#!/bin/sh\ntrue\n",
    cloud="aws",
    region="eu-west",
    machine="m+t4",
    disk_size=30,
    spot=0.25,
    image="user@owner:x86_64:name",
    permission_set="arn:aws:iam::123456789012:instance-profile/x",
    parallelism=3,
    storage=Storage("work", "results", ("*.tmp",), "bucket/path", {"key": "secret"}, False),
    environment={"NAME": "secret"},
    timeout=5400,
    tags={"team": "blue"},
    name="plain",
    arguments=("--lr", "0.1"),
    mounts={"/data": "claim:sets:ro"},
    options={"ssh_from": "none"},
    files={"/etc/hpl/HPL.dat": "text\n"},
    warm=600,
)
_RUNNER = Runner(
    "github",
    "https://github.com/owner/repo",
    "name",
    "tpi-id",
    ("cml", "gpu"),
    True,
    600,
    {"x86_64": Program("2.1", "https://example.org/program", "0" * 64)},
)
_BARE = {  # a command stores each with the region of its cloud
    "plain": _PLAIN,
    "least": Task("#!/bin/sh\n"),
    "machine": Task("#!/bin/sh\n", stay=True, idle_timeout=3600, timeout=0),
    "gang": Task("#!/bin/sh\n", parallelism=2, gang=True, gang_timeout=60),
    "mpi": Task("#!/bin/sh\n", parallelism=2, mpi=Mpi(4, "intel")),
    "runner": Task("#!/bin/sh\n", runner=_RUNNER, timeout=0),
}
_TASKS = {name: clouds.placed(task) for name, task in _BARE.items()}
_REPORTS = (
    Report(0, 1, Outcome.PREEMPTED, "interrupted", None, _NOW, _NOW, 3, 0),
    Report(0, 2, Outcome.FAILED, "exit code 1", 1, _NOW, _NOW, 0, -1),
    Report(1, 1, Outcome.LOST, "the machine was lost", ended=_NOW),
)
_ENDING = Ending(Outcome.FAILED, 1, "exit code 7", 7, "s000000000010", 2, True)
_MEMBER = Member(
    1, 2, "machine", "10.0.0.1", 4242, {"s000000000010": "ranks/0001/x"}, {"ssh": "ssh-ed25519 A"}
)
_ENTRIES = (
    Entry("folder", FOLDER, 0o755, 1),
    Entry("folder/file", FILE, 0o644, 2, 7, (Part("workdir/objects/" + "a" * 64, 0, 7, "b" * 64),)),
    Entry("folder/link", LINK, 0o777, 3, target="file", ctime=4, inode=5),
)
_MANIFEST = Manifest({entry.path: entry for entry in _ENTRIES}, {"workdir/objects/" + "a" * 64: 7})
_CONFIG = Config(
    "file:///store",
    "machine",
    "/folder",
    {"region": "eu"},
    ("dead",),
    True,
    1,
    30.0,
    10.0,
    1.0,
    5.0,
    120.0,
    "10.0.0.1",
    True,
    "why",
    True,
)


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Any]:
    """What versions until now have written."""
    data: Mapping[str, Any] = json.loads((GOLDEN / "wire.json").read_text())
    return data


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    (tmp_path / "store").mkdir()
    return FolderStore(tmp_path / "store")


def test_what_is_written(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "utc_now", lambda: _NOW)
    _write(store)
    written = {item.path: _text(store, item.path) for item in store.list("")}
    address = StoreAddress("s3://bucket/path", {"region": "eu"})
    settings = machine_settings(
        "tpi-id",
        address,
        _PLAIN,
        user="ubuntu",
        marks=True,
        page="aws.md",
        wheels=["a"],
        notice=120,
    )
    same_json(
        "wire.json",
        {
            "tasks": {name: json.loads(task_text(task)) for name, task in _TASKS.items()},
            "store": written,
            "manifest": _lines(encode(_MANIFEST)),
            "agent": json.loads(_CONFIG.text()),
            "machine": asdict(settings),
        },
    )


@pytest.mark.parametrize("name", _TASKS)
def test_tasks_are_read(store: FolderStore, golden: Mapping[str, Any], name: str) -> None:
    store.put("task.json", json.dumps(golden["tasks"][name]).encode())
    storage = _TASKS[name].storage
    task = load_task(store)
    assert asdict(task) == {
        **asdict(_TASKS[name]),
        "environment": dict.fromkeys(_TASKS[name].environment, ""),
        "storage": {**asdict(storage), "container_opts": dict.fromkeys(storage.container_opts, "")},
    }


def test_a_store_is_read(store: FolderStore, golden: Mapping[str, Any]) -> None:
    for path, text in golden["store"].items():
        store.put(path, text.encode())
    assert tuple(read_reports(store)) == _REPORTS
    first, _, third = read_records(store, 3)
    assert (first.attempt, first.report) == (2, _REPORTS[1])
    assert (third.machine, third.began) == ("machine", _NOW)
    assert third.activity == Activity(Doing.RESTORING, 1, 2)
    rounds = Rounds(store)
    assert rounds.newest() == 2
    assert rounds.member(2, 1) == _MEMBER
    assert (rounds.readiness(2, 1), rounds.failure(2), rounds.ending(2)) == (_ENDING,) * 3
    assert rounds.marks_of(1, 1) == {"b000000000003": "ranks/0001/data/000002/snapshots/00000001"}
    look = rounds.look(2)
    assert (look.ready, look.done, look.stopped, look.asked) == (
        frozenset({1}),
        frozenset({0}),
        frozenset({1}),
        3,
    )


def test_a_manifest_is_read(golden: Mapping[str, Any]) -> None:
    assert decode(zlib.compress("".join(golden["manifest"]).encode())) == _MANIFEST


def test_the_settings_of_an_agent_are_read(golden: Mapping[str, Any]) -> None:
    assert Config.parse(json.dumps(golden["agent"])) == _CONFIG


def _write(store: FolderStore) -> None:
    """Everything that commands and machines say of the state of a task."""
    for rank, count in ((0, 2), (1, 1), (2, 1)):
        for attempt in range(1, count + 1):
            mine = Leases(store, "machine", 3, ttl=60, rank=rank)
            assert mine.take() == Lease(rank, attempt)
            mine.renew(Lease(rank, attempt), Activity(Doing.RESTORING, 1, 2) if rank == 2 else None)
            for report in _REPORTS:
                if (report.rank, report.attempt) == (rank, attempt):
                    assert mine.report(report)
    rounds, asked = Rounds(store), Mark("b", 3)
    rounds.join(2, _MEMBER)
    rounds.be_ready(2, 1, _ENDING)
    rounds.ask(2, asked)
    rounds.mark(2, 1, asked, "ranks/0001/data/000002/snapshots/00000001")
    rounds.say(2, "done", 0)
    rounds.say(2, "stopped", 1)
    rounds.fail(2, _ENDING)
    rounds.end(2, _ENDING)


def _text(store: FolderStore, path: str) -> str:
    return bytes(store.get(path)).decode()


def _lines(manifest: bytes) -> list[str]:
    return zlib.decompress(manifest).decode().splitlines(keepends=True)
