"""What this computer remembers of the tasks that it created."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn import api
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.engine import ledger


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def _save(name: str) -> TaskId:
    made = TaskId.deterministic(name)
    path = ledger.log_path(made)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{name}\n")
    return made


def test_an_entry_of_an_older_version_has_no_machine_type(tmp_path: Path) -> None:
    origin = ledger.Origin(
        str(TaskId.deterministic("x")), "local", str(tmp_path), "", "", (), "t", "xl"
    )
    ledger.remember(origin)
    assert ledger.find(origin.id) == origin
    path = tmp_path / "sojourn/tasks" / origin.id / "origin.json"
    written = json.loads(path.read_text())
    del written["machine"]
    path.write_text(json.dumps(written))
    found = ledger.find(origin.id)
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
    with pytest.raises(InvalidInput, match="could be any of"):
        api.saved_log("on")
    for text in ("", "tpi-", "tpi", "../x", "nope"):
        assert api.saved_log(text) is None
