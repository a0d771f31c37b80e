"""What is special about Bitbucket."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.core.runner import Runner
from sojourn.forges import bitbucket as module
from sojourn.forges.bitbucket import Driver, repo_here
from sojourn.forges.forge import Job
from tests.simforge.bitbucket import SimBitbucket
from tests.simforge.server import Call
from tests.simforge.work import Job as SimJob

_CTX = Context()


def _driver(forge: SimBitbucket) -> Driver:
    return Driver(forge.repo, forge.token)


@pytest.mark.parametrize(
    ("token", "header"),
    [
        ("ATCTT3xAbc=", "Bearer ATCTT3xAbc="),
        ("me@example.com:ATATT3x", f"Basic {base64.b64encode(b'me@example.com:ATATT3x').decode()}"),
        (
            base64.b64encode(b"me:secret").decode(),
            f"Basic {base64.b64encode(b'me:secret').decode()}",
        ),
    ],
)
def test_all_forms_of_tokens_are_known(bitbucket: SimBitbucket, token: str, header: str) -> None:
    seen: list[str] = []
    bitbucket.before = lambda call: seen.append(call.headers["Authorization"])
    with pytest.raises(AuthError, match="rejected the token"):
        Driver(bitbucket.repo, token).check(_CTX)
    assert seen == [header]


def test_an_api_token_without_its_account_is_refused_at_once(bitbucket: SimBitbucket) -> None:
    with pytest.raises(InvalidInput, match="EMAIL:TOKEN"):
        Driver(bitbucket.repo, "ATATT3xFfGF0")
    assert bitbucket.calls == []


@pytest.mark.parametrize("label", ["my-gpu", "GPU", "a_b", "a b", "a..b", ""])
def test_labels_are_refused_before_anything_is_made(
    bitbucket: SimBitbucket, runner: Runner, label: str
) -> None:
    with pytest.raises(InvalidInput, match="lower-case letters, digits and dots"):
        _driver(bitbucket).register(_CTX, replace(runner, labels=("cml", label)))
    assert bitbucket.calls == []


def test_there_is_room_for_nine_labels(bitbucket: SimBitbucket, runner: Runner) -> None:
    names = tuple(f"l{number}" for number in range(10))
    driver = _driver(bitbucket)
    with pytest.raises(InvalidInput, match="must be 9 at most, got 10"):
        driver.register(_CTX, replace(runner, labels=names))
    driver.register(_CTX, replace(runner, labels=names[:9]))
    (found,) = driver.runners(_CTX)
    assert {*names[:9], runner.task, runner.task.replace("-", ".")} < found.labels


def test_an_answer_that_was_lost_leaves_no_second_runner(
    bitbucket: SimBitbucket, runner: Runner
) -> None:
    lost: list[Call] = []

    def lose(call: Call) -> None:
        if call.method == "POST" and not lost:
            lost.append(call)
            raise ConnectionError

    bitbucket.after = lose
    made = _driver(bitbucket).register(_CTX, runner)
    assert bitbucket.work.ever == 2
    (left,) = bitbucket.work.runners.values()
    assert made.credentials["client_secret"] == left.key


def test_all_pages_are_read(bitbucket: SimBitbucket) -> None:
    for number in range(205):
        bitbucket.work.register(f"other {number}", ("big",), single=False)
    assert len(_driver(bitbucket).runners(_CTX)) == 205


def test_a_workspace_has_runners_of_its_own(bitbucket: SimBitbucket, runner: Runner) -> None:
    driver = Driver(f"{bitbucket.url}/acme", bitbucket.token)
    assert not driver.check(_CTX).public
    made = driver.register(_CTX, runner)
    assert made.credentials["repository_uuid"] == ""
    assert [each.id for each in driver.runners(_CTX)] == [made.id]
    assert _driver(bitbucket).runners(_CTX) == []


def test_what_is_not_there_is_not_found(bitbucket: SimBitbucket) -> None:
    with pytest.raises(NotFound, match="acme/gadgets not found"):
        Driver(f"{bitbucket.url}/acme/gadgets", bitbucket.token).check(_CTX)


def test_a_token_that_can_only_read_is_refused(bitbucket: SimBitbucket) -> None:
    bitbucket.scopes = ["repository"]
    with pytest.raises(AuthError, match="denied access") as raised:
        _driver(bitbucket).check(_CTX)
    assert "runner:write" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("scopes", "travels"),
    [
        (["runner:write"], True),
        (["runner:write", "pipeline:write", "repository"], True),
        (["runner:write", "repository:write"], False),
        ([], False),
    ],
)
def test_a_token_travels_if_it_can_do_little(
    bitbucket: SimBitbucket, scopes: list[str], travels: bool
) -> None:
    def tell(call: Call) -> None:
        call.sent["X-OAuth-Scopes"] = ", ".join(scopes)

    bitbucket.after = tell
    driver = _driver(bitbucket)
    driver.check(_CTX)
    assert driver.may_travel() is travels


def _working(forge: SimBitbucket, runner: Runner, driver: Driver) -> tuple[str, SimJob]:
    made = driver.register(_CTX, runner)
    job = forge.work.queue("true", runner.task)
    forge.work.program("poll", {"key": made.credentials["client_secret"]})
    assert job.status == "in_progress"
    return made.id, job


def test_one_that_may_have_a_job_stays(bitbucket: SimBitbucket, runner: Runner) -> None:
    driver = _driver(bitbucket)
    made, job = _working(bitbucket, runner, driver)
    assert not driver.unregister(_CTX, made)
    job.status, job.conclusion = "completed", "success"
    assert driver.unregister(_CTX, made)
    assert bitbucket.work.runners == {}
    assert driver.unregister(_CTX, made)


def test_one_of_a_workspace_may_always_have_a_job(bitbucket: SimBitbucket, runner: Runner) -> None:
    driver = Driver(f"{bitbucket.url}/acme", bitbucket.token)
    made, job = _working(bitbucket, runner, driver)
    job.status, job.conclusion = "completed", "success"
    assert not driver.unregister(_CTX, made)
    bitbucket.work.runners[job.runner_id].seen = float("-inf")
    assert driver.unregister(_CTX, made)


@pytest.mark.parametrize(
    ("conclusion", "again"), [("failure", True), ("cancelled", True), ("success", False)]
)
def test_a_pipeline_is_repeated_unless_it_succeeded(
    bitbucket: SimBitbucket, runner: Runner, conclusion: str, again: bool
) -> None:
    driver = _driver(bitbucket)
    _, job = _working(bitbucket, runner, driver)
    (shown,) = driver._pages(_CTX, "/repositories/acme/widgets/pipelines", {})
    job.status, job.conclusion = "completed", conclusion
    assert driver.rerun(_CTX, runner, Job(shown["uuid"]), {}) is again
    assert job.attempt == 1 + again


def test_a_pipeline_that_goes_on_is_stopped_first(
    bitbucket: SimBitbucket, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.05)
    driver = _driver(bitbucket)
    _, job = _working(bitbucket, runner, driver)
    (shown,) = driver._pages(_CTX, "/repositories/acme/widgets/pipelines", {})
    assert driver.rerun(_CTX, runner, Job(shown["uuid"]), {})
    assert bitbucket.count("POST .*/stopPipeline") == 1
    assert (job.status, job.attempt) == ("queued", 2)


def test_what_a_job_tells_is_no_path(bitbucket: SimBitbucket, runner: Runner) -> None:
    assert not _driver(bitbucket).rerun(_CTX, runner, Job("../../other"), {})
    assert bitbucket.calls == []


def test_the_program_is_the_one_that_was_seen_at_launch(bitbucket: SimBitbucket) -> None:
    found = _driver(bitbucket).programs(_CTX)
    assert set(found) == {"x86_64", "aarch64"}
    assert found["x86_64"].sha256 == bitbucket.program_sum()


def test_its_own_pipelines_are_recognised() -> None:
    here = {"BITBUCKET_REPO_FULL_NAME": "acme/widgets"}
    assert repo_here(here) == "https://bitbucket.org/acme/widgets"
    assert repo_here({}) == ""
