"""What `--json` prints: the schema, and that every command keeps to it.

`SCHEMA` is the table that docs/reference.md documents. Each line of output is an object with a
`type`; its other keys are those listed, no more and no fewer. Keys may be added in later
versions, never renamed or removed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.waiting import until
from tests.unit.cli.shell import Shell, stubs

_TEXT, _INT, _NUMBER, _BOOL, _LIST, _MAP = (str,), (int,), (int, float), (bool,), (list,), (dict,)
_INT_OR_NULL = (int, type(None))

# type of row -> key -> the types that its value may have
SCHEMA: dict[str, dict[str, tuple[type, ...]]] = {
    # Events: what happens while a command works.
    "step-started": {"step": _TEXT, "phase": _TEXT},  # phase: the step that it is a part of
    "step-ended": {  # error: empty if none
        "step": _TEXT,
        "seconds": _NUMBER,
        "error": _TEXT,
        "phase": _TEXT,
    },
    "progress": {"step": _TEXT, "done": _INT, "total": _INT, "unit": _TEXT},  # total: -1: unknown
    "note": {"message": _TEXT},
    "downloaded": {"files": _INT, "bytes": _INT, "folder": _TEXT},
    "warned": {"message": _TEXT},
    "status-changed": {"id": _TEXT, "state": _TEXT, "reason": _TEXT, "exit_code": _INT_OR_NULL},
    "log-line": {  # partial: the end of this line has not been printed yet
        "rank": _INT,
        "attempt": _INT,
        "time": _TEXT,
        "text": _TEXT,
        "partial": _BOOL,
        "id": _TEXT,
    },
    # Results: what a command was called for.
    "created": {"id": _TEXT},  # run, create
    "plan": {  # run --dry-run, create --dry-run; id: empty if each creation has a new one
        "id": _TEXT,
        "cloud": _TEXT,
        "exists": _BOOL,
        "resources": _LIST,
        "files": _INT,
        "bytes": _INT,
        "parts": _LIST,
        "excluded": _LIST,
    },
    "ended": {  # run, attach, mpi run
        "id": _TEXT,
        "state": _TEXT,
        "exit_code": _INT_OR_NULL,
        "seconds": _INT_OR_NULL,
        "attempts": _INT,
        "files": _INT,
        "bytes": _INT,
        "results": _TEXT,  # empty: nothing was downloaded
    },
    "deleted-task": {  # status of a task that was deleted
        "id": _TEXT,
        "state": _TEXT,
        "exit_code": _INT_OR_NULL,
        "reason": _TEXT,
        "deleted": _TEXT,
        "results": _TEXT,  # empty: none were downloaded
        "log": _TEXT,
    },
    "task": {  # list, status, read; machines and events: not in list
        "id": _TEXT,
        "cloud": _TEXT,
        "state": _TEXT,
        "reason": _TEXT,
        "exit_code": _INT_OR_NULL,
        "counts": _MAP,
        "ranks": _LIST,
        "created": _TEXT,  # empty: not known
        "machine": _TEXT,
        "command": _TEXT,
        "seconds": _INT_OR_NULL,
        "machines": _LIST,
        "events": _LIST,
    },
    "pulled": {"files": _LIST},  # pull; relative to the workdir
    "interrupted": {"machines": _LIST},  # interrupt
    "deleted": {"id": _TEXT},  # delete
    "garbage": {
        "id": _TEXT,
        "reason": _TEXT,
        "removed": _BOOL,
        "error": _TEXT,
        "creator": _TEXT,
    },  # gc
    "finding": {"verdict": _TEXT, "subject": _TEXT, "detail": _TEXT},  # doctor
    "installed": {  # terraform install
        "version": _TEXT,
        "python": _TEXT,
        "record": _TEXT,
        "changed": _BOOL,
        "wrappers": _LIST,
    },
    "uninstalled": {"files": _LIST, "folders": _LIST},  # terraform uninstall
    # The last row of a command that failed.
    "error": {"error": _TEXT, "message": _TEXT, "hint": _TEXT, "problems": _LIST},
}

# Rows within rows.
PARTS: dict[str, dict[str, tuple[type, ...]]] = {
    "counts": {"running": _INT, "succeeded": _INT, "failed": _INT},
    "ranks": {
        "rank": _INT,
        "state": _TEXT,
        "attempt": _INT,
        "exit_code": _INT_OR_NULL,
        "reason": _TEXT,
        "machine": _TEXT,
    },
    "machines": {"id": _TEXT, "address": _TEXT, "started": _TEXT, "rank": _INT_OR_NULL},
    "events": {"type": _TEXT, "time": _TEXT, "code": _TEXT, "description": _TEXT},
    "problems": {"path": _TEXT, "message": _TEXT},
    "parts": {"path": _TEXT, "files": _INT, "bytes": _INT},
    "wrappers": {"tool": _TEXT, "path": _TEXT, "change": _TEXT},
}

STATES = {
    *("queued", "provisioning", "running", "recovering", "storing"),
    *("succeeded", "failed", "timed-out", "stopped"),
}


def _check(row: dict[str, Any], *, absent: tuple[str, ...] = ()) -> None:
    keys = dict(row)
    kind = keys.pop("type")
    expected = {key: types for key, types in SCHEMA[kind].items() if key not in absent}
    assert keys.keys() == expected.keys(), row
    for key, types in expected.items():
        assert type(keys[key]) in types, (key, row)
    if "state" in keys:
        assert keys["state"] in STATES
    for name, part in PARTS.items():
        if kind not in ("task", "error", "installed", "plan") or name not in keys:
            continue
        for member in [keys[name]] if name == "counts" else keys[name]:
            assert member.keys() == part.keys()
            for key, types in part.items():
                assert type(member[key]) in types, (key, row)


def _types(rows: list[dict[str, Any]]) -> set[str]:
    for row in rows:
        _check(row)
    return {row["type"] for row in rows}


_STEPS = {"step-started", "step-ended"}


def test_run(shell: Shell) -> None:
    shell.file("data", "x" * 100)
    rows, told = shell.rows_and_notes(
        *("run", "--machine", "l", "--workdir", ".", "--", "sh", "-c", "printf a; ls")
    )
    assert _types(rows) == {
        *_STEPS,
        *("created", "ended", "log-line", "progress", "status-changed"),
    }
    assert told.startswith("Ignoring machine")
    states = [row["state"] for row in rows if row["type"] == "status-changed"]
    assert states[-1] == "succeeded"
    steps = [(row["phase"], row["step"]) for row in rows if row["type"] == "step-started"]
    ended = [(row["phase"], row["step"]) for row in rows if row["type"] == "step-ended"]
    assert sorted(steps) == sorted(ended)
    phases = {step for phase, step in steps if not phase}
    assert {phase for phase, _ in steps if phase} < phases


def test_dry_run(shell: Shell) -> None:
    shell.file("data/x", "x" * 100)
    for command in (["run", "--dry-run"], ["create", "--dry-run", "--name", "x"]):
        (row,) = shell.rows(*command, "--workdir", ".", "--exclude", "*.pyc", "true")
        _check(row)
        assert (row["cloud"], row["files"], row["bytes"]) == ("local", 1, 100)
    (row,) = shell.rows("run", "--dry-run", "true")
    _check(row)


def test_detached(shell: Shell) -> None:
    for command in (["run", "--detach"], ["create"]):
        rows = shell.rows(*command, "--", "true")
        assert _types(rows) == {*_STEPS, "created"}


def test_the_verbs_of_a_running_task(shell: Shell) -> None:
    shell.file("results/old", "")
    task = shell.detached(
        "echo started; echo x > results/new; sleep 60", "--workdir", ".", "--output", "results"
    )
    until(lambda: shell("logs", task).stdout == "started\n")

    (row,) = shell.rows("list")
    _check(row, absent=("machines", "events"))
    assert (row["id"], row["state"], row["cloud"]) == (task, "running", "local")
    (row,) = shell.rows("status", task)
    _check(row)
    assert row["counts"] == {"running": 1, "succeeded": 0, "failed": 0}
    assert [(each["id"], each["rank"]) for each in row["machines"]] == [
        (row["ranks"][0]["machine"], 0)
    ]
    assert [event["code"] for event in row["events"]] == ["machine-started"]
    assert _types(shell.rows("logs", task)) == {"log-line"}
    assert [row["id"] for row in shell.rows("logs", task)] == [task]
    assert _types(shell.rows("read", task)) == {"log-line", "task"}

    def pulled() -> list[str]:
        rows = shell.rows("pull", task)
        assert _types(rows) - {"progress", "warned"} == {*_STEPS, "downloaded", "pulled"}
        files: list[str] = rows[-1]["files"]
        return files

    until(lambda: pulled() == ["results/new"])
    rows = shell.rows("interrupt", task, "--no-notice")
    assert _types(rows) == {*_STEPS, "interrupted"}
    until(lambda: shell.rows("status", task)[0]["ranks"][0]["attempt"] == 2)
    assert _types(shell.rows("stop", task)) == {*_STEPS, "status-changed"}
    assert _types(shell.rows("start", task)) == {*_STEPS, "status-changed"}
    rows = shell.rows("delete", task)
    assert _types(rows) - {"progress", "warned"} == {*_STEPS, "downloaded", "deleted"}
    assert shell.rows("list") == []


def test_warnings(shell: Shell) -> None:
    shell.file("data", "")
    (shell.cwd / "out").symlink_to("/etc")
    rows = shell.rows("run", "--workdir", ".", "--", "true")
    assert "warned" in _types(rows)


def test_gc(shell: Shell) -> None:
    task = shell.detached("true")
    until(lambda: shell.state(task) == "succeeded")
    rows, told = shell.rows_and_notes("gc")
    assert (_types(rows), "sojourn gc --yes" in told) == ({"garbage"}, True)
    rows = shell.rows("gc", "--yes")
    assert _types(rows) == {*_STEPS, "garbage"}
    assert [row["removed"] for row in rows if row["type"] == "garbage"] == [True]
    assert shell.rows_and_notes("gc")[0] == []


def test_gc_of_what_has_no_home(shell: Shell) -> None:
    task = shell.detached("touch new", "--output", ".")
    until(lambda: shell.state(task) == "succeeded")
    printed = shell("gc", "--yes", "--json").stdout
    (row,) = map(json.loads, printed.splitlines())
    assert _types([row]) == {"garbage"}
    assert (row["removed"], f"sojourn delete {task} --into" in row["error"]) == (False, True)


def test_doctor(shell: Shell) -> None:
    rows = shell.rows("doctor")
    assert _types(rows) == {"finding"}
    assert {row["verdict"] for row in rows} <= {"ok", "note", "problem"}


def test_terraform(shell: Shell) -> None:
    stubs(shell)
    for command, kind in (("install", "installed"), ("uninstall", "uninstalled")):
        printed = shell.ok("terraform", command, "--json")
        assert _types([json.loads(line) for line in printed.splitlines()]) == {kind}
    row = json.loads(shell.ok("terraform", "uninstall", "--json"))
    assert _types([row]) == {"uninstalled"}
    assert row == {"type": "uninstalled", "files": [], "folders": []}


def test_errors(shell: Shell) -> None:
    assert _types(shell.rows("status", "x")) == {"error"}
    assert _types(shell.rows("run", "--parallelism", "0", "--", "true")) == {"error"}


def test_the_reference_documents_every_row() -> None:
    reference = Path(__file__).parents[3] / "docs" / "reference.md"
    if not reference.exists():
        return
    text = reference.read_text()
    missing = [kind for kind in SCHEMA if f"`{kind}`" not in text]
    assert missing == []


def test_rows_are_lines(shell: Shell) -> None:
    result = shell("run", "--json", "--", "printf", r"a\rb\fc\v\x1c\u2028é\n")
    for line in result.stdout.split("\n")[:-1]:
        assert json.loads(line)["type"] in SCHEMA
