"""From the values of a configuration to a task, and what counts as a change."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sojourn import clouds
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.status import State
from sojourn.core.task import Storage, Task
from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.values import UNKNOWN, Object, Unknown, whole
from sojourn.terraform.taskschema import TASK, region_in, storage_of, task_of
from sojourn.terraform.taskstate import completed, described

_SCRIPT = "#!/bin/sh"
_PREFIXED = Unknown(12, b"\x81\x03\xa9#!/bin/sh")


def _values(**given: Any) -> Object:
    values = whole({"cloud": "local", "script": _SCRIPT, **given}, TASK.block)
    assert values
    return values


_BLANK = Storage(output="")  # blank means "don't download", also where nothing is given


def _changes(before: Object, after: Object) -> tuple[Any, ...]:
    prior = plan(TASK.block, None, before, before).state
    prior.update({name: "" for name, value in prior.items() if isinstance(value, Unknown)})
    return plan(TASK.block, prior, after, after).replace


def test_what_is_not_given_has_its_default() -> None:
    plain = Task(script=_SCRIPT, storage=_BLANK)
    assert task_of(_values()) == plain
    assert task_of(_values(storage=[{}])) == plain


def test_all_that_is_given_is_in_the_task() -> None:
    given: dict[str, Any] = {
        "region": "us-east",
        "machine": "l",
        "disk_size": 10,
        "image": "nvidia",
        "permission_set": "arn",
        "parallelism": 2,
        "environment": {"A": "a"},
        "timeout": 60,
        "tags": {"a": "b"},
        "mounts": {"/data": "claim:datasets:ro"},
        "options": {"pod": "spec: {}"},
        "name": "n",
        "arguments": ("--lr", "0.1"),
        "gang": True,
        "gang_timeout": 60,
        "files": {"/a": "b"},
    }
    storage = {"workdir": "w", "output": "o", "exclude": ["*.a"], "container": "c"}
    written = {**given, "arguments": list(given["arguments"])}
    block = {**storage, "default_ignore": False}
    values = _values(**written, spot=Decimal("0.1"), storage=[block])
    expected = Storage("w", "o", ("*.a",), "c", default_ignore=False)
    assert task_of(values) == Task(script=_SCRIPT, spot=0.1, storage=expected, **given)


@pytest.mark.parametrize("unknown", [UNKNOWN, _PREFIXED], ids=["unknown", "refined"])
def test_what_is_not_known_yet_is_taken_for_valid(unknown: Unknown) -> None:
    arguments = [a.name for a in TASK.block.attributes if a.replace]
    inner = [a.name for a in TASK.block.blocks[0].block.attributes]
    values = _values(**dict.fromkeys(arguments, unknown), storage=[dict.fromkeys(inner, unknown)])
    assert task_of(values).script == _SCRIPT
    assert task_of(_values(storage=unknown)) == Task(script=_SCRIPT, storage=_BLANK)


def test_parts_that_are_not_known_yet_are_taken_for_valid() -> None:
    storage = {"exclude": ["*.a", UNKNOWN], "container": UNKNOWN, "container_opts": {"a": "b"}}
    task = task_of(_values(environment={"A": UNKNOWN, "B*": UNKNOWN}, storage=[storage]))
    assert task.environment == {"A": "", "B*": ""}
    assert task.storage.exclude == ("*.a",)


def test_variables_and_tags_that_are_null_are_left_out() -> None:
    task = task_of(_values(environment={"A": None, "B": "b"}, tags={"a": None}))
    assert (task.environment, task.tags) == ({"B": "b"}, {})


def test_all_problems_are_told_at_once() -> None:
    values = _values(script="echo", parallelism=0, storage=[{"output": "../up", "exclude": [None]}])
    with pytest.raises(InvalidInput) as caught:
        task_of(values)
    assert [problem.path for problem in caught.value.problems] == [
        "storage.output",
        "storage.exclude",
        "script",
        "parallelism",
    ]


@pytest.mark.parametrize("name", ["disk_size", "parallelism", "timeout"])
@pytest.mark.parametrize(
    ("value", "said"), [(Decimal("1.5"), "got 1.5"), (Decimal("1e500"), "got inf"), (10**99, "")]
)
def test_numbers_that_are_no_whole_ones_or_too_large(name: str, value: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name}: .*{said}"):
        task_of(_values(**{name: value}))


def test_a_price_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="in USD per hour, got inf"):
        task_of(_values(spot=Decimal("1e500")))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (".", "./", True),
        (".", "HERE", True),
        ("HERE", ".", True),
        ("work", "./work/", True),
        ("work", "other/../work", True),
        ("work", "other", False),
        ("", ".", False),
        (".", "", False),
        (".", None, False),
        ("", None, True),
        (".", UNKNOWN, False),
    ],
)
def test_a_folder_that_is_only_spelled_otherwise_is_the_same(
    before: str, after: Any, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = (os.getcwd() if folder == "HERE" else folder for folder in (before, after))
    found = _changes(_values(storage=[{"workdir": one}]), _values(storage=[{"workdir": other}]))
    assert found == (() if same else (("storage", 0, "workdir"),))


@pytest.mark.parametrize("name", ["environment", "tags", "mounts", "options"])
def test_an_empty_map_is_the_same_as_none(name: str) -> None:
    assert _changes(_values(), _values(**{name: {}})) == ()
    assert _changes(_values(**{name: {}}), _values()) == ()
    assert _changes(_values(), _values(**{name: {"a": "b"}})) == ((name,),)


def test_other_arguments_are_another_task() -> None:
    assert _changes(_values(), _values(arguments=[])) == ()
    assert _changes(_values(arguments=["a"]), _values(arguments=["a"])) == ()
    assert _changes(_values(arguments=["a"]), _values(arguments=["b"])) == (("arguments",),)
    assert described(Task(_SCRIPT, arguments=("a", "b")))["arguments"] == ["a", "b"]
    assert described(Task(_SCRIPT))["arguments"] is None


def test_no_price_is_not_the_same_as_any_price() -> None:
    assert _changes(_values(spot=0), _values()) == (("spot",),)


@pytest.mark.parametrize(
    ("storage", "replaced"),
    [
        ({}, ()),
        ({"output": "o", "exclude": ["*.a"]}, ()),
        ({"workdir": ""}, ()),
        ({"workdir": "."}, (("storage",),)),
        ({"container": "c"}, (("storage",),)),
    ],
)
def test_a_storage_block_that_comes_or_goes_replaces_if_it_says_so(
    storage: dict[str, Any], replaced: tuple[Any, ...]
) -> None:
    assert _changes(_values(), _values(storage=[storage])) == replaced
    assert _changes(_values(storage=[storage]), _values()) == replaced


def test_a_task_is_described_as_it_was_asked_for() -> None:
    storage = Storage("w", "o", ("*.a",))
    maps: dict[str, Any] = {name: {"a": "b"} for name in ("tags", "mounts", "options")}
    task = Task(script=_SCRIPT, spot=0.1, name="n", storage=storage, **maps)
    described_again = task_of(_values(**described(task)))
    assert described_again == task
    assert storage_of(_values(**described(Task(script=_SCRIPT)))) == _BLANK


def test_values_of_variables_are_not_described() -> None:
    assert "environment" not in described(Task(script=_SCRIPT, environment={"A": "secret"}))
    assert described(Task(script=_SCRIPT))["environment"] is None


def test_an_old_state_is_completed_with_defaults() -> None:
    old = {"cloud": "local", "script": _SCRIPT, "tags": {}, "storage": [{"workdir": "."}]}
    now = whole(completed({**old, "spot": 0, "gone": "x"}), TASK.block)
    assert now
    assert (now["spot"], now["machine"], now["tags"]) == (0, "m", None)
    assert (now["mounts"], now["options"]) == (None, None)
    assert now["storage"][0]["container"] == ""
    assert "gone" not in now


def test_mpi_is_a_map_of_texts() -> None:
    task = task_of(_values(mpi={"slots": "2", "implementation": "mpich"}))
    assert (task.mpi, task.gang) == (Mpi(2, "mpich"), True)
    assert task_of(_values(mpi={"slots": UNKNOWN})).mpi == Mpi()
    for wrong, said in (({"slots": "x"}, r"mpi\.slots: .*'x'"), ({"nodes": "3"}, r"mpi\.nodes")):
        with pytest.raises(InvalidInput, match=said):
            task_of(_values(mpi=wrong))


def test_mpi_implies_a_gang_unless_that_is_denied() -> None:
    config = _values(mpi={"slots": "2"})
    assert plan(TASK.block, None, config, config).state["gang"] is True
    later = _values(mpi=UNKNOWN)
    assert plan(TASK.block, None, later, later).state["gang"] == UNKNOWN
    assert plan(TASK.block, None, _values(), _values()).state["gang"] is False
    with pytest.raises(InvalidInput, match="gang: must not be false with mpi"):
        task_of(_values(mpi={}, gang=False))


def test_defaults_of_mpi_change_nothing() -> None:
    said = _values(mpi={"slots": "1", "implementation": "openmpi"})
    assert _changes(_values(mpi={}), said) == ()
    assert _changes(_values(mpi={"slots": "2"}), said) == (("mpi",),)
    assert ("mpi",) in _changes(_values(), said)


def test_an_imported_gang_needs_no_replacement() -> None:
    task = clouds.placed(Task(script=_SCRIPT, mpi=Mpi(2), files={"a": "b"}))
    assert task_of(_values(**described(task))) == replace(task, storage=_BLANK)
    prior = {**_values(**described(task)), "id": "tpi-x"}
    config = _values(mpi={"slots": "2"}, files={"a": "b"})
    assert plan(TASK.block, prior, config, config, imported=True).replace == ()


def test_the_description_of_the_state_names_all_of_them() -> None:
    [told] = [each.description for each in TASK.block.attributes if each.name == "state"]
    assert re.findall(r"`([\w-]+)`", told) == [str(each) for each in State]


def test_what_is_there_stays_in_its_region_if_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "sojourn").mkdir()
    (tmp_path / "sojourn" / "config.toml").write_text(
        '[clouds.team]\nkind = "aws"\nregion = "eu-north-1"\n'
    )
    there = {"cloud": "team", "region": "us-west"}
    assert region_in({"cloud": "team"}, there) == "us-west"
    assert region_in({"cloud": "team"}, None) == "eu-north-1"
    assert region_in({"cloud": "aws"}, there) == "us-west"  # another cloud: the default
    assert region_in({"cloud": "aws"}, {"cloud": "aws", "region": "x"}) == "us-west"
    assert region_in({"cloud": UNKNOWN}, there) is UNKNOWN
