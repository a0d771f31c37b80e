from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.terraform.plugin import wire
from sojourn.terraform.plugin.schema import BOOL, NUMBER, STRING, Attribute, Block, Nested, Type
from sojourn.terraform.plugin.values import (
    UNKNOWN,
    Unknown,
    decode,
    decode_json,
    encode,
    is_known,
    whole,
)

_BLOCK = Block(
    (
        Attribute("text", STRING, ""),
        Attribute("number", NUMBER, ""),
        Attribute("flag", BOOL, ""),
        Attribute("list", Type("list", NUMBER), ""),
        Attribute("map", Type("map", STRING), ""),
    ),
    (
        Nested("many", Block((Attribute("size", NUMBER, ""),))),
        Nested("one", Block((Attribute("size", NUMBER, ""),)), "single"),
    ),
)
_EMPTY: dict[str, object] = {
    "text": None,
    "number": None,
    "flag": None,
    "list": None,
    "map": None,
    "many": [],
    "one": None,
}

_numbers = st.one_of(
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False).map(
        lambda number: int(number) if number == number.to_integral_value() else number
    ),
)
_sizes = st.fixed_dictionaries({"size": st.one_of(st.none(), st.just(UNKNOWN), _numbers)})
_objects = st.fixed_dictionaries(
    {
        "text": st.one_of(st.none(), st.text(), st.builds(Unknown, st.just(12), st.binary())),
        "number": st.one_of(st.none(), st.just(UNKNOWN), _numbers),
        "flag": st.one_of(st.none(), st.booleans()),
        "list": st.one_of(st.none(), st.just(UNKNOWN), st.lists(_numbers)),
        "map": st.one_of(st.none(), st.dictionaries(st.text(), st.text())),
        "many": st.one_of(st.just(UNKNOWN), st.lists(_sizes)),
        "one": st.one_of(st.none(), _sizes),
    }
)


def _arrives(plain: object) -> object:
    return decode(wire.Value(msgpack=msgspec.msgpack.encode(plain)), _BLOCK)


@given(_objects)
def test_what_goes_out_comes_back_the_same(value: dict[str, object]) -> None:
    assert decode(wire.Value(msgpack=encode(value)), _BLOCK) == value


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("0.1", Decimal("0.1")),
        (0.5, Decimal("0.5")),
        (3, 3),
        ("3", 3),
        (3.0, 3),
        ("1e30", 10**30),
        (str(2**70), 2**70),
    ],
)
def test_numbers_are_exact_however_they_come(sent: object, meant: object) -> None:
    assert _arrives({"number": sent, "list": [sent]}) == {
        **_EMPTY,
        "number": meant,
        "list": [meant],
    }


def test_a_text_of_digits_stays_a_text() -> None:
    assert _arrives({"text": "3", "map": {"a": "0.1"}}) == {
        **_EMPTY,
        "text": "3",
        "map": {"a": "0.1"},
    }


def test_a_float_of_ours_goes_out_as_people_write_it() -> None:
    assert msgspec.msgpack.decode(encode({"number": 0.1})) == {"number": "0.1"}


@pytest.mark.parametrize("number", ["1E+1000000", "Infinity"])
def test_numbers_without_measure_are_not_written_out(number: str) -> None:
    assert _arrives({"number": number}) == {**_EMPTY, "number": Decimal(number)}


def test_json_numbers_are_exact() -> None:
    digits = "0.12345678901234567890123456789"
    state = decode_json(f'{{"number": {digits}, "text": "a"}}'.encode())
    found = whole(state, _BLOCK)
    assert found
    assert found["number"] == Decimal(digits)


def test_what_is_known_of_an_unknown_value_goes_back_unchanged() -> None:
    refined = msgspec.msgpack.encode({"text": msgspec.msgpack.Ext(12, b"\x81\x02\xa3#!/")})
    arrived = decode(wire.Value(msgpack=refined), _BLOCK)
    assert arrived is not None
    assert arrived["text"] == Unknown(12, b"\x81\x02\xa3#!/")
    assert msgspec.msgpack.decode(encode({"text": arrived["text"]}))["text"].code == 12


def test_a_state_has_all_attributes_of_the_schema_and_no_other() -> None:
    state = wire.Value(json=b'{"text": "a", "number": 0.25, "gone": 1, "many": [{}]}')
    assert decode(state, _BLOCK) == {
        **_EMPTY,
        "text": "a",
        "number": Decimal("0.25"),
        "many": [{"size": None}],
    }


def test_no_object_is_none() -> None:
    assert decode(wire.Value(), _BLOCK) is None
    assert decode(wire.Value(msgpack=encode(None)), _BLOCK) is None


def test_known_looks_inside() -> None:
    assert is_known({"a": [1, {"b": None}]})
    assert not is_known({"a": [1, {"b": UNKNOWN}]})
