from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.errors import InvalidInput
from sojourn.core.filters import Filters

# pattern, what it matches, what it does not
TABLE = [
    ("file.jpg", ["file.jpg", "a/file.jpg", "a/b/file.jpg"], ["afile.jpg", "file.jpgx", "file"]),
    ("/file.jpg", ["file.jpg"], ["a/file.jpg"]),
    ("*.jpg", ["x.jpg", "a/x.jpg", ".jpg", "a\nb.jpg"], ["x.jpg.txt", "xjpg"]),
    ("/*.jpg", ["x.jpg"], ["a/x.jpg"]),
    ("/a/*.jpg", ["a/x.jpg"], ["a/b/x.jpg", "b/a/x.jpg"]),
    ("/a/**.jpg", ["a/x.jpg", "a/b/x.jpg"], ["x.jpg", "ab/x.jpg"]),
    ("/a/**", ["a/x", "a/b/x", "a"], ["b/a/x", "ab"]),
    ("a/b", ["a/b", "x/a/b"], ["b", "a/bc", "xa/b"]),
    ("f?o", ["foo", "f.o"], ["fo", "fooo", "f/o"]),
    ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "ab.txt"]),
    ("[a-c0-2]", ["a", "c", "1"], ["d", "3", "-"]),
    ("[a-]", ["a", "-"], ["b"]),
    (r"[a\-c]", ["a", "-", "c"], ["b"]),
    ("[!a]", ["b", "^"], ["a", ""]),
    ("[^a]", ["b", "!"], ["a"]),
    ("x[!a]y", ["xby"], ["xay", "x/y"]),
    ("x[+-9]y", ["x0y"], ["x/y"]),
    ("[]a]", ["]", "a"], ["b", "[]a]"]),
    ("[!]a]x", ["bx"], ["]x", "ax"]),
    (r"[\]a]", ["]", "a"], ["\\"]),
    ("[[]x", ["[x"], ["x"]),
    ("[a&&b]", ["a", "&", "b"], ["c"]),
    ("[a||b]", ["|"], ["c"]),
    ("[~~]", ["~"], ["a"]),
    ("*.{jpg,png}", ["a.jpg", "b/a.png"], ["a.gif", "a.jpgpng", "a."]),
    ("{a,b{c,d}}x", ["ax", "bcx", "bdx"], ["bx", "cx"]),
    ("a{,b}", ["a", "ab"], ["b"]),
    ("a,b}", ["a,b}"], ["a", "b"]),
    (r"\*.txt", ["*.txt"], ["a.txt"]),
    (r"\{a,b\}", ["{a,b}"], ["a", "b"]),
    ("a.b+(c)|^$", ["a.b+(c)|^$"], ["aXb+(c)|^$", "a.bb(c)"]),
    ("été", ["été", "a/été"], ["ete"]),
    ("a b", ["a b"], ["ab"]),
    ("Ab", ["Ab"], ["ab", "AB"]),
]


@pytest.mark.parametrize(("pattern", "matching", "other"), TABLE)
def test_table(pattern: str, matching: list[str], other: list[str]) -> None:
    filters = Filters([pattern])
    assert [path for path in matching if not filters.excludes(path)] == []
    assert [path for path in other if filters.excludes(path)] == []
    assert [path for path in other if filters.excludes(path, folder=False)] == []


@pytest.mark.parametrize("pattern", ["build/", "/build/", "b*/", "x/build/"])
def test_a_last_slash_means_folders_only(pattern: str) -> None:
    filters = Filters([pattern])
    path = "x/build" if pattern.startswith("x") else "build"
    assert filters.excludes(path, folder=True)
    assert not filters.excludes(path, folder=False)
    assert filters.covers(f"{path}/deep/file", folder=False)
    assert not filters.covers(path, folder=False)


def test_all_patterns_count() -> None:
    filters = Filters(("a|b", "c"))
    assert filters.exclude == ("a|b", "c")
    assert [p for p in ("a|b", "c", "a", "b") if filters.excludes(p)] == ["a|b", "c"]


@pytest.mark.parametrize(
    ("path", "excluded"),
    [
        ("main.tf", True),
        ("a/main.tf", False),
        ("terraform.tfstate", True),
        ("terraform.tfstate.backup", True),
        ("a/terraform.tfstate", False),
        (".terraform", True),
        (".terraform/providers/x", True),
        (".terraform.lock.hcl", True),
        ("a/.terraform", False),
        (".sojourn-x.part", True),
        ("a/.sojourn-x.part", True),
        (".sojourn-x", False),
    ],
)
def test_always_excluded(path: str, excluded: bool) -> None:
    assert Filters().covers(path, folder=False) is excluded


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("data", True),
        ("data/x", True),
        ("a/data/b/c", True),
        ("datax/x", False),
        ("a/b", False),
    ],
)
def test_covers_looks_at_the_folders_above(path: str, covered: bool) -> None:
    assert Filters(["data"]).covers(path) is covered


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "matches nothing"),
        ("/", "matches nothing"),
        ("//", "matches nothing"),
        ("[", "unclosed ["),
        ("[]", "unclosed ["),
        ("[!]", "unclosed ["),
        ("[]abc", "unclosed ["),
        ("a[bc", "unclosed ["),
        ("[z-a]", "bad character range"),
        ("{a", "unclosed {"),
        ("{a,{b}", "unclosed {"),
    ],
)
def test_malformed(pattern: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Filters([pattern])
    assert caught.value.path == "storage.exclude"
    assert repr(pattern) in str(caught.value)
    assert message in str(caught.value)


NAMES = st.text(st.sampled_from("ab*?[]{},\\.-!^&|~ é\n"), min_size=1, max_size=6)
PATHS = st.lists(st.text("ab.é\n", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(NAMES.map(lambda name: name.strip("/")))
def test_any_pattern_compiles_or_is_refused(pattern: str) -> None:
    try:
        filters = Filters([pattern])
    except InvalidInput:
        return
    filters.covers("a/b")


@given(st.text(min_size=1).filter(lambda name: name.strip("/")), PATHS)
def test_an_excluded_folder_covers_all_in_it(pattern: str, below: str) -> None:
    escaped = "".join(f"\\{char}" if char != "/" else char for char in pattern.strip("/"))
    for written in (escaped, f"/{escaped}", f"{escaped}/"):
        assert Filters([written]).covers(f"{pattern.strip('/')}/{below}", folder=False)


@given(PATHS, PATHS, st.sampled_from(["a", "/a", "*b", "a/**", "[ab]", "**é", "a/"]))
def test_what_is_in_an_excluded_folder_is_covered(top: str, below: str, pattern: str) -> None:
    filters = Filters([pattern])
    if filters.covers(top):
        assert filters.covers(f"{top}/{below}", folder=False)


@given(PATHS, PATHS)
def test_what_matches_anywhere_does_not_depend_on_the_folder(path: str, above: str) -> None:
    for pattern in ("a", "*b", "[ab].", "?", "{a,b}*"):
        filters = Filters([pattern])
        if filters.excludes(path):
            assert filters.excludes(f"{above}/{path}")
