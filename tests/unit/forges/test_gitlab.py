"""What is special about GitLab."""

from __future__ import annotations

import datetime

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import AuthError, NotFound
from sojourn.core.runner import Runner
from sojourn.forges import gitlab as module
from sojourn.forges.forge import Job
from sojourn.forges.gitlab import Driver
from tests.simforge.gitlab import SimGitLab
from tests.simforge.server import Call, Refusal, served
from tests.simforge.work import Job as SimJob

_CTX = Context()


def _driver(forge: SimGitLab) -> Driver:
    return Driver(forge.repo, forge.token)


@pytest.mark.parametrize("prefix", ["", "/gitlab", "/tools/gitlab"])
def test_it_is_found_below_any_path(prefix: str) -> None:
    with served(SimGitLab(prefix)) as forge:
        driver = Driver(forge.repo, forge.token)
        assert not driver.check(_CTX).public


def test_another_site_is_no_gitlab(gitlab: SimGitLab) -> None:
    with pytest.raises(NotFound, match="No GitLab found"):
        Driver(f"{gitlab.url}/acme/widgets", gitlab.token).check(_CTX)


def test_what_is_not_there_is_not_found(gitlab: SimGitLab) -> None:
    with pytest.raises(NotFound, match="acme/gadgets not found"):
        Driver(f"{gitlab.url}/gitlab/acme/gadgets", gitlab.token).check(_CTX)


def test_a_group_has_runners_of_its_own(gitlab: SimGitLab, runner: Runner) -> None:
    driver = Driver(f"{gitlab.url}/gitlab/acme", gitlab.token)
    made = driver.register(_CTX, runner)
    assert gitlab.kinds == {int(made.id): "group_type"}
    assert [each.id for each in driver.runners(_CTX)] == [made.id]
    assert _driver(gitlab).runners(_CTX) == []


def test_a_chosen_name_does_not_hide_whose_it_is(gitlab: SimGitLab, runner: Runner) -> None:
    driver = _driver(gitlab)
    made = driver.register(_CTX, runner)
    (found,) = driver.runners(_CTX)
    assert (found.id, found.name, found.online) == (made.id, "builder", False)
    assert found.labels == {runner.task}
    assert gitlab.work.runners[int(made.id)].labels == ("cml", runner.task)


def test_an_answer_that_was_lost_leaves_no_second_runner(gitlab: SimGitLab, runner: Runner) -> None:
    lost: list[Call] = []

    def lose(call: Call) -> None:
        if call.path.endswith("/user/runners") and not lost:
            lost.append(call)
            raise ConnectionError

    gitlab.after = lose
    made = _driver(gitlab).register(_CTX, runner)
    assert gitlab.work.ever == 2
    (left,) = gitlab.work.runners.values()
    assert made.credentials["runner_token"] == left.key
    assert str(left.id) == made.id


def test_all_pages_are_read_and_only_those_online_are_looked_at(gitlab: SimGitLab) -> None:
    for number in range(205):
        made = gitlab.work.register(f"other {number}", ("big",), single=False)
        gitlab.kinds[made.id] = "project_type"
    made.seen = float("inf")
    driver = _driver(gitlab)
    found = driver.runners(_CTX)
    assert len(found) == 205
    assert [each.labels for each in found if each.online] == [{"big"}]
    driver.runners(_CTX)
    assert gitlab.count(r"GET .*/runners/\d+$") == 1


@pytest.mark.parametrize("tells_status", [True, False])
def test_old_versions_tell_who_is_busy_too(
    gitlab: SimGitLab, runner: Runner, tells_status: bool
) -> None:
    gitlab.tells_status = tells_status
    driver = _driver(gitlab)
    _working(gitlab, driver, runner)
    (found,) = driver.runners(_CTX)
    assert found.busy


def _working(forge: SimGitLab, driver: Driver, runner: Runner) -> SimJob:
    """A job that its runner carries out."""
    made = driver.register(_CTX, runner)
    job = forge.work.queue("true", runner.task)
    status, _ = forge.work.program("poll", {"key": made.credentials["runner_token"]})
    assert (status, job.status) == (200, "in_progress")
    return job


def test_one_with_a_job_stays_and_goes_on(gitlab: SimGitLab, runner: Runner) -> None:
    driver = _driver(gitlab)
    job = _working(gitlab, driver, runner)
    assert not driver.unregister(_CTX, str(job.runner_id))
    assert not gitlab.work.runners[job.runner_id].paused
    job.status = "completed"
    assert driver.unregister(_CTX, str(job.runner_id))
    assert gitlab.work.runners == {}
    assert driver.unregister(_CTX, str(job.runner_id))


def test_it_leaves_with_its_own_token_only(gitlab: SimGitLab, runner: Runner) -> None:
    made = _driver(gitlab).register(_CTX, runner)
    without = Driver(gitlab.repo, "")
    assert without.leave(_CTX, runner, made.credentials)
    assert gitlab.work.runners == {}
    assert without.leave(_CTX, runner, made.credentials)


@pytest.mark.parametrize(
    ("status", "conclusion", "lost", "found"),
    [
        ("in_progress", "", False, True),
        ("completed", "failure", True, True),
        ("completed", "failure", False, False),
        ("completed", "success", False, False),
    ],
)
def test_the_job_that_was_lost_is_known(
    gitlab: SimGitLab, runner: Runner, status: str, conclusion: str, lost: bool, found: bool
) -> None:
    driver = _driver(gitlab)
    job = _working(gitlab, driver, runner)
    job.status, job.conclusion, job.lost = status, conclusion, lost
    assert driver.lost(_CTX, runner, Job("")) == (Job(f"7/{job.id}") if found else None)


def test_a_cancellation_that_nobody_confirms_is_forced(
    gitlab: SimGitLab, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(module, "_FORCE_AFTER", 0.03)
    driver = _driver(gitlab)
    job = _working(gitlab, driver, runner)
    job.renewed = float("inf")  # GitLab does not notice the loss

    def forced(call: Call) -> None:
        if call.query.get("force"):
            job.status, job.conclusion = "completed", "cancelled"

    gitlab.after = forced
    assert driver.rerun(_CTX, runner, Job(f"7/{job.id}"), {})
    assert (job.status, job.attempt) == ("queued", 2)


def test_a_job_that_succeeded_meanwhile_is_not_repeated(gitlab: SimGitLab, runner: Runner) -> None:
    driver = _driver(gitlab)
    job = _working(gitlab, driver, runner)
    job.status, job.conclusion = "completed", "success"
    assert not driver.rerun(_CTX, runner, Job(f"7/{job.id}"), {})
    assert job.attempt == 1


def test_a_token_that_can_only_read_is_refused(gitlab: SimGitLab) -> None:
    gitlab.scopes = ["read_api"]
    with pytest.raises(AuthError, match="the token has the scopes read_api") as raised:
        _driver(gitlab).check(_CTX)
    assert "`api` scope" in (raised.value.hint or "")


def _in_days(days: int) -> str:
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return (today + datetime.timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("scopes", "expires_at", "travels"),
    [
        (["api"], None, False),
        (["api"], _in_days(30), False),
        (["api"], _in_days(1), True),
        (["create_runner", "manage_runner", "read_api"], None, False),
    ],
)
def test_a_token_travels_if_it_does_not_last(
    gitlab: SimGitLab, scopes: list[str], expires_at: str | None, travels: bool
) -> None:
    gitlab.scopes, gitlab.expires_at = scopes, expires_at
    driver = _driver(gitlab)
    assert not driver.may_travel()
    driver.check(_CTX)
    assert driver.may_travel() is travels


def test_a_token_that_does_not_tell_of_itself_is_no_reason_to_refuse(gitlab: SimGitLab) -> None:
    def refuse(call: Call) -> None:
        if call.path.endswith("/self"):
            raise Refusal(404, "404 Not Found")

    gitlab.before = refuse
    driver = _driver(gitlab)
    driver.check(_CTX)
    assert not driver.may_travel()


def test_the_program_has_the_checksum_of_its_vendor(gitlab: SimGitLab) -> None:
    found = _driver(gitlab).programs(_CTX)
    assert set(found) == {"x86_64", "aarch64"}
    arm = found["aarch64"]
    assert arm.sha256 == gitlab.program_sum()
    assert arm.url.endswith(f"/{arm.version}/binaries/gitlab-runner-linux-arm64")
