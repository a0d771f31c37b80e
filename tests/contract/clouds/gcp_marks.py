"""Marks on all that tests make in a real Google Cloud project. See `marking`.

What can have labels has one. Groups, templates, firewall rules, service accounts and bindings
cannot: they tell it in their descriptions.
"""

from __future__ import annotations

import json
from typing import Any

from sojourn.clouds.gcp import machine_types, policy, tags
from sojourn.clouds.gcp.account import Account
from tests.contract.clouds.marking import Lasting, smallest_machines, the_mark

MARK = "sojourn-test"
_DESCRIBED = ("firewalls", "instanceGroupManagers", "instanceTemplates", "serviceAccounts")


def use(patch: Any = None) -> None:
    patch = patch or Lasting()
    mark, of_task, call, binding = the_mark(), tags.labels_of, Account.call, policy._binding

    def marked_call(
        self: Account,
        what: str,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        **query: Any,
    ) -> Any:
        if method == "POST" and path.endswith(_DESCRIBED):
            body = _described(body, mark)
        return call(self, what, service, method, path, body, **query)

    def marked_binding(*given: str) -> dict[str, Any]:
        made = binding(*given)
        condition = {**made["condition"], "description": _text(mark)}
        return {**made, "condition": condition}

    patch.setattr(tags, "labels_of", lambda *given: {**of_task(*given), MARK: mark})
    patch.setattr(Account, "call", marked_call)
    patch.setattr(policy, "_binding", marked_binding)
    smallest_machines(patch, machine_types._TYPES)


def _described(body: dict[str, Any], mark: str) -> dict[str, Any]:
    if "serviceAccount" in body:
        return {**body, "serviceAccount": _described(body["serviceAccount"], mark)}
    return {**body, "description": _text(mark, body.get("description", ""))}


def _text(mark: str, text: str = "") -> str:
    """A description with the mark. That of a firewall rule is read by the product: it is JSON."""
    told = json.loads(text) if text.startswith("{") else {"description": text}
    return json.dumps({**told, MARK: mark})


def told_by(description: str | None) -> str:
    """The mark in a description; empty: it has none."""
    try:
        return str(json.loads(description or "")[MARK])
    except (ValueError, KeyError, TypeError):
        return ""
