"""What clouds say of themselves, and what is made of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from sojourn import Task, clouds
from sojourn.cli.commands.run import run
from sojourn.clouds import kinds, named
from sojourn.core.about import About
from sojourn.core.errors import MissingDependency

_ABOUT = About(
    title="The Moon",
    extra="moon",
    packages=("rocket",),
    modules=("json",),
    variables=("MOON_KEY",),
    files=("~/.moon/key",),
    options=(("crater", "where to land"), ("suit", "what to wear")),
)


@pytest.fixture
def moon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """A cloud that a folder and a name have made."""
    module = ModuleType("sojourn.clouds.moon")
    vars(module).update(
        ABOUT=_ABOUT, make_cloud=lambda name, settings: "made", examine=lambda settings: iter(())
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    every = kinds.KINDS
    for each in (clouds, kinds, named):
        monkeypatch.setattr(each, "KINDS", (*every, "moon"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MOON_KEY", raising=False)
    return module


def test_the_first_is_the_default() -> None:
    assert Task("#!/bin/sh").cloud == clouds.KINDS[0]


@pytest.mark.parametrize("name", clouds.KINDS)
def test_what_a_cloud_says_is_complete(name: str) -> None:
    about = clouds.about(name)
    assert about.title
    assert bool(about.extra) == bool(about.modules) == bool(about.packages)
    assert all(file.startswith(("~/", "/")) for file in about.files)


def test_all_are_named(moon: ModuleType) -> None:
    assert clouds.any_of().endswith(" or moon")
    assert clouds.any_of("`").startswith(f"`{clouds.KINDS[0]}`, ")


def test_help_lists_the_options_of_each_cloud(moon: ModuleType) -> None:
    context = click.Context(run)
    [option] = [item for item in run.params if item.name == "options"]
    shown = dict([option.get_help_record(context) or ("", "")])["--option KEY=VALUE"]
    assert shown.endswith("; moon: crater, suit]")


def test_a_cloud_is_set_up_by_a_variable_or_a_file(
    moon: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (clouds.signs("moon"), clouds.is_set_up("moon")) == ([], False)
    assert "moon" in clouds.not_set_up()
    monkeypatch.setenv("MOON_KEY", "secret")
    assert (clouds.signs("moon"), clouds.is_set_up("moon")) == (["MOON_KEY"], True)
    monkeypatch.delenv("MOON_KEY")
    (tmp_path / ".moon").mkdir()
    (tmp_path / ".moon" / "key").touch()
    assert (clouds.signs("moon"), clouds.is_set_up("moon")) == (["~/.moon/key"], True)
    assert "moon" not in clouds.not_set_up()


@pytest.mark.parametrize("module", ["not_there", "not_there.inside"])
def test_without_its_sdk_a_cloud_is_not_set_up_and_says_what_to_install(
    moon: ModuleType, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setenv("MOON_KEY", "secret")
    assert clouds.load("moon") == "made"  # type: ignore[comparison-overlap]
    vars(moon)["ABOUT"] = About("The Moon", "moon", modules=(module,), files=("~/",))
    assert clouds.signs("moon")
    assert not clouds.is_set_up("moon")
    with pytest.raises(MissingDependency) as raised:
        clouds.load("moon")
    assert raised.value.message == f"The Moon needs {module}, which is not installed"
    assert "[moon]" in raised.value.hint


def test_one_that_looks_for_nothing_is_always_set_up(moon: ModuleType) -> None:
    vars(moon)["ABOUT"] = About("The Moon")
    assert clouds.is_set_up("moon")
