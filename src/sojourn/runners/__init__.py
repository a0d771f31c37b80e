"""CI runners: machines that serve the jobs of a repository, and are gone when nobody needs them.

They are tasks: every verb of a task works on them. What a forge has to be told is done here.
"""

from sojourn.runners.finding import Orphan, garbage, get
from sojourn.runners.finding import list_runners as list  # noqa: A004 -- as in `sojourn runner list`
from sojourn.runners.launched import Launched
from sojourn.runners.launching import check, launch, make
from sojourn.runners.settings import Settings

__all__ = [
    "Launched",
    "Orphan",
    "Settings",
    "check",
    "garbage",
    "get",
    "launch",
    "list",
    "make",
]
