"""`iterative_cml_runner` on the local cloud, led by Terraform, with a simulated forge."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.simforge.tls import make_certificate
from tests.simforge.work import Job
from tests.support.waiting import until
from tests.terraform.diagnosed import validated
from tests.terraform.hcl import quoted
from tests.terraform.moments import ctrl_c, kill
from tests.terraform.project import Project

_ADDRESS = "iterative_cml_runner.machine"
_MISNAMED = "iterative_machine.machine"
# The block of the old provider's page.
_RUNNER = """
resource "{kind}" "machine" {{
    repo           = "{repo}"
    driver         = "github"
    labels         = "tf"

    cloud          = "local"
    region         = "us-west"
    instance_type  = "m"
    # Uncomment to enable the GPU:
    # instance_gpu = "tesla"
    {more}
}}
"""
_LEFT = ("CML_TOKEN", "REPO_TOKEN", "repo_token", "GH_TOKEN")


@pytest.fixture
def forge(project: Project) -> Iterator[SimForge]:
    """At the end, nothing may be left there. Its token is in the environment."""
    with served(SimGitHub()) as made:
        for name in _LEFT:
            project.environment.pop(name, None)
        project.environment["CML_TOKEN"] = made.token
        yield made
        assert made.work.runners == {}


def _write(project: Project, forge: SimForge, more: str = "", address: str = _ADDRESS) -> None:
    kind, _, _ = address.partition(".")
    project.write(_RUNNER.format(kind=kind, repo=forge.repo, more=more))
    project.init()


def _finished(forge: SimForge, job: Job) -> Job:
    until(lambda: forge.work.settled(job).status == "completed", 30)
    return job


@pytest.mark.parametrize("address", [_ADDRESS, _MISNAMED])
def test_a_whole_life(project: Project, forge: SimForge, address: str) -> None:
    _write(project, forge, address=address)
    said = project.apply().said
    assert ("A runner is another resource: iterative_cml_runner" in said) is (address == _MISNAMED)
    now = project.task(address)
    assert (now["repo"], now["labels"], now["state"]) == (forge.repo, "tf", "running")
    assert (now["instance_ip"], now["idle_timeout"], now["timeout"]) == ("127.0.0.1", 300, 0)
    [runner] = forge.work.runners.values()
    assert runner.online
    assert {"tf", now["id"]} <= set(runner.labels)
    job = _finished(forge, forge.work.queue("echo hello", "tf"))
    assert (job.conclusion, job.log) == ("success", "hello\n")
    project.plan(code=0)
    project.destroy()
    assert forge.work.runners == {}


def test_the_token_is_told_to_nobody(project: Project, forge: SimForge) -> None:
    _write(project, forge)
    log = project.folder.parent / "log"
    project.environment |= {"TF_LOG": "TRACE", "TF_LOG_PATH": str(log)}
    project.run("plan", "-no-color", "-out=plan")
    shown = project.run("show", "-json", "plan").out
    apply = project.start("apply", "-no-color", "plan")
    processes = set()
    while apply.poll() is None:
        processes |= {_of(pid, "cmdline") for pid in project.processes()}
    ended = project.finish(apply)
    assert ended.code == 0, ended.said
    assert any("sojourn.agent" in text for text in processes), processes
    processes |= {_of(pid, "environ") for pid in project.processes()}  # of the machine
    files = [path for path in project.folder.iterdir() if path.is_file()]
    assert project.folder / "plan" in files
    assert project.folder / "terraform.tfstate" in files
    told = [shown, ended.said, *processes, *(_text(path) for path in (log, *files))]
    assert not any(forge.token in text for text in told)
    project.destroy()


def _of(process: int, name: str) -> str:
    try:
        return _text(Path(f"/proc/{process}/{name}"))
    except OSError:
        return ""


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def test_a_token_that_is_given(project: Project, forge: SimForge) -> None:
    """In the state only if it was written where Terraform keeps it."""
    del project.environment["CML_TOKEN"]
    _write(project, forge)
    assert f"No token for {forge.repo}" in project.plan(code=1).said
    _write(project, forge, 'token_wo = "wrong"')
    assert "rejected the token" in project.plan(code=1).said
    assert forge.work.ever == 0
    assert project.tasks() == []

    _write(project, forge, f'token_wo = "{forge.token}"')
    project.apply()
    state = project.folder / "terraform.tfstate"
    assert forge.token not in state.read_text()
    own = project.task(_ADDRESS)["id"]
    _write(project, forge, f'token = "{forge.token}"')
    assert "0 to destroy" in project.plan(code=2).said
    project.apply()
    assert project.task(_ADDRESS)["id"] == own
    project.destroy()


def test_one_that_ended_is_noticed_and_leaves_nothing(project: Project, forge: SimForge) -> None:
    """Though it has no token to unregister itself. Its repository is that of the CI."""
    project.environment |= {"GITHUB_SERVER_URL": forge.url, "GITHUB_REPOSITORY": "acme/widgets"}
    project.write(
        'resource "iterative_cml_runner" "machine" {\n cloud = "local"\n'
        " idle_timeout = 1\n token_on_machine = false\n}\n"
    )
    project.init()
    project.apply()
    now = project.task(_ADDRESS)
    assert (now["driver"], now["repo"], now["labels"]) == ("github", forge.repo, "cml")
    until(lambda: project.stored("store/reports/*/*"), 60)
    assert len(forge.work.runners) == 1
    assert "1 to add" in project.plan(code=2).said
    assert project.tasks() == []
    assert forge.work.runners == {}
    assert project.refreshed(_ADDRESS) == {}


def test_a_job_ends_with_a_destroy(project: Project, forge: SimForge) -> None:
    script = base64.b64encode(b"echo prepared by ${0%%[a-z]*}\n").decode()
    more = f'name = "builder"\ncml_version = "0.20.6"\nstartup_script = "{script}"'
    _write(project, forge, more)
    said = project.apply().said
    assert "cml_version has no effect" in said
    now = project.task(_ADDRESS)
    assert now["id"].startswith("tpi-builder-")
    assert now["startup_script"] == script
    assert "prepared by /" in project.sojourn("logs", now["id"]).out
    job = forge.work.queue("sleep 600", "tf")
    until(lambda: job.status == "in_progress")
    project.plan(code=0)
    assert "is running a job, which ends with it" in project.destroy().said
    assert _finished(forge, job).conclusion == "failure"


def test_import(project: Project, forge: SimForge) -> None:
    options = ("--repo", forge.repo, "--driver", "github", "--cloud", "local", "--labels", "tf")
    made = project.sojourn("runner", "launch", *options, "--no-single", "--json").out
    own = next(row["id"] for row in map(json.loads, made.splitlines()) if "id" in row)
    _write(project, forge)
    project.run("import", "-no-color", _ADDRESS, own)
    said = project.plan(code=2).out
    assert "0 to destroy" in said, [x for x in said.splitlines() if "forces" in x]
    project.apply()
    project.plan(code=0)
    assert project.tasks() == [own]
    project.sojourn("delete", own, "--no-pull")  # which the forge does not know
    assert len(forge.work.runners) == 1
    project.destroy()


def test_control_c_leaves_neither_machine_nor_runner(project: Project, forge: SimForge) -> None:
    script = quoted("#!/bin/sh\nsleep 600\n")
    _write(project, forge, f"startup_script = {script}\nsingle = true")
    apply = project.start("apply", "-no-color", "-auto-approve")
    until(lambda: project.stored("store/ranks/*"), 60)
    assert len(forge.work.runners) == 1
    ctrl_c(apply)
    ended = project.finish(apply)
    assert ended.code == 1
    assert "Cancelled; nothing was left behind" in ended.said
    assert project.tasks() == []
    assert project.known() == {}


def test_one_whose_apply_was_killed_is_taken_over(project: Project, forge: SimForge) -> None:
    _write(project, forge, 'name = "builder"')
    apply = project.start("apply", "-no-color", "-auto-approve")
    until(lambda: project.stored("store/ranks/*"), 60)
    for pid in (*project.providers(), apply.pid):
        kill(pid)
    apply.communicate()
    [own] = project.tasks()
    assert own in project.apply().said
    assert list(project.known()) == project.tasks() == [own]
    assert [each.name for each in forge.work.runners.values()] == ["builder"]
    project.destroy()


@pytest.mark.parametrize("content", [False, True], ids=["path", "content"])
def test_a_forge_with_a_private_authority(project: Project, tmp_path: Path, content: bool) -> None:
    made = make_certificate(tmp_path)
    with served(SimGitHub(), tls=made.secured()) as forge:
        project.environment["CML_TOKEN"] = forge.token
        _write(project, forge)
        assert "ca_file" in project.plan(code=1).said
        given = made.file.read_text() if content else str(made.file)
        _write(project, forge, f"ca_file = {quoted(given)}")
        project.apply()
        job = _finished(forge, forge.work.queue("test -s $SSL_CERT_FILE && echo trusted", "tf"))
        assert (job.conclusion, job.log) == ("success", "trusted\n")
        project.plan(code=0)
        project.destroy()
        assert forge.work.runners == {}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('startup_script = "echo hello"', "startup_script: must start with a shebang"),
        ('docker_volumes = ["/cache"]', "docker_volumes: has no effect with driver = 'github'"),
        ('ssh_private = "none"', "ssh_private: must be a private SSH key"),
        ("timeout = -1", "timeout: must be a number of seconds"),
    ],
)
def test_bad_input_is_refused(project: Project, forge: SimForge, more: str, said: str) -> None:
    _write(project, forge, more)
    assert said in project.validate(code=1).said


@pytest.mark.parametrize("kind", ["iterative_cml_runner", "iterative_machine"])
def test_the_name_of_the_page_with_a_hyphen_is_corrected(project: Project, kind: str) -> None:
    """Terraform allows no such name in any provider, and says which one is meant."""
    head = f'resource "{kind}" "it" {{\n  cloud = "local"\n  repo  = "https://github.com/a/b"\n'
    project.write(f"{head}  idle-timeout = 300\n}}\n")
    project.init()
    [error] = [each for each in validated(project, code=1) if each.severity == "error"]
    assert 'An argument named "idle-timeout" is not expected here.' in error.message
    assert 'Did you mean "idle_timeout"?' in error.message
