"""Clouds with names of the user's: what may be said of them, and that each is one of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sojourn
from sojourn import clouds, engine
from sojourn.cli.checkup import checkup
from sojourn.clouds import kinds
from sojourn.core.errors import InvalidInput, MissingDependency, NotFound
from sojourn.kube.kubeconfig import Asked
from sojourn.settings import user_file
from tests.docs.blocks import sections
from tests.support.waiting import until

_LABS = """\
[clouds.lab]
kind = "local"
folder = "one"

[clouds.attic]
kind = "local"
folder = "{folder}/two"
"""


@pytest.fixture
def project(own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with nothing in it; settings go there."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield folder
    for each in (folder / "sojourn.toml", user_file()):
        each.unlink(missing_ok=True)  # it may be wrong on purpose


def _says(project: Path, text: str) -> None:
    (project / "sojourn.toml").write_text(text)


def _says_user(text: str) -> Path:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(text)
    return user_file().parent


def test_two_of_a_kind_have_tasks_of_their_own(project: Path, tmp_path: Path) -> None:
    config = _says_user(_LABS.format(folder=tmp_path))
    made = [
        sojourn.create(sojourn.Task("#!/bin/sh\necho $TPI_REGION\n", cloud=name, name="same"))
        for name in ("lab", "attic", "local")
    ]
    assert {handle.id for handle in made} == {made[0].id}
    try:
        until(lambda: all(handle.status().state.ended for handle in made))
        found = sojourn.list_tasks()
        assert sorted(handle.cloud for handle in found) == ["attic", "lab", "local"]
        assert [path.name for path in (config / "one" / "tasks").iterdir()] == [made[0].id]
        assert [path.name for path in (tmp_path / "two" / "tasks").iterdir()] == [made[0].id]
        made[0].delete()
        assert not made[0].exists()
        assert made[1].exists()
    finally:
        for handle in made:
            handle.delete(fetch=False)


def test_two_that_lead_to_the_same_tasks_are_listed_once(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "config" / "sojourn")
    _says_user(_LABS.replace("two", "link/one").format(folder=tmp_path))
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="attic"))
    try:
        assert [each.cloud for each in sojourn.list_tasks()] == ["lab"]
        assert sojourn.get(handle.id).cloud == "attic"  # as it was created
    finally:
        handle.delete(fetch=False)


def test_a_kind_means_what_it_means_without_settings(project: Path, tmp_path: Path) -> None:
    config = _says_user(_LABS.format(folder=tmp_path))
    assert clouds.load("local").address() == str(tmp_path / "data" / "sojourn" / "local")
    assert clouds.load("lab").address() == str(config / "one" / "tasks")
    assert (clouds.load("lab").name, clouds.kind_of("lab")) == ("lab", "local")
    assert clouds.names()[:3] == ["lab", "attic", "local"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[clouds.aws]", r":1: clouds.aws: the name of a kind of cloud; choose another, such as m"),
        ("[clouds.azure]", r":1: clouds.azure: the name of a kind"),
        ("[clouds.Lab]", r":1: clouds.Lab: must be lower-case letters, digits and single hyphens"),
        ("\n[clouds.lab]", r":2: clouds.lab.kind: required: local, aws, gcp, az or k8s"),
        ("[clouds.lab]\nkind = 1", r":2: clouds.lab.kind: must be local, aws, gcp, az or k8s, got"),
        (
            '[clouds.lab]\nkind = "awss"',
            r":2: clouds.lab.kind: .*; did you mean 'aws'\?",
        ),
        (
            '[clouds.lab]\nkind = "aws"\nprofil = "x"',
            r":3: clouds.lab.profil: unknown setting of aws \(available: kind, profile, region\); "
            r"did you mean 'profile'\?",
        ),
        ('[clouds.lab]\nkind = "aws"\nprofile = ""', r":3: clouds.lab.profile: must be a string"),
        ('[clouds.lab]\nkind = "aws"\nregion = 1', r":3: clouds.lab.region: must be a string"),
        ("[clouds]\nlab = 1", r":2: clouds.lab: must be a table, as in \[clouds.lab\]"),
    ],
)
def test_what_cannot_be_a_cloud_is_refused_with_its_line(
    project: Path, text: str, said: str
) -> None:
    _says(project, text)
    with pytest.raises(InvalidInput, match=f"^sojourn.toml{said}"):
        clouds.names()


def test_a_cloud_that_is_in_no_settings_is_unknown(project: Path, tmp_path: Path) -> None:
    _says_user(_LABS.format(folder=tmp_path))
    with pytest.raises(InvalidInput, match=r"unknown cloud 'lap' .*attic.*; did you mean 'lab'\?"):
        clouds.load("lap")


def test_a_kind_without_its_extra_is_told_with_the_line(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _says(project, '\n[clouds.team]\nkind = "aws"\n')
    monkeypatch.setattr(clouds, "missing_modules", lambda kind: ["boto3"] if kind == "aws" else [])
    with pytest.raises(
        MissingDependency, match=r"AWS \(team, sojourn.toml:2\) needs boto3, which is not installed"
    ):
        clouds.load("team")
    assert sojourn.list_tasks() == []
    with pytest.raises(NotFound, match=r"Not searched .*team"):
        sojourn.get("no-such-task")


def test_the_project_replaces_a_cloud_of_the_user(project: Path, tmp_path: Path) -> None:
    _says(project, '[clouds.lab]\nkind = "local"\n')
    _says_user('[clouds.lab]\nkind = "aws"\n[clouds.here]\nkind = "local"\nfolder = "~/here"\n')
    assert clouds.kind_of("lab") == "local"
    assert clouds.load("here").address() == str(tmp_path / "here" / "tasks")


@pytest.mark.parametrize(
    ("kind", "setting"), [("local", "folder"), ("k8s", "kubeconfig"), ("gcp", "credentials")]
)
def test_a_project_names_no_files_of_this_computer(project: Path, kind: str, setting: str) -> None:
    """A clone may bring the settings, and a kubeconfig with a program to run."""
    _says(project, f'[clouds.lab]\nkind = "{kind}"\n{setting} = "here"\n')
    with pytest.raises(InvalidInput, match=f"sojourn.toml:3: clouds.lab.{setting}: not for a proj"):
        sojourn.list_tasks()


def test_what_settings_name_is_not_uploaded(project: Path, tmp_path: Path) -> None:
    _says_user(f'[clouds.lab]\nkind = "local"\nfolder = "{project}/tasks"\n')
    storage = sojourn.Storage(workdir=str(project))
    (project / "data").write_text("")
    with_secret = {"KEY": "secret"}
    first = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="lab", environment=with_secret))
    try:
        plan = sojourn.plan(sojourn.Task("#!/bin/sh\n", cloud="lab", storage=storage))
        assert plan.upload
        assert [part.path for part in plan.upload.parts] == ["data"]
    finally:
        first.delete(fetch=False)


def test_verbs_use_the_cloud_where_this_computer_created_the_task(
    project: Path, tmp_path: Path
) -> None:
    _says_user(_LABS.format(folder=tmp_path))
    task = sojourn.Task("#!/bin/sh\n", name="same")
    made = [sojourn.create(task, cloud=name) for name in ("lab", "local", "attic")]
    try:
        assert {sojourn.get(text).cloud for text in ("same", made[0].id)} == {"attic"}
    finally:
        for handle in made:
            handle.delete(fetch=False)


def test_a_task_on_a_cloud_without_a_name_here_is_told_of(project: Path, tmp_path: Path) -> None:
    _says(project, '[clouds.gone]\nkind = "local"\n')
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="gone", name="left"))
    assert handle.task().cloud == "gone"
    (project / "sojourn.toml").unlink()
    assert sojourn.get("left").task().cloud == "local"  # as this computer calls it now
    sojourn.get("left").delete(fetch=False)
    _says(project, '[clouds.gone]\nkind = "aws"\nprofile = "none"\n')
    engine.ledger.remember(replace(_origin(handle.id, project), cloud="gone"))
    (project / "sojourn.toml").unlink()
    with pytest.raises(NotFound) as caught:
        sojourn.get("left")
    assert f"{handle.id} was created in {project} on the cloud gone, which no" in caught.value.hint
    engine.ledger.forget(handle.id)


def _origin(id: str, folder: Path) -> engine.ledger.Origin:
    return engine.ledger.Origin(id, "local", str(folder), "", None, (), "2026-01-01T00:00:00Z")


def test_doctor_tells_of_settings_that_are_wrong(project: Path) -> None:
    _says(project, "[cloud.lab]\n")
    [found] = [each for each in checkup() if each.subject == "settings"]
    assert (found.verdict, found.detail[:22]) == ("problem", "sojourn.toml:1: cloud:")


def test_a_task_has_the_region_of_its_cloud(project: Path) -> None:
    _says(project, '[clouds.team]\nkind = "aws"\nregion = "eu-north-1"\n')
    task = sojourn.Task("#!/bin/sh\n", cloud="team")
    assert clouds.placed(task).region == "eu-north-1"
    assert clouds.placed(sojourn.Task("#!/bin/sh\n")).region == "us-west"
    other = sojourn.Task("#!/bin/sh\n", cloud="team", region="us-west")
    assert clouds.placed(other).region == "us-west"


def test_doctor_looks_at_each(project: Path, tmp_path: Path) -> None:
    _says_user(_LABS.format(folder=tmp_path))
    found = {finding.subject: finding.detail for finding in checkup()}
    assert found["lab"] == "The local cloud, named in ~/config/sojourn/config.toml:1"
    assert found["attic: local store"].startswith(str(tmp_path / "two" / "tasks"))


def test_the_page_has_all_settings() -> None:
    page = next(s for s in sections("docs/settings.md") if s.heading == "Named clouds")
    text = Path(__file__).parents[3].joinpath("docs/settings.md").read_text()
    for kind in kinds.KINDS:
        for setting in kinds.about_kind(kind).settings:
            table = text.partition(f"\n| `{kind}` | ")[2].split("\n| `", 1)[0]
            assert re.search(rf"(^|\| )`{setting.name}` \| ", table), (kind, setting.name)
    assert page.blocks


def test_the_clouds_of_the_page_can_be_named(project: Path) -> None:
    page = next(s for s in sections("docs/settings.md") if s.heading == "Named clouds")
    _says_user(page.blocks[0].text)
    assert clouds.names() == ["scratch", "local", "team", "aws", "gcp", "az", "lab", "k8s"]
    assert clouds.region_of("team") == "eu-north-1"


_KUBECONFIG = """\
current-context: two
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u, user: {token: t}}
contexts:
- {name: one, context: {cluster: c, user: u, namespace: first}}
- {name: two, context: {cluster: c, user: u}}
"""


def test_a_cluster_is_chosen_by_context_and_namespace(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kubeconfig").write_text(_KUBECONFIG)
    lab = '[clouds.lab]\nkind = "k8s"\ncontext = "one"\n'
    _says_user(f'{lab}kubeconfig = "{project}/kubeconfig"\n')
    monkeypatch.setenv("SOJOURN_K8S_CONTEXT", "two")
    assert clouds.load("lab").address() == "https://127.0.0.1:1 first"
    login = Asked(namespace="other", file=str(project / "kubeconfig")).login()
    assert (login.context, login.namespace) == ("two", "other")
    monkeypatch.setenv("KUBECONFIG", str(project / "kubeconfig"))
    assert Asked(context="one").login().context == "one"
    assert Asked().login().context == "two"
