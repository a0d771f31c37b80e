from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId, hash8, normalise

VECTORS = {
    "test": "tpi-test-3z4xlzwq-3u0vweb4",
    "Hello, World!": "tpi-hello-world-5kz6ldls-57wo7rsp",
}
NAMES = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    made = TaskId.deterministic(name)
    assert str(made) == VECTORS[name]
    assert TaskId.parse(VECTORS[name]) == made


def test_parts() -> None:
    made = TaskId.deterministic("Hello, World!")
    assert made == TaskId("hello-world", "5kz6ldls", "57wo7rsp")
    assert made.short == "5kz6ldls57wo7rsp"


@pytest.mark.parametrize(
    ("name", "normalised"),
    [
        ("", ""),
        ("Test", "test"),
        ("a  b__c", "a-b-c"),
        ("--a--", "a"),
        ("!!!", ""),
        ("é", ""),
        ("aéb", "a-b"),
        ("x" * 40, "x" * 28),
        ("x" * 27 + " y", "x" * 27),
        ("-" + "x" * 40, "x" * 27),
    ],
)
def test_normalise(name: str, normalised: str) -> None:
    assert normalise(name) == normalised


def test_hash8_is_base_36_of_sha_256() -> None:
    assert hash8("test") == "3z4xlzwq"
    assert hash8("test3z4xlzwq") == "3u0vweb4"


@given(NAMES)
def test_any_name(name: str) -> None:
    for made in (TaskId.deterministic(name), TaskId.random(name)):
        assert TaskId.parse(str(made)) == made
        assert len(str(made)) <= 50
        assert len(made.short) == 16
        assert set(str(made)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@given(NAMES)
def test_deterministic_and_random(name: str) -> None:
    assert TaskId.deterministic(name) == TaskId.deterministic(name)
    assert TaskId.random(name) != TaskId.random(name)


def test_the_salt_is_of_the_raw_name() -> None:
    loud, quiet = TaskId.deterministic("A b"), TaskId.deterministic("a-b")
    assert loud.name == quiet.name == "a-b"
    assert loud.salt != quiet.salt


def test_random_names_are_three_words() -> None:
    made = TaskId.random()
    assert len(made.name.split("-")) == 3
    assert len({TaskId.random().name for _ in range(20)}) > 1


@given(st.sampled_from(sorted(VECTORS.values())), st.integers(4, 60), st.sampled_from("abc123-"))
def test_a_changed_character_is_noticed(text: str, at: int, char: str) -> None:
    at %= len(text)
    changed = text[:at] + char + text[at + 1 :]
    if changed != text:
        with pytest.raises(InvalidInput) as caught:
            TaskId.parse(changed)
        assert caught.value.path == "id"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpi-test-3z4xlzwq-3u0vweb5", "its checksum does not match; check it for typos"),
        ("tpi-tent-3z4xlzwq-3u0vweb4", "its checksum does not match"),
        ("tpi-test-3u0vweb4-3z4xlzwq", "its checksum does not match"),
        ("", "invalid task ID"),
        ("tpi-test", "invalid task ID"),
        ("3z4xlzwq3u0vweb4", "invalid task ID"),
        ("tpi-test-3z4xlzwq-3u0vweb4\n", "invalid task ID"),
        (" tpi-test-3z4xlzwq-3u0vweb4", "invalid task ID"),
        ("tpi-TEST-3z4xlzwq-3u0vweb4", "invalid task ID"),
        ("tpi-../x-3z4xlzwq-3u0vweb4", "invalid task ID"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        TaskId.parse(text)
    assert message in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"GITHUB_RUN_ID": "12", "CI_PIPELINE_ID": "34"}, "12"),
        (
            {"GITHUB_RUN_ID": "", "CI_PIPELINE_ID": "34", "BITBUCKET_STEP_TRIGGERER_UUID": "{u}"},
            "34",
        ),
        ({"BITBUCKET_STEP_TRIGGERER_UUID": "{5-6}"}, "5-6"),
    ],
)
def test_ci_gives_a_name(environment: dict[str, str], name: str) -> None:
    made = TaskId.for_name("", environment)
    assert made.name == name
    assert made != TaskId.for_name("", environment)


def test_a_given_name_wins() -> None:
    assert str(TaskId.for_name("test", {"GITHUB_RUN_ID": "12"})) == VECTORS["test"]


def test_no_name_at_all() -> None:
    assert len(TaskId.for_name("", {"HOME": "/root"}).name.split("-")) == 3
