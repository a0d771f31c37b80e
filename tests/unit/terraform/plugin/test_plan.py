from __future__ import annotations

from typing import Any

import pytest

from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.schema import STRING, Attribute, Block, Nested
from sojourn.terraform.plugin.values import UNKNOWN, Unknown

_INNER = Block(
    (
        Attribute("fixed", STRING, "", optional=True, replace=True, default=""),
        Attribute("free", STRING, "", optional=True, default="x"),
    )
)
_BLOCK = Block(
    (
        Attribute("id", STRING, "", computed=True),
        Attribute("fixed", STRING, "", optional=True, replace=True),
        Attribute("free", STRING, "", optional=True),
        Attribute("standard", STRING, "", optional=True, replace=True, default="m"),
        Attribute("hidden", STRING, "", optional=True, replace=True, readable=False),
        Attribute(
            "loose",
            STRING,
            "",
            optional=True,
            replace=True,
            same=lambda one, other: (one or "").lower() == (other or "").lower(),
        ),
    ),
    (Nested("inner", _INNER, at_most=1),),
)


def _object(**values: Any) -> dict[str, Any]:
    names = ("id", "fixed", "free", "standard", "hidden", "loose")
    return {**dict.fromkeys(names), "inner": [], **values}


def _inner(**values: Any) -> dict[str, Any]:
    return {"fixed": None, "free": None, **values}


def test_a_creation_has_its_defaults_and_waits_for_what_is_computed() -> None:
    config = _object(fixed="a", inner=[_inner(fixed="b")])
    planned = plan(_BLOCK, None, config, config)
    assert planned.state == _object(
        id=UNKNOWN, fixed="a", standard="m", inner=[{"fixed": "b", "free": "x"}]
    )
    assert planned.replace == ()


def test_a_default_may_depend_on_the_rest() -> None:
    block = Block(
        (
            Attribute("kind", STRING, "", optional=True),
            Attribute("size", STRING, "", default_in=lambda config, prior: config["kind"] or "m"),
        )
    )
    for kind, size in ((None, "m"), ("l", "l")):
        config = {"kind": kind, "size": None}
        assert plan(block, None, config, config).state["size"] == size


def test_nothing_changes_if_nothing_is_changed() -> None:
    prior = _object(id="1", fixed="a", standard="m", inner=[{"fixed": "", "free": "x"}])
    config = _object(fixed="a", inner=[_inner()])
    assert plan(_BLOCK, prior, prior, config).state == prior


def test_a_default_comes_back_when_the_argument_is_removed() -> None:
    prior = _object(id="1", standard="xl")
    planned = plan(_BLOCK, prior, prior, _object())
    assert planned.state["standard"] == "m"
    assert planned.replace == (("standard",),)


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ({"fixed": "a"}, {"fixed": "b"}, [("fixed",)]),
        ({"fixed": "a"}, {"fixed": None}, [("fixed",)]),
        ({"fixed": "a"}, {"fixed": UNKNOWN}, [("fixed",)]),
        ({"free": "a"}, {"free": "b"}, []),
        ({"loose": "a"}, {"loose": "A"}, []),
        ({"loose": "a"}, {"loose": "b"}, [("loose",)]),
        ({"loose": "a"}, {"loose": Unknown(12, b"A")}, [("loose",)]),
        ({"inner": [_inner(fixed="a")]}, {"inner": [_inner(fixed="b")]}, [("inner", 0, "fixed")]),
        ({"inner": [_inner(free="a")]}, {"inner": [_inner(free="b")]}, []),
        ({"inner": []}, {"inner": [_inner(free="b")]}, []),
        ({"inner": [_inner(free="b")]}, {"inner": []}, []),
        ({"inner": []}, {"inner": [_inner(fixed="a")]}, [("inner",)]),
        ({"inner": [_inner(fixed="a")]}, {"inner": []}, [("inner",)]),
        ({"inner": [_inner()]}, {"inner": UNKNOWN}, [("inner",)]),
    ],
)
def test_only_what_cannot_change_in_place_needs_a_new_one(
    before: dict[str, Any], after: dict[str, Any], replaced: list[Any]
) -> None:
    prior = plan(_BLOCK, None, _object(**before), _object(**before)).state
    prior["id"] = "1"
    config = _object(**after)
    assert list(plan(_BLOCK, prior, {**config, "id": "1"}, config).replace) == replaced


def test_after_an_import_what_cannot_be_read_back_is_taken_from_the_configuration() -> None:
    prior = _object(id="1", standard="m")
    config = _object(hidden="secret")
    assert plan(_BLOCK, prior, {**config, "id": "1"}, config).replace == (("hidden",),)
    planned = plan(_BLOCK, prior, {**config, "id": "1"}, config, imported=True)
    assert planned.replace == ()
    assert planned.state["hidden"] == "secret"
