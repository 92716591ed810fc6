"""Whether the recorder still looks, so that what is not written is not taken for what did not happen.

The recorder notes how far it has looked with every transaction, and every ten seconds while nothing happens; not while
it cannot read the cluster.
"""

from typing import Final

import msgspec

from history.model import MS
from history.store import Store
from history.usage import SEEN

SILENT_AFTER_S: Final = 60.0
"""Six notes: a recorder that starts again takes less, and a busy one writes oftener."""


class Silence(msgspec.Struct, frozen=True):
    """The recorder has not looked for longer than it should."""

    since: float
    """When it looked last, in seconds since the epoch; 0: it never has."""


def silence(looked: float, now: float) -> Silence | None:
    """Return since when the recorder is silent, at this moment; None while it looks. A clock ahead is none."""
    return Silence(looked) if now - looked > SILENT_AFTER_S else None


def looked(store: Store) -> float:
    """Return when the recorder looked last, in seconds since the epoch; 0 if it never has."""
    return int(store.note(SEEN) or 0) / MS


def told(since: str, ago: str, what: str) -> str:
    """Return what is said of a silence: since when, in words (empty: it has never looked), and what is not known."""
    when = f"has not looked at the cluster since {since} ({ago} ago)" if since else "has not looked at the cluster yet"
    return f"The recorder of the history {when}: {what}"


GANGS: Final = "what gangs have done since then is missing here; it reads it later, as far as the cluster remembers"
USAGE: Final = "what gangs have asked for and held since then does not count here yet"
BUDGETS: Final = "of budgets, what gangs have held since then does not count here; the planner counts it while it runs"
"""What is not known, in the list of gangs, in usage, and beside budgets."""
