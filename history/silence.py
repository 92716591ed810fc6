"""Whether the recorder still looks, so that what is not written is not taken for what did not happen.

The recorder notes how far it has looked with every transaction, and every ten seconds while nothing happens; not while
it cannot read the cluster.
"""

from collections.abc import Callable
from typing import Final

from gangs.words import short
from history.model import MS
from history.store import Store
from history.usage import SEEN

SILENT_AFTER_S: Final = 60.0
"""Six notes: a recorder that starts again takes less, and a busy one writes oftener."""
GANGS: Final = "what gangs have done since then is missing here; it reads it later, as far as the cluster remembers"
USAGE: Final = "what gangs have asked for and held since then does not count here yet"
BUDGETS: Final = "of budgets, what gangs have held since then does not count here; the planner counts it while it runs"
"""What is not known, in the list of gangs, in usage, and beside budgets."""


def looked(store: Store) -> float:
    """Return when the recorder looked last, in seconds since the epoch; 0 if it never has."""
    return int(store.note(SEEN) or 0) / MS


def words(looked: float, now: float, what: str, clock: Callable[[float], str]) -> str:
    """Return what is said of a recorder that has not looked for longer than it should; empty while it looks.

    `what` is not known then, and `clock` returns a moment as text. A clock that is ahead is no silence.
    """
    if now - looked <= SILENT_AFTER_S:
        return ""
    since = f"since {clock(looked)} ({short(now - looked)} ago)" if looked else "yet"
    return f"The recorder of the history has not looked at the cluster {since}: {what}"
