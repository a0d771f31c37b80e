"""What this computer remembers of its tasks."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn import api
from sojourn.core.errors import InvalidInput
from sojourn.core.events import LogLine
from sojourn.core.ids import TaskId
from sojourn.engine import ledger


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def origin(name: str, folder: str = "/a", *, created: str = "2026", workdir: str = "") -> Path:
    found = ledger.Origin(
        str(TaskId.deterministic(name)), "local", folder, workdir, "out", ("*.tmp",), created
    )
    ledger.remember(found)
    assert ledger.find(found.id) == found
    return Path(found.id)


def test_what_is_forgotten_is_gone_and_leaves_no_folders(state: Path) -> None:
    one = str(origin("one"))
    ledger.pulled_path(one).write_text("{}")
    ledger.forget(one)
    ledger.forget(one)
    assert ledger.find(one) is None
    assert not (state / "sojourn").exists()


def test_the_latest_of_a_folder_is_by_where_it_was_created_or_its_workdir(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(here)
    origin("first", str(here), created="2026-01-01")
    second = origin("second", str(link), created="2026-01-02")
    origin("elsewhere", str(other), created="2026-01-03")
    found = ledger.latest(here)
    assert found
    assert found.id == str(second)
    third = origin("third", "/", created="2026-01-04", workdir=str(here))
    found = ledger.latest(link)
    assert found
    assert found.id == str(third)
    assert ledger.latest(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": "../../x"}', '{"id": 1}'])
def test_a_damaged_entry_counts_as_none(text: str) -> None:
    one = str(origin("one"))
    (ledger.pulled_path(one).parent / "origin.json").write_text(text)
    assert ledger.find(one) is None
    assert ledger.latest(Path("/a")) is None


def test_what_a_newer_version_adds_to_an_entry_is_ignored() -> None:
    one = str(origin("one"))
    before = ledger.find(one)
    path = ledger.pulled_path(one).parent / "origin.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"more": 1}))
    assert ledger.find(one) == before


def test_a_state_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    ledger.remember(ledger.Origin("x", "local", "/a", "", None, (), "2026"))
    assert ledger.latest(Path("/a")) is None
    ledger.forget("x")


def test_only_the_newest_entries_and_logs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_TASKS_AT_MOST", 2)
    monkeypatch.setattr(ledger, "_LOGS_AT_MOST", 2)
    ids = [str(origin(name)) for name in ("one", "two", "three")]
    assert [ledger.find(one) is None for one in ids] == [True, False, False]
    line = LogLine(0, 1, "", "text")
    for one in ids:
        ledger.save_log(one, [line], whose=False)
    assert [ledger.log_path(one).exists() for one in ids] == [False, True, True]


def test_a_saved_log_joins_the_pieces_of_a_line_and_tells_whose_it_is() -> None:
    lines = [
        LogLine(0, 1, "", "a", partial=True),
        LogLine(0, 1, "", "b"),
        LogLine(1, 1, "", "caf\udce9"),
    ]
    path = ledger.save_log("x", lines, whose=True)
    assert path.read_bytes() == b"[0] ab\n[1] caf\xe9\n"


def _save(name: str) -> TaskId:
    made = TaskId.deterministic(name)
    path = ledger.log_path(made)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{name}\n")
    return made


def test_an_entry_of_an_older_version_has_no_machine_type(tmp_path: Path) -> None:
    entry = ledger.Origin(
        str(TaskId.deterministic("x")), "local", str(tmp_path), "", "", (), "t", "xl"
    )
    ledger.remember(entry)
    assert ledger.find(entry.id) == entry
    path = tmp_path / "state/sojourn/tasks" / entry.id / "origin.json"
    written = json.loads(path.read_text())
    del written["machine"]
    path.write_text(json.dumps(written))
    found = ledger.find(entry.id)
    assert found is not None
    assert (found.cloud, found.machine) == ("local", "")


def test_saved_logs() -> None:
    assert ledger.logged() == []
    assert api.saved_log("one") is None
    one, two, longer = _save("one"), _save("two"), _save("one-more")
    (ledger.log_path(one).parent / "notes.txt").write_text("")
    assert set(ledger.logged()) == {one, two, longer}
    assert api.saved_log("tw") == (str(two), ledger.log_path(two))
    assert api.saved_log("one") == (str(one), ledger.log_path(one))  # the whole name wins
    assert api.saved_log(str(longer)) == (str(longer), ledger.log_path(longer))
    with pytest.raises(InvalidInput, match="matches multiple tasks"):
        api.saved_log("on")
    for text in ("", "tpi-", "tpi", "../x", "nope"):
        assert api.saved_log(text) is None


def test_the_last_task_of_a_folder_may_be_one_that_was_deleted() -> None:
    folder = Path("/a")
    origin("first", created="2026-01-01")
    second = str(origin("second", created="2026-01-02"))
    assert ledger.latest_deleted(folder) is None
    ledger.save_log(second, [], whose=False)
    ledger.forget(second)
    found = ledger.latest_deleted(folder)
    assert found
    assert found.id == second
    assert ledger.latest_deleted(Path("/b")) is None
    origin("third", created="2026-01-03")
    assert ledger.latest_deleted(folder) is None


def test_a_name_is_short_for_an_id_unless_two_tasks_share_it() -> None:
    first, second = TaskId.random("run"), TaskId.random("run")
    other = TaskId.random("run-1")
    for id in (first, other):  # noqa: A001
        ledger.remember(ledger.Origin(str(id), "local", "/a", "", None, (), "2026"))
    assert (ledger.short(first), ledger.short(other)) == ("run", "run-1")
    ledger.remember(ledger.Origin(str(second), "local", "/a", "", None, (), "2026"))
    assert (ledger.short(first), ledger.short(second)) == (str(first), str(second))


def _origins() -> tuple[ledger.Origin, ledger.Origin]:
    """Those of two commands that create a task of the same name."""
    ours = ledger.find(str(origin("race")))
    assert ours
    return ours, dataclasses.replace(ours, mark="theirs")


def test_an_entry_is_withdrawn_with_its_folders(state: Path) -> None:
    ours, _ = _origins()
    ledger.withdraw(ours)
    ledger.withdraw(ours)
    assert not (state / "sojourn").exists()


def test_the_entry_of_another_command_is_not_withdrawn() -> None:
    ours, theirs = _origins()
    ledger.remember(theirs)
    ledger.withdraw(ours)
    assert ledger.find(ours.id) == theirs


def test_an_entry_that_is_replaced_while_one_is_withdrawn_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = _origins()
    read = ledger._read

    def replaced(path: Path) -> ledger.Origin | None:
        if path.name != "origin.json":
            ledger.remember(theirs)
        return read(path)

    monkeypatch.setattr(ledger, "_read", replaced)
    ledger.withdraw(ours)
    assert ledger.find(ours.id) == theirs


def test_an_entry_is_written_while_another_is_withdrawn() -> None:
    ours, theirs = _origins()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(300):
            ledger.remember(ours)
            withdrawn = pool.submit(ledger.withdraw, ours)
            ledger.remember(theirs)
            withdrawn.result()
            assert ledger.find(ours.id) == theirs


def test_a_task_is_deleted_when_the_last_of_it_is_removed() -> None:
    saved = ledger.Ending("failed", 3, "why", "2026-01-01T00:00:00.000000Z", "/a")
    ledger.save_log("x", [LogLine(0, 1, "", "one")], whose=False, ending=saved)
    ledger.note_removed("x")
    ending = ledger.ending("x")
    assert ending
    assert ending.deleted > "2026-01-02"
    assert replace(ending, deleted=saved.deleted) == saved
    ledger.note_removed("y")  # nothing was saved of it
    assert ledger.ending("y") is None
