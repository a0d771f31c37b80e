"""What a machine wrote is read strictly, and whatever it is, nothing but ValueError comes of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.untrusted import number, parsed, parsed_bytes

_BOMB = 60_000
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * _BOMB,
        b'{"a":' * 10_000,
        b"[" * _BOMB + b"]" * 3,
        b"[" * 17 + b"]" * 17,
        b'{"a":"\\\\","b":' + b"[" * _BOMB,
        b'"\\ud800"',
        b'{"\\uDfff":1}',
        b'"\xed\xa0\x80"',
        b"\xff",
        b"\xff\xfe[\x00]\x00",
        b"\xef\xbb\xbf[]",
        b"NaN",
        b"[-Infinity]",
        b"1e999",
        b"9" * 21,
        b"-" + b"9" * 5000,
        b"18446744073709551616",
        b"[]" + b" " * (64 << 10),
        b"",
        b"[1]]",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parsed_bytes(data)
    assert len(str(caught.value)) < 200


def test_brackets_in_strings_do_not_nest() -> None:
    value = {"a\\": '["' * 100, "b": '\\"[[[[' * 100, "c": "]" * 100, "d": [[["{" * 100]]]}
    assert parsed(json.dumps(value)) == value


def test_bytes_of_names_and_pairs_are_text() -> None:
    assert parsed(r'["caf\udce9", "\ud83d\ude00"]') == ["caf\udce9", "\U0001f600"]


def test_many_empty_lists_are_refused_before_they_take_memory() -> None:
    with pytest.raises(ValueError, match="too many lists"):
        parsed_bytes(b"[" + b"[]," * 100_000 + b"1]", most=1 << 20)


@given(_VALUES)
def test_what_we_write_comes_back(value: Any) -> None:
    text = json.dumps(value)
    if text.count("[") + text.count("{") <= 16:
        assert parsed(text) == value


@given(
    st.binary(max_size=200)
    | st.text(alphabet='[]{}",:\\u0dD18e9-.Nn ', max_size=200).map(str.encode)
)
def test_nothing_else_is_raised(data: bytes) -> None:
    try:
        value = parsed_bytes(data)
    except ValueError:
        return
    json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(("7", 7), ("000012", 12), ("0", 0)),
        *(("²", None), ("١", None), ("", None), ("-1", None), ("+1", None), ("1_0", None)),
        *((" 1", None), ("1\n", None), ("9" * 16, None), ("9" * 5000, None), ("0x1", None)),
    ],
)
def test_numbers_in_names(name: str, found: int | None) -> None:
    assert number(name) == found
