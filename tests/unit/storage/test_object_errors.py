"""What obstore says, and what we make of it."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError

from sojourn.core.errors import AuthError, NotFound, SojournError, Transient
from sojourn.storage import objects


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error performing list request: Client error with status code: 403 Forbidden", AuthError),
        ("Error after 0 retries: status code: 404 Not Found", NotFound),
        # Of a deletion of many at once, in Azure.
        ("Generic MicrosoftAzure error: x: AuthorizationPermissionMismatch (code: 403)", AuthError),
        ("error sending request for url: connection refused", Transient),
    ],
)
def test_errors_without_an_exception_of_their_own(text: str, kind: type[SojournError]) -> None:
    assert type(objects._ours("path", GenericError(text))) is kind
