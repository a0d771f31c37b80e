"""Who the user is: google-auth's credentials, and the project that they are for."""

from __future__ import annotations

import json
import os
import re
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError, Transient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SCOPE", "Login", "log_in"]

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_DATA = "GOOGLE_APPLICATION_CREDENTIALS_DATA"
_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
# Where people set the project, in the order in which they are looked at.
_PROJECTS = (
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_PROJECT",
    "CLOUDSDK_CORE_PROJECT",
    "CLOUDSDK_PROJECT",
    "GCLOUD_PROJECT",
    "GCP_PROJECT",
)
_HINT = (
    f"Run `gcloud auth application-default login`, or set {_FILE} to the path of a key file or "
    f"{_DATA} to its contents."
)
_IMPERSONATED = re.compile(
    r"/serviceAccounts/[^@/]+@(?P<project>[^./]+)\.iam\.gserviceaccount\.com"
)


_PROJECTS_API = "https://cloudresourcemanager."
_PAUSES = (0.2, 1.0)  # seconds


@dataclass
class Login:
    """Credentials that renew themselves; threads may share them."""

    credentials: Any
    project: str
    source: str

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def token(self, fresh: bool = False) -> str:
        """A token that is good for a while; `fresh`: another one than before."""
        with self._lock:
            if fresh or not self.credentials.valid:
                with _translated(self.source):
                    self.credentials.refresh(_Transport())
            return str(self.credentials.token)

    @property
    def expiry(self) -> Any:
        """When the token ends: a naive time in UTC, or None."""
        return self.credentials.expiry

    @property
    def who(self) -> str:
        """An address, as far as the credentials tell."""
        name = getattr(self.credentials, "service_account_email", "") or ""
        return str(name or getattr(self.credentials, "account", "") or "")


def log_in(*, project: str = "", file: str = "") -> Login:
    """With the credentials in a file, or what this computer has. Nothing: raises AuthError."""
    data = "" if file else os.environ.get(_DATA)
    with _translated(file or (_DATA if data else _FILE)), warnings.catch_warnings():
        # It warns of files from strangers, and of logins without a project, which we look for.
        warnings.simplefilter("ignore")
        import google.auth

        made: Any = google.auth  # half of it has types
        if file:
            found, own = made.load_credentials_from_file(file, scopes=[SCOPE])
        elif data:
            found, own = made.load_credentials_from_dict(_parsed(data), scopes=[SCOPE])
        else:
            found, own = made.default(scopes=[SCOPE], request=_Transport())
    # A file that was chosen for one cloud is not for the project of another one.
    named = "" if file else next(filter(None, map(os.environ.get, _PROJECTS)), "")
    chosen = project or named or own or _project_in(found)
    if not chosen:
        raise AuthError(
            "No Google Cloud project found",
            hint="Set GOOGLE_CLOUD_PROJECT to the ID of your project.",
        )
    return Login(found, str(chosen), file or (_DATA if data else _source()))


def _parsed(data: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise AuthError(
            f"{_DATA} is not valid JSON: {error}", hint="Set it to the contents of a key file."
        ) from error
    if not isinstance(found, dict):
        raise AuthError(f"{_DATA} is not a JSON object", hint="Set it to a key file's contents.")
    return found


def _source() -> str:
    path = os.environ.get(_FILE)
    return f"{_FILE} ({path})" if path else "your default login"


def _project_in(credentials: Any) -> str:
    """CI logs in as a service account, whose address names its project."""
    url = str(getattr(credentials, "_service_account_impersonation_url", "") or "")
    found = _IMPERSONATED.search(url)
    return found["project"] if found else ""


@contextmanager
def _translated(source: str) -> Iterator[None]:
    """google-auth's exceptions stop here."""
    from google.auth import exceptions

    try:
        yield
    except exceptions.TransportError as error:
        raise Transient(
            f"Google Cloud: {error}", hint="Check your network and try again."
        ) from error
    except OSError as error:
        raise AuthError(f"Could not read {source}: {error.strerror}", hint=_HINT) from error
    except exceptions.DefaultCredentialsError as error:
        text = str(error).splitlines()[0] if str(error) else "none found"
        raise AuthError(f"No usable Google Cloud credentials: {text}", hint=_HINT) from error
    except (exceptions.GoogleAuthError, ValueError) as error:
        raise AuthError(
            f"Google Cloud rejected the credentials from {source}: {_short(error)}",
            hint=f"{_HINT} Run `sojourn doctor` to see your identity.",
        ) from error


def _short(error: Exception) -> str:
    """google-auth puts the whole answer beside the text."""
    first = error.args[0] if error.args else error
    return " ".join(str(first).split())[:300]


@dataclass(frozen=True)
class _Answer:
    """As google-auth wants it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class _Transport:
    """google-auth's requests by httpx: it has none of its own for that.

    It does not ask again by itself if there was no answer. And it asks for the project of a CI job
    at once, which few may: we look for it elsewhere.
    """

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> _Answer:
        import httpx
        from google.auth import exceptions

        from sojourn.clouds.vm.rest import trusted

        if url.startswith(_PROJECTS_API):
            return _Answer(404, {}, b"{}")
        for pause in (*_PAUSES, None):
            try:
                answer = httpx.request(
                    method,
                    url,
                    content=body,
                    headers=headers,
                    timeout=timeout or 30.0,
                    verify=trusted(),
                )
                break
            except httpx.TransportError as error:
                if pause is None:
                    raise exceptions.TransportError(str(error)) from error  # type: ignore[no-untyped-call]
                time.sleep(pause)
        return _Answer(answer.status_code, answer.headers, answer.content)
