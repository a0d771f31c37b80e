"""The user's login, as azure-identity finds it, and the subscription that it is used for."""

from __future__ import annotations

import json
import logging
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.core.errors import AuthError, MissingDependency, SojournError, Transient

__all__ = ["Login", "Used", "subscription", "used"]

_SECRET = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
_FEDERATED = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE"
_SEE = "Run `sojourn doctor` to see your identity."


@dataclass(frozen=True)
class Used:
    """Where credentials come from, and what to do if Azure rejects them."""

    source: str
    remedy: str


def used() -> Used:
    """Those that azure-identity tries first."""
    if os.environ.get("AZURE_CLIENT_SECRET"):
        return Used(_SECRET, f"Set {_SECRET} to valid values, or unset them and run `az login`.")
    if os.environ.get("AZURE_FEDERATED_TOKEN_FILE"):
        return Used(_FEDERATED, f"Check {_FEDERATED}; the token in the file may have expired.")
    return Used("your Azure login", f"Run `az login`, or set {_SECRET}.")


class Login:
    """Tokens of the user. Nothing is loaded or asked before the first."""

    def __init__(self) -> None:
        self._credential: Any = None

    def token(self, scope: str, *, fresh: bool = False) -> tuple[str, float]:
        """A token, and when it ends; `fresh`: the last one was rejected."""
        if self._credential is None or fresh:  # it remembers tokens: a new one has none
            self._credential = _credential()
            weakref.finalize(self, self._credential.close)
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        try:
            found = self._credential.get_token(scope)
        except ClientAuthenticationError as error:
            raise _rejected(str(error)) from error
        except AzureError as error:
            raise Transient(
                f"Could not reach the login service of Azure: {_line(error)}",
                hint="Check your network and try again.",
            ) from error
        return str(found.token), float(found.expires_on)


def _credential() -> Any:
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise MissingDependency(
            "az", "Azure needs azure-identity, which is not installed"
        ) from error
    # It warns of each place where it finds nothing; the error at the end names them all.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
    return DefaultAzureCredential()


def _rejected(text: str) -> SojournError:
    shown = used()
    if "failed to retrieve a token" in text and "AADSTS" not in text:
        return AuthError(
            "No Azure credentials found", hint=f"Run `az login`, or set {_SECRET}. {_SEE}"
        )
    told = next((line for line in text.splitlines() if "AADSTS" in line), _line(text))
    return AuthError(
        f"Azure rejected the credentials from {shown.source}: {told.strip()}",
        hint=f"{shown.remedy} {_SEE}",
    )


def _line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def subscription() -> str:
    """The one to use: of the variable, else the default one of Azure's own command line."""
    given = os.environ.get("AZURE_SUBSCRIPTION_ID", "").strip()
    if given:
        return given
    folder = os.environ.get("AZURE_CONFIG_DIR") or "~/.azure"
    file = Path(folder).expanduser() / "azureProfile.json"
    try:
        known = json.loads(file.read_text(encoding="utf-8-sig")).get("subscriptions", ())
        found = [str(each["id"]) for each in known if each.get("isDefault")]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        found = []
    if found:
        return found[0]
    raise AuthError(
        "No Azure subscription selected",
        hint="Set AZURE_SUBSCRIPTION_ID, or run `az login` and `az account set --subscription ID`.",
    )
