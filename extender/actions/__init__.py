"""The steps of a planning cycle. Pure: they read the session, ask its hooks and leave decisions."""

from extender.actions.allocate import Allocate
from extender.actions.enqueue import Enqueue
from extender.actions.stalegangeviction import StaleGangEviction
from extender.framework.registry import ActionBuilder

ACTIONS: dict[str, ActionBuilder] = {
    "enqueue": Enqueue,
    "allocate": Allocate,
    "stalegangeviction": StaleGangEviction,
}
