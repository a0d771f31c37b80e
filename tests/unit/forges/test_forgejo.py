from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sojourn import forges
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound, Transient
from sojourn.core.runner import Runner
from sojourn.forges import forgejo
from sojourn.forges.forge import Job, Registration
from sojourn.forges.http import Http
from sojourn.runners.target import find_place
from tests.simforge.forgejo import SimForgejo
from tests.simforge.server import Call, Refusal, served

TASK = "tpi-builder-1abcdefg-2hijklmn"
RUNNER = Runner("forgejo", "https://git.example/acme/widgets", "one", TASK)
PROTOCOL = "/api/actions/runner.v1.RunnerService"


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimForgejo]:
    made = SimForgejo()
    with served(made):
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def driver(forge: SimForgejo) -> forgejo.Driver:
    return forgejo.Driver(forge.repo, forge.token)


def fetched(forge: SimForgejo, made: Registration) -> str:
    """The task that a program with this registration gets."""
    own = json.loads(made.credentials["connection"])
    program = Http(forge.url, {"x-runner-uuid": own["uuid"], "x-runner-token": own["token"]})
    labels = ["cml", RUNNER.task]
    body = {"version": "v0", "labels": labels}
    program.call(Context(), "POST", f"{PROTOCOL}/Declare", body=body)
    answer = program.call(Context(), "POST", f"{PROTOCOL}/FetchTask", body={"tasksVersion": "0"})
    return str(answer.json["task"]["id"])


def test_it_is_found(forge: SimForgejo) -> None:
    here = {"GITHUB_SERVER_URL": "https://git.example/", "GITHUB_REPOSITORY": "acme/widgets"}
    theirs = {**here, "GITEA_ACTIONS": "true", "FORGEJO_ACTIONS": "true"}
    assert find_place("", "", theirs) == ("forgejo", "https://git.example/acme/widgets")
    assert find_place("", "https://codeberg.org/acme/widgets", {})[0] == "forgejo"
    assert forges.actual(Context(), "gitea", forge.repo) == "forgejo"


def test_the_machine_gets_the_identity_of_one_runner(
    forge: SimForgejo, driver: forgejo.Driver
) -> None:
    made = driver.register(Context(), RUNNER)
    (runner,) = forge.work.runners.values()
    own = json.loads(made.credentials["connection"])
    assert own == {"url": f"{forge.url}/", "uuid": forge.runner_uuid(runner), "token": runner.key}
    assert json.loads(made.credentials["host_labels"]) == ["cml:host", f"{TASK}:host"]
    assert forge.token not in json.dumps(dict(made.credentials))
    assert forge.registration_tokens == {}


def test_it_is_known_before_its_program_tells_its_labels(driver: forgejo.Driver) -> None:
    driver.register(Context(), RUNNER)
    (found,) = driver.runners(Context())
    assert TASK in found.labels
    assert not found.online


def test_one_for_a_single_job_is_ephemeral(forge: SimForgejo, driver: forgejo.Driver) -> None:
    driver.register(Context(), replace(RUNNER, single=True))
    (runner,) = forge.work.runners.values()
    assert runner.single


def test_a_registration_whose_answer_is_lost_is_not_left(
    forge: SimForgejo, driver: forgejo.Driver
) -> None:
    lost: list[str] = []

    def lose(call: Call) -> None:
        if call.method == "POST" and not lost:
            lost.append(call.path)
            raise ConnectionError

    forge.after = lose
    made = driver.register(Context(), RUNNER)
    assert forge.work.ever == 2
    assert [str(each) for each in forge.work.runners] == [made.id]


def test_a_label_is_a_name_alone(driver: forgejo.Driver) -> None:
    with pytest.raises(InvalidInput, match="labels"):
        driver.register(Context(), replace(RUNNER, labels=("gpu:docker://image",)))


def test_a_check_makes_nothing(forge: SimForgejo, driver: forgejo.Driver) -> None:
    assert not driver.check(Context()).public
    assert forge.work.ever == 0


def test_a_token_that_may_not_write_is_told_what_it_needs(
    forge: SimForgejo, driver: forgejo.Driver
) -> None:
    forge.scopes = {"read:repository"}
    with pytest.raises(AuthError, match="required scope") as caught:
        driver.check(Context())
    assert "write:repository" in (caught.value.hint or "")


def test_an_older_one_is_refused(forge: SimForgejo, driver: forgejo.Driver) -> None:
    def refuse(call: Call) -> None:
        if call.method == "POST":
            raise Refusal(405, "Method Not Allowed")

    forge.before = refuse
    with pytest.raises(InvalidInput, match="older than Forgejo 15"):
        driver.check(Context())


def test_all_pages_are_read(forge: SimForgejo, driver: forgejo.Driver) -> None:
    names = {f"runner-{number}" for number in range(120)}
    for name in names:
        forge.work.register(name, ("cml",), single=False)
    assert {each.name for each in driver.runners(Context())} == names


def test_one_with_a_job_stays(forge: SimForgejo, driver: forgejo.Driver) -> None:
    forge.work.queue("true")
    made = driver.register(Context(), RUNNER)
    fetched(forge, made)
    forge.active[int(made.id)] = float("inf")
    (found,) = driver.runners(Context())
    assert found.busy
    assert not driver.unregister(Context(), made.id)
    forge.active.clear()
    assert driver.unregister(Context(), made.id)
    assert driver.unregister(Context(), made.id)


def test_without_a_token_it_cannot_leave(forge: SimForgejo, driver: forgejo.Driver) -> None:
    made = driver.register(Context(), RUNNER)
    with pytest.raises(AuthError, match="owner"):
        forgejo.Driver(forge.repo, "").leave(Context(), RUNNER, made.credentials)
    assert driver.leave(Context(), RUNNER, made.credentials)
    assert forge.work.runners == {}


def test_the_job_that_it_lost_is_run_again(forge: SimForgejo, driver: forgejo.Driver) -> None:
    job = forge.work.queue("true")
    made = driver.register(Context(), RUNNER)
    task = fetched(forge, made)
    lost = driver.lost(Context(), RUNNER, Job(str(job.run)))
    assert lost == Job(str(job.run), task)
    assert driver.rerun(Context(), RUNNER, lost, made.credentials)
    assert (job.attempt, job.status) == (2, "queued")


def test_a_job_that_lies_cannot_have_another_ones_run_again(
    forge: SimForgejo, driver: forgejo.Driver
) -> None:
    theirs = forge.work.queue("true")
    other = driver.register(Context(), replace(RUNNER, name="other"))
    made = driver.register(Context(), RUNNER)
    fetched(forge, other)
    lost = driver.lost(Context(), RUNNER, Job(str(theirs.run)))
    assert lost is not None
    assert not driver.rerun(Context(), RUNNER, lost, made.credentials)
    assert (theirs.attempt, theirs.status) == (1, "in_progress")


def test_one_that_is_away_is_not_taken_for_a_refusal(
    forge: SimForgejo, driver: forgejo.Driver
) -> None:
    job = forge.work.queue("true")
    made = driver.register(Context(), RUNNER)
    task = fetched(forge, made)

    def away(call: Call) -> None:
        if call.path.endswith("/UpdateTask"):
            raise Refusal(503, "Service Unavailable", {"Retry-After": "0"})

    forge.before = away
    with pytest.raises(Transient, match="Service Unavailable"):
        driver.rerun(Context(), RUNNER, Job(str(job.run), task), made.credentials)


def test_what_cannot_be_found_is_told(forge: SimForgejo, driver: forgejo.Driver) -> None:
    for run in ("", "../../x"):
        with pytest.raises(NotFound, match="by hand"):
            driver.lost(Context(), RUNNER, Job(run))
    with pytest.raises(NotFound, match="by hand"):
        forgejo.Driver(f"{forge.url}/acme", forge.token).lost(Context(), RUNNER, Job("1"))


def test_one_that_is_over_is_not_run_again(forge: SimForgejo, driver: forgejo.Driver) -> None:
    job = forge.work.queue("true")
    assert driver.lost(Context(), RUNNER, Job(str(job.run))) is None


def test_an_older_one_cannot_run_jobs_again(forge: SimForgejo, driver: forgejo.Driver) -> None:
    job = forge.work.queue("true")
    made = driver.register(Context(), RUNNER)
    task = fetched(forge, made)

    def refuse(call: Call) -> None:
        if call.path.endswith("/rerun"):
            raise Refusal(404, "not found")

    forge.before = refuse
    with pytest.raises(Conflict, match="older than Forgejo 17"):
        driver.rerun(Context(), RUNNER, Job(str(job.run), task), made.credentials)


def test_the_program_is_what_its_publisher_says(forge: SimForgejo, driver: forgejo.Driver) -> None:
    found = driver.programs(Context())
    assert set(found) == {"x86_64", "aarch64"}
    assert found["aarch64"].sha256 == forge.program_sum()
    assert found["aarch64"].url.endswith(
        f"/v{forgejo.VERSION}/forgejo-runner-{forgejo.VERSION}-linux-arm64"
    )
    assert not driver.may_travel()
