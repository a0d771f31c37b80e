"""Each claim of docs/security.md has a proof: the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/security.md").read_text()
_PROOFS = re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", _PAGE)


@pytest.mark.parametrize(("file", "names"), _PROOFS)
def test_a_proof_is_there(file: str, names: str) -> None:
    text = (_ROOT / file).read_text()
    for name in filter(None, names.split("::")):
        assert re.search(rf"^\s*(class|def) {name}\b", text, re.MULTILINE), name


def test_every_row_of_claims_names_one() -> None:
    rows = [line for line in _PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    claims = [row for row in rows if not re.match(r"\| (claim|cloud) ", row)]
    without = [row for row in claims if "`tests/" not in row and "the same |" not in row]
    assert len(claims) > 30
    assert [row.split("|")[1] for row in without] == [
        " `local` "
    ]  # which has no more than its user
