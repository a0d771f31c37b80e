"""Why machines cannot be made: Azure's paragraphs as short sentences that say what to do."""

from __future__ import annotations

import re

__all__ = ["reason"]

_LONGEST = 200  # characters of what we do not know
# What Azure says, and what we say.
_KNOWN = (
    (
        r"AllocationFailed|OverconstrainedAllocationRequest|Overconstrained|SkuNotAvailable"
        r"|sufficient capacity",
        "Azure has no {market}capacity for this size right now: wait, or choose another machine or "
        "region",
    ),
    (
        r"exceeding approved (?P<quota>.+?) quota.*Current Limit: (?P<limit>\d+)",
        "the quota {quota!r} of {limit} is too small: request an increase in the Azure portal",
    ),
    (
        r"max price '(?P<price>[\d.]+)'.*current price '(?P<now>[\d.]+)'",
        "the spot price is {now} USD per hour, above the maximum of {price}: "
        "wait, or create the task with a higher spot price",
    ),
    (
        r"AuthorizationFailed|does not have authorization",
        "missing permission to start machines: see docs/azure.md for the full role",
    ),
)


def reason(code: str, text: str) -> str:
    """What to tell a user of a machine that could not be made."""
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, f"{code} {text}", re.IGNORECASE | re.DOTALL)
        if found:
            market = "spot " if re.search("preempt|spot", text, re.IGNORECASE) else ""
            return sentence.format(market=market, **found.groupdict())
    told = " ".join(text.split())
    told = told if len(told) <= _LONGEST else told[: _LONGEST - 3].rstrip() + "..."
    return f"{told} ({code})" if code else told
