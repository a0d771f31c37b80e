"""What becomes of a task when its configuration changes."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, NamedTuple

from tests.terraform.project import Project

_SCRIPT = "#!/bin/sh\\nmkdir one two\\necho 1 > one/file\\necho 2 > two/file\\necho 3 > two/skipped"
_FULL = {
    "cloud": '"local"',
    "script": f'"{_SCRIPT}"',
    "environment": '{ A = "a", B = "b" }',
    "tags": '{ a = "b" }',
    "mounts": '{ "/a" = "b" }',
    "options": '{ a = "b" }',
    "storage": '{ workdir = "work", output = "one", exclude = ["*.tmp"] }',
}
_BARE = {"cloud": '"local"', "script": '"#!/bin/sh"'}
_BLOCKS = ("storage", "timeouts")


def _resource(name: str, arguments: dict[str, str]) -> str:
    lines = []
    for key, value in arguments.items():
        if key in _BLOCKS:
            inner = value.strip("{} ").replace(", ", "\n    ")
            lines.append(f"{key} {{\n    {inner}\n  }}")
        else:
            lines.append(f"{key} = {value}")
    return "\n  ".join([f'resource "iterative_task" "{name}" {{', *lines]) + "\n}\n"


class Change(NamedTuple):
    """Arguments that are changed, or removed with ""; what then happens, and because of what."""

    base: dict[str, str]
    changed: dict[str, str]
    actions: list[str]
    paths: list[list[str | int]] = []  # noqa: RUF012


_NOTHING = ["no-op"]
_IN_PLACE = ["update"]
_REPLACED = ["delete", "create"]


def _replaces(argument: str, value: str, base: dict[str, str] | None = None) -> Change:
    return Change(base or _FULL, {argument: value}, _REPLACED, [[argument]])


def _stored(value: str, actions: list[str], *paths: list[str | int]) -> Change:
    return Change(_FULL, {"storage": value}, actions, list(paths))


_CHANGES = [
    Change(_FULL, {}, _NOTHING),
    # Which region is its cloud's is not known either.
    Change(_FULL, {"cloud": "terraform_data.later.id"}, _REPLACED, [["cloud"], ["region"]]),
    _replaces("script", '"#!/bin/sh\\n"'),
    _replaces("arguments", '["a"]'),
    Change(_FULL, {"arguments": "[]"}, _IN_PLACE),
    _replaces("script", '"#!/bin/sh\\n${terraform_data.later.id}"'),
    _replaces("region", '"us-east"'),
    _replaces("machine", '"l"'),
    _replaces("disk_size", "10"),
    _replaces("spot", "0"),
    _replaces("image", '"nvidia"'),
    _replaces("permission_set", '"arn"'),
    _replaces("parallelism", "2"),
    _replaces("environment", '{ A = "a", B = "c" }'),
    _replaces("environment", '{ A = "a" }'),
    _replaces("environment", ""),
    _replaces("environment", '{ A = "a" }', _BARE),
    _replaces("timeout", "60"),
    _replaces("tags", '{ a = "c" }'),
    _replaces("tags", ""),
    _replaces("mounts", '{ "/a" = "c" }'),
    _replaces("mounts", ""),
    _replaces("options", '{ a = "c" }'),
    _replaces("options", ""),
    _replaces("name", '"hello"'),
    _replaces("storage", '{ workdir = "work" }', _BARE),
    _replaces("storage", ""),
    _stored(
        '{ workdir = "other", output = "one", exclude = ["*.tmp"] }',
        _REPLACED,
        ["storage", 0, "workdir"],
    ),
    _stored('{ output = "one", exclude = ["*.tmp"] }', _REPLACED, ["storage", 0, "workdir"]),
    _stored(
        '{ workdir = "work", output = "one", container = terraform_data.later.id }',
        _REPLACED,
        ["storage", 0, "container"],
    ),
    _stored(
        '{ workdir = "work", output = "one", exclude = ["*.tmp"], default_ignore = false }',
        _REPLACED,
        ["storage", 0, "default_ignore"],
    ),
    _stored(
        '{ workdir = "work", output = "one", exclude = ["*.tmp"], default_ignore = true }',
        _IN_PLACE,
    ),
    Change(_FULL, {"environment": '{ B = "b", A = "a" }'}, _NOTHING),
    Change(_FULL, {"timeout": '"86400"', "parallelism": "1.0", "spot": '"-1"'}, _NOTHING),
    Change(_FULL, {"region": "null", "machine": '"m"', "name": "null"}, _NOTHING),
    Change(_FULL, {"name": '""'}, _IN_PLACE),
    Change(_BARE, {"mounts": "{}", "options": "{}"}, _IN_PLACE),
    Change(_BARE, {"tags": "{}", "environment": "{}", "storage": "{}"}, _IN_PLACE),
    Change(_BARE, {"storage": '{ output = "results" }'}, _IN_PLACE),
    Change(_FULL, {"timeouts": '{ create = "1m" }'}, _IN_PLACE),
    _stored('{ workdir = "work", output = "two", exclude = ["*.tmp"] }', _IN_PLACE),
    _stored('{ workdir = "work", exclude = ["*.tmp"] }', _IN_PLACE),
    _stored('{ workdir = "work", output = "one", exclude = ["*.log"] }', _IN_PLACE),
    _stored('{ workdir = "work", output = "one" }', _IN_PLACE),
    _stored('{ workdir = "work/", output = "one", exclude = ["*.tmp"] }', _IN_PLACE),
    _stored('{ workdir = "./other/../work", output = "one", exclude = ["*.tmp"] }', _IN_PLACE),
    _stored('{ workdir = abspath("work"), output = "one", exclude = ["*.tmp"] }', _IN_PLACE),
]


def _copy_in_state(project: Project, copies: dict[str, str]) -> str:
    """Let more addresses stand for a task that there is; returns the state as it was before."""
    path = project.folder / "terraform.tfstate"
    before = path.read_text()
    state = json.loads(before)
    made = {resource["name"]: resource for resource in state["resources"]}
    for name, original in copies.items():
        state["resources"].append({**deepcopy(made[original]), "name": name})
    path.write_text(json.dumps(state))
    return before


def _planned(project: Project) -> dict[str, dict[str, Any]]:
    project.run("plan", "-out=tfplan")
    shown = json.loads(project.run("show", "-json", "tfplan").out)
    changes = shown["resource_changes"]
    return {item["name"]: item["change"] for item in changes if item["type"] == "iterative_task"}


def test_each_argument_changes_in_place_or_replaces(project: Project) -> None:
    (project.folder / "work").mkdir()
    (project.folder / "other").mkdir()
    bases = {"full": _FULL, "bare": _BARE}
    base = "".join(_resource(name, arguments) for name, arguments in bases.items())
    project.write(base)
    project.init()
    project.apply()
    project.until_state("succeeded", "iterative_task.full")
    project.until_state("succeeded", "iterative_task.bare")
    rows = {f"r{index}": change for index, change in enumerate(_CHANGES)}
    before = _copy_in_state(
        project, {name: "full" if row.base is _FULL else "bare" for name, row in rows.items()}
    )
    hcl = base + 'resource "terraform_data" "later" {}\n'
    for name, row in rows.items():
        arguments = {**row.base, **row.changed}
        hcl += _resource(name, {key: value for key, value in arguments.items() if value})
    project.write(hcl)

    changes = _planned(project)
    found = {
        name: (changes[name]["actions"], changes[name].get("replace_paths", [])) for name in rows
    }
    wrong = [(row, found[n]) for n, row in rows.items() if found[n] != (row.actions, row.paths)]
    assert wrong == []

    (project.folder / "terraform.tfstate").write_text(before)
    project.write(base)
    project.destroy()


def _task(storage: str, more: str = "") -> str:
    return _resource("example", {**_FULL, "storage": storage}) + more


def test_changes_in_place_take_effect(project: Project) -> None:
    (project.folder / "work").mkdir()
    project.write(_task('{ workdir = "work", output = "one" }'))
    project.init()
    project.apply()
    project.until_state("succeeded")
    own = project.task()["id"]
    for storage in (
        '{ workdir = "work/", output = "one" }',
        f'{{ workdir = "{project.folder / "work"}", output = "two", exclude = ["skipped"] }}',
    ):
        project.write(_task(storage))
        assert "1 changed, 0 destroyed" in project.apply().out
        project.plan()
    assert project.task()["id"] == own
    project.destroy()
    assert [path.name for path in (project.folder / "work").rglob("file")] == ["file"]
    assert (project.folder / "work/two/file").read_text() == "2\n"
    assert not (project.folder / "work/two/skipped").exists()


def test_a_storage_block_that_says_only_what_comes_home_comes_and_goes_in_place(
    project: Project,
) -> None:
    bare = {**_BARE, "script": f'"{_SCRIPT}"'}
    project.write(_resource("example", bare))
    project.init()
    project.apply()
    project.until_state("succeeded")
    for arguments in (
        {**bare, "storage": '{ output = "one" }'},
        {**bare, "timeouts": '{ delete = "5m" }'},
        {**bare, "storage": '{ output = "two" }'},
    ):
        project.write(_resource("example", arguments))
        assert "1 changed, 0 destroyed" in project.apply().out
    project.plan()
    project.destroy()
    assert not (project.folder / "one").exists()
    assert (project.folder / "two/file").read_text() == "2\n"


def test_a_replacement_brings_the_results_of_the_first_home(project: Project) -> None:
    (project.folder / "work").mkdir()
    project.write(_task('{ workdir = "work", output = "one" }'))
    project.init()
    project.apply()
    project.until_state("succeeded")
    own = project.task()["id"]
    project.write(
        _task('{ workdir = "work", output = "one" }').replace(_SCRIPT, "#!/bin/sh\\ncat one/file")
    )
    assert "1 added, 0 changed, 1 destroyed" in project.apply().out
    assert (project.folder / "work/one/file").read_text() == "1\n"
    assert project.task()["id"] != own
    project.until_state("succeeded")
    assert project.task()["logs"][0].endswith(" 1")
    project.destroy()
