"""Which of the user's credentials boto found: whoever has wrong ones has to know which."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

__all__ = ["Used", "used_by"]

_FILES = {
    "shared-credentials-file": ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    "config-file": ("AWS_CONFIG_FILE", "~/.aws/config"),
}
_VARIABLES = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


@dataclass(frozen=True)
class Used:
    """Where credentials come from, and what to do if AWS rejects them."""

    source: str
    remedy: str


def used_by(session: Any) -> Used:
    """Those that a session of boto signs with."""
    found = session.get_credentials()
    return _described(getattr(found, "method", "") or "", session.profile_name)


def _described(method: str, profile: str) -> Used:
    login = f"`aws sso login --profile {profile}`"
    if method == "env":
        return Used(
            _VARIABLES,
            f"Set {_VARIABLES} (and AWS_SESSION_TOKEN for temporary keys) to valid keys, or unset "
            "them and log in with `aws sso login`.",
        )
    if method in _FILES:
        variable, usual = _FILES[method]
        return Used(
            f"profile {profile!r} in {os.environ.get(variable) or usual}",
            f"Run `aws configure --profile {profile}` or {login}, or choose another profile with "
            "AWS_PROFILE.",
        )
    if "sso" in method:
        return Used(f"the SSO login of profile {profile!r}", f"Run {login}.")
    return Used(
        f"profile {profile!r} ({method or 'unknown source'})",
        f"Run {login}, or set {_VARIABLES}.",
    )
