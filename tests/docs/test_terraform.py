"""The page on Terraform says what the provider does."""

from __future__ import annotations

from pathlib import Path

from sojourn.terraform.reference import inserted, render

_PAGE = Path(__file__).parents[2] / "docs" / "terraform.md"


def test_the_reference_is_that_of_the_schemas() -> None:
    page = _PAGE.read_text()
    assert render() in page
    assert inserted(page) == page, "run: make docs"
