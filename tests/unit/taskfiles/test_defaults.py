"""Defaults and profiles of settings files: which value counts, and what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.settings import user_file
from sojourn.taskfiles.defaults import ARGUMENTS, every_default, merged
from tests.docs.blocks import sections


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _says(project: Path, text: str, user: str = "") -> None:
    (project / "sojourn.toml").write_text(text)
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(user)


def _values(profile: str = "") -> dict[str, tuple[object, str]]:
    found = merged(every_default(profile))
    return {name: (each.value, each.origin) for name, each in found.items()}


def test_the_strongest_value_counts(project: Path) -> None:
    user = "[defaults]\nspot = 1\nregion = 'a'\ndisk_size = 1\n[profiles.p]\nspot = 3\nname = 'n'\n"
    _says(project, "[defaults]\nspot = 2\nregion = 'b'\n[profiles.p]\nspot = 4\n", user)
    config = "~/config/sojourn/config.toml"
    assert _values() == {
        "spot": (2, "sojourn.toml:2"),
        "region": ("b", "sojourn.toml:3"),
        "disk_size": (1, f"{config}:4"),
    }
    assert _values("p") == {
        "spot": (4, "sojourn.toml:5"),
        "region": ("b", "sojourn.toml:3"),
        "disk_size": (1, f"{config}:4"),
        "name": ("n", f"{config}:7"),
    }


def test_variables_add_up(project: Path) -> None:
    _says(project, "", '[defaults]\nenvironment = ["A"]\n[profiles.p]\nenvironment = {B = ""}\n')
    assert _values("p")["environment"][0] == {"A": "", "B": ""}


def test_a_workdir_of_a_project_is_the_same_everywhere(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _says(project, '[defaults]\nworkdir = "."\n')
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    assert _values()["workdir"][0] == str(project)
    _says(project, "", '[defaults]\nworkdir = "~/data"\n')
    assert _values()["workdir"][0] == str(project.parent / "data")
    _says(project, "", '[defaults]\nworkdir = "."\n')
    assert _values()["workdir"][0] == "."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[defaults]\nregon = 1", "sojourn.toml:2: defaults.regon: unknown field; did you mean re"),
        ("[defaults]\nscript = 'x'", "sojourn.toml:2: defaults.script: unknown field"),
        ("[defaults]\nspot = 'x'", "sojourn.toml:2: defaults.spot: must be a number, got a string"),
        ("[defaults]\nstay = 1", "sojourn.toml:2: defaults.stay: must be a boolean"),
        ("[defaults]\ntags = {a = 1}", "sojourn.toml:2: defaults.tags.a: must be a string"),
        ("[defaults]\nmpi = {slot = 1}", "sojourn.toml:2: defaults.mpi.slot: unknown field"),
        (
            "[defaults]\nenvironment = ['AWS_*']",
            "sojourn.toml:2: defaults.environment: not for a project; list your variables in ~/.co",
        ),
        ("[defaults]\nworkdir = '..'", "sojourn.toml:2: defaults.workdir: must be inside the proj"),
        ("[defaults]\nworkdir = '/'", "sojourn.toml:2: defaults.workdir: must be inside the proje"),
        (
            "[defaults]\ncontainer_opts = {key = 'secret'}",
            "sojourn.toml:2: defaults.container_opts: not supported in settings",
        ),
        ("[profiles.p]\nregon = 1", "sojourn.toml:2: profiles.p.regon: unknown field"),
        ("[profiles]\np = 1", "sojourn.toml:2: profiles.p: must be a table"),
    ],
)
def test_what_cannot_be_a_default_is_refused_with_its_line(
    project: Path, text: str, said: str
) -> None:
    _says(project, text)
    with pytest.raises(InvalidInput) as caught:
        every_default("p" if "profiles" in text else "")
    assert str(caught.value).startswith(said)
    assert "'secret'" not in str(caught.value)


def test_a_workdir_of_a_project_is_none_outside_by_a_link(project: Path) -> None:
    (project / "link").symlink_to(project.parent)
    _says(project, '[defaults]\nworkdir = "link"\n')
    with pytest.raises(InvalidInput, match="must be inside the project"):
        every_default()


def test_values_of_variables_are_refused(project: Path) -> None:
    _says(project, "", "[defaults]\nenvironment = {KEY = 'secret'}\n")
    with pytest.raises(InvalidInput) as caught:
        every_default()
    assert "config.toml:2: defaults.environment.KEY: must be empty, to copy" in str(caught.value)
    assert "'secret'" not in str(caught.value)


def test_an_unknown_profile_is_refused(project: Path) -> None:
    _says(project, "[profiles.a]\n[profiles.b]\n")
    with pytest.raises(InvalidInput, match=r"unknown profile 'c' \(available: a, b\)"):
        every_default("c")


def test_all_arguments_but_what_a_task_is_can_have_one() -> None:
    assert {"workdir", "spot", "cloud", "timeout", "gang"} <= set(ARGUMENTS)
    assert not {"script", "arguments", "storage", "runner"} & set(ARGUMENTS)


def test_the_defaults_of_the_page_are_some(project: Path) -> None:
    page = next(s for s in sections("docs/settings.md") if s.heading == "Defaults and profiles")
    _says(project, "", page.blocks[0].text)
    assert {name: value for name, (value, _) in _values("big").items()} == {
        "cloud": "team",
        "workdir": ".",
        "output": "results",
        "environment": {"WANDB_*": ""},
        "machine": "xl+v100",
        "spot": 0,
    }
