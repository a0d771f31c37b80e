from __future__ import annotations

import inspect

from hypothesis import given
from hypothesis import strategies as st

from sojourn.cli.texts import cleandoc

lines = st.text(st.sampled_from("ab \t\b"), max_size=8)


@given(st.lists(lines, max_size=6))
def test_texts_are_as_the_library_would_have_them(found: list[str]) -> None:
    doc = "\n".join(["first", *found, "  last"])
    assert cleandoc(doc) == inspect.cleandoc(doc)
