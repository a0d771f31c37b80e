"""Which names programs on a computer run by themselves."""

from __future__ import annotations

import pytest

from sojourn.core.guarded import GUARDED, guarded_name, guarded_part


@pytest.mark.parametrize("name", GUARDED)
def test_a_name_counts_at_any_depth_and_covers_what_is_below(name: str) -> None:
    for above in ("", "a/", "a/b/"):
        assert guarded_part(above + name) == above + name
        assert guarded_part(f"{above}{name}/x/y") == above + name


@pytest.mark.parametrize(
    "path", [".GIT/config", ".g\u200cit/config", ".\ufeffgit/config", "é/.Git/hooks/x", ".ENVRC"]
)
def test_names_are_compared_as_other_file_systems_do(path: str) -> None:
    assert guarded_part(path)


@pytest.mark.parametrize(
    "path", ["a.git/config", ".gitignore", "git/x", ".github/workflows/a.yml", ".env", "é/x", ""]
)
def test_other_names_do_not_count(path: str) -> None:
    assert guarded_part(path) == ""


def test_what_is_left_out_has_a_name_to_ask_for() -> None:
    assert guarded_name("out/sub/.git/config", "out") == "out/sub/.git"
    assert guarded_name(".git/config", ".") == ".git"
    assert guarded_name("out/HEAD", "out") == "out/HEAD"
