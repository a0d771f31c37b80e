from __future__ import annotations

import pytest

from sojourn.runners.target import Target


@pytest.mark.parametrize(
    ("repo", "clear"),
    [
        ("https://git.example/acme/widgets", False),
        ("http://git.example/acme/widgets", True),
        ("http://127.0.0.1:3000/acme/widgets", False),
        ("http://localhost/acme/widgets", False),
    ],
)
def test_a_token_in_clear_is_known(repo: str, clear: bool) -> None:
    assert Target("gitea", repo).is_in_clear is clear
