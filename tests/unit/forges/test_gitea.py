from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sojourn import forges
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Conflict, IntegrityError, InvalidInput, NotFound
from sojourn.core.runner import Runner
from sojourn.forges import gitea
from sojourn.forges.forge import Job, Registration
from sojourn.forges.giteas import Place
from sojourn.forges.http import Http
from tests.simforge.gitea import SimGitea
from tests.simforge.server import Call, Refusal, served

RUNNER = Runner(
    "gitea", "https://gitea.example/acme/widgets", "one", "sojourn-one-0000000000000000"
)


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimGitea]:
    made = SimGitea()
    with served(made):
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def driver(forge: SimGitea) -> gitea.Driver:
    return gitea.Driver(forge.repo, forge.token)


def identity(made: Registration) -> dict[str, object]:
    found = json.loads(made.credentials["registration"])
    assert isinstance(found, dict)
    return found


def test_in_its_ci_the_repository_is_known() -> None:
    here = {"GITHUB_SERVER_URL": "https://git.example/", "GITHUB_REPOSITORY": "acme/widgets"}
    known = {**here, "GITEA_ACTIONS": "true"}
    assert gitea.repo_here(known) == "https://git.example/acme/widgets"
    assert gitea.repo_here(here) == ""
    assert gitea.repo_here({"GITHUB_REPOSITORY": "acme/widgets", "GITEA_ACTIONS": "true"}) == ""
    assert gitea.repo_here({**known, "FORGEJO_ACTIONS": "true"}) == "", "it sets both"


def test_gitea_may_be_below_a_path(forge: SimGitea) -> None:
    driver = gitea.Driver("https://example.org/git/acme/widgets.git", "x")
    assert driver._place.base == "https://example.org/git"
    assert driver._place.scope(Context()) == "/api/v1/repos/acme/widgets"


def test_an_address_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="repo"):
        gitea.Driver("https://gitea.com/", "x")


def test_the_machine_gets_the_identity_of_one_runner(forge: SimGitea, driver: gitea.Driver) -> None:
    made = driver.register(Context(), RUNNER)
    (token,) = forge.registration_tokens.values()
    assert token not in json.dumps(dict(made.credentials))
    assert forge.token not in json.dumps(dict(made.credentials))
    (runner,) = forge.work.runners.values()
    own = identity(made)
    assert own["id"] == runner.id == int(made.id)
    assert (own["token"], own["address"], own["ephemeral"]) == (runner.key, forge.url, False)
    assert own["labels"] == ["cml:host", f"{RUNNER.task}:host"]
    assert runner.labels == RUNNER.all_labels


def test_one_for_a_single_job_is_ephemeral(forge: SimGitea, driver: gitea.Driver) -> None:
    made = driver.register(Context(), replace(RUNNER, single=True))
    assert identity(made)["ephemeral"] is True


def test_a_registration_whose_answer_is_lost_is_not_left(
    forge: SimGitea, driver: gitea.Driver
) -> None:
    lost: list[str] = []

    def lose(call: Call) -> None:
        if call.path.endswith("/Register") and not lost:
            lost.append(call.path)
            raise ConnectionError

    forge.after = lose
    made = driver.register(Context(), RUNNER)
    assert forge.work.ever == 2
    assert [str(each) for each in forge.work.runners] == [made.id]


def test_a_label_is_a_name_alone(driver: gitea.Driver) -> None:
    with pytest.raises(InvalidInput, match="labels"):
        driver.register(Context(), replace(RUNNER, labels=("gpu:docker://image",)))


def test_a_token_that_may_not_write_is_told_what_it_needs(
    forge: SimGitea, driver: gitea.Driver
) -> None:
    forge.scopes = {"read:repository"}
    with pytest.raises(AuthError, match="required scope") as caught:
        driver.check(Context())
    assert "write:repository" in (caught.value.hint or "")


def test_it_is_known_from_forgejo(forge: SimGitea) -> None:
    assert forges.actual(Context(), "forgejo", forge.repo) == "gitea"
    assert forges.actual(Context(), "gitea", forge.repo) == "gitea"


def test_runners_of_an_organization(forge: SimGitea) -> None:
    driver = gitea.Driver(f"{forge.url}/acme", forge.token)
    assert not driver.check(Context()).public
    driver.register(Context(), RUNNER)
    assert len(driver.runners(Context())) == 1
    assert forge.count("POST /api/v1/orgs/acme/actions/runners/registration-token") == 2


def test_runners_of_a_user_are_those_of_the_token(forge: SimGitea) -> None:
    place = Place(f"{forge.url}/Owner", forge.token)
    assert place.scope(Context()) == "/api/v1/user"
    with pytest.raises(NotFound, match="another user"):
        Place(f"{forge.url}/stranger", forge.token).scope(Context())


def test_all_pages_are_read(forge: SimGitea, driver: gitea.Driver) -> None:
    names = {f"runner-{number}" for number in range(120)}
    for name in names:
        forge.work.register(name, ("cml",), single=False)
    found = driver.runners(Context())
    assert len(found) == 120
    assert {each.name for each in found} == names


def test_one_with_a_job_stays_and_gets_more(forge: SimGitea, driver: gitea.Driver) -> None:
    runner = forge.work.register("one", ("cml",), single=False)
    forge.work.queue("true")
    forge.work.program("poll", {"key": runner.key})
    (found,) = driver.runners(Context())
    assert found.busy
    assert not driver.unregister(Context(), str(runner.id))
    assert not runner.paused
    assert runner.id in forge.work.runners


def test_it_gets_no_more_jobs_before_it_is_deleted(forge: SimGitea, driver: gitea.Driver) -> None:
    runner = forge.work.register("one", ("cml",), single=False)
    paused: list[bool] = []

    def look(call: Call) -> None:
        if call.method == "DELETE":
            paused.append(runner.paused)

    forge.before = look
    assert driver.unregister(Context(), str(runner.id))
    assert paused == [True]
    assert driver.unregister(Context(), str(runner.id))


def test_an_older_gitea_cannot_disable_runners(forge: SimGitea, driver: gitea.Driver) -> None:
    def refuse(call: Call) -> None:
        if call.method == "PATCH":
            raise Refusal(405, "Method Not Allowed")

    forge.before = refuse
    runner = forge.work.register("one", ("cml",), single=False)
    assert driver.unregister(Context(), str(runner.id))
    assert forge.work.runners == {}


def test_without_a_token_it_cannot_leave(forge: SimGitea, driver: gitea.Driver) -> None:
    made = driver.register(Context(), RUNNER)
    with pytest.raises(AuthError, match="owner"):
        gitea.Driver(forge.repo, "").leave(Context(), RUNNER, made.credentials)
    assert driver.leave(Context(), RUNNER, made.credentials)
    assert forge.work.runners == {}


def test_a_job_that_is_over_is_not_run_again(forge: SimGitea, driver: gitea.Driver) -> None:
    driver.register(Context(), RUNNER)
    with pytest.raises(NotFound, match="by hand"):
        driver.lost(Context(), RUNNER, Job(""))


def fetched(forge: SimGitea, made: Registration) -> None:
    """Have a program with this registration begin a job."""
    own = json.loads(made.credentials["registration"])
    program = Http(forge.url, {"x-runner-uuid": own["uuid"], "x-runner-token": own["token"]})
    path = "/api/actions/runner.v1.RunnerService/FetchTask"
    assert program.call(Context(), "POST", path, body={"tasksVersion": "0"}).json["task"]


def test_a_job_that_this_machine_has_begun_was_not_lost(
    forge: SimGitea, driver: gitea.Driver
) -> None:
    """However soon after the loss: the clocks of forges have whole seconds."""
    made = driver.register(Context(), RUNNER)
    first, second = forge.work.queue("true"), forge.work.queue("true")
    fetched(forge, made)
    lost = driver.lost(Context(), RUNNER, Job(""))
    assert lost == Job("", str(first.id))
    fetched(forge, made)
    assert driver.rerun(Context(), RUNNER, lost, made.credentials)
    assert (first.attempt, first.status) == (2, "queued")
    assert (second.attempt, second.status) == (1, "in_progress")


def test_an_older_gitea_cannot_run_jobs_again(forge: SimGitea, driver: gitea.Driver) -> None:
    made = driver.register(Context(), RUNNER)
    (runner,) = forge.work.runners.values()
    job = forge.work.queue("true")
    forge.work.program("poll", {"key": runner.key})

    def refuse(call: Call) -> None:
        if call.path.endswith("/rerun-failed-jobs"):
            raise Refusal(404, "not found")
        if call.path.endswith("/jobs"):
            job.status, job.conclusion = "completed", "cancelled"

    lost = driver.lost(Context(), RUNNER, Job(""))
    assert lost is not None
    forge.after = refuse
    with pytest.raises(Conflict, match="by hand"):
        driver.rerun(Context(), RUNNER, lost, made.credentials)


def test_the_program_is_what_its_publisher_says(forge: SimGitea, driver: gitea.Driver) -> None:
    found = driver.programs(Context())
    assert set(found) == {"x86_64", "aarch64"}
    assert found["x86_64"].sha256 == forge.program_sum()
    assert found["x86_64"].url.endswith(
        f"/{gitea.VERSION}/gitea-runner-{gitea.VERSION}-linux-amd64"
    )


def test_a_page_that_is_not_a_checksum_is_refused(
    forge: SimGitea, driver: gitea.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitea, "VERSION", "0.0.0")
    with pytest.raises(IntegrityError, match="not a SHA-256"):
        driver.programs(Context())


def test_tokens_stay_at_home(driver: gitea.Driver) -> None:
    assert not driver.may_travel()
