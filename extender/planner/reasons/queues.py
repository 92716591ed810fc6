"""What a queue refuses, and in which order its gangs start."""

from muster.resources.vector import amount_words

OVER_CAPABILITY = "QueueOverCapability"
GUARANTEED = "KeptForGuarantees"
OVER_DESERVED = "QueueOverDeserved"
NOT_FOUND = "QueueNotFound"
NOT_OPEN = "QueueNotOpen"
STRICT_ORDER = "StrictOrder"
"""Reasons of conditions."""

ROOT = "queue 'root' holds other queues and takes no gangs"
missing = "queue {queue!r} does not exist".format
closed = "queue {queue!r} is {state}".format
behind = "queue {queue!r} starts its gangs strictly in order, and {head} before it waits for room".format
unreadable_capability = "the capability of queue {queue} cannot be read: {error}".format
first_waits = "{gang} waits: {message}".format

_REFUSALS = {
    OVER_CAPABILITY: "queue {queue} may use {limit} (capability) and uses {used}: {asked} more do not fit; wait until "
    "gangs of the queue end, or raise its capability",
    GUARANTEED: "queue {queue} has {limit}, of which {used} are used or guaranteed to other queues: "
    "{asked} more do not fit; wait until gangs end, or lower a guarantee",
    OVER_DESERVED: "queue {queue} deserves {limit}, of which gangs that are not preemptable use {used}: {asked} more "
    "do not fit; make the gang preemptable, or raise what is deserved",
}


def refusal(reason: str, queue: str, resource: str, *, limit: int, used: int, asked: int) -> str:
    """Why a queue does not let a gang have so much more; amounts in milli-CPU or base units."""
    amounts = {"limit": limit, "used": used, "asked": asked}
    words = {name: f"{amount_words(resource, amount)} {resource}" for name, amount in amounts.items()}
    return _REFUSALS[reason].format(queue=queue, **words)


def no_nodes_for(queue: str, resource: str, *, limit: int, used: int, asked: int) -> str:
    """Why no nodes are asked for: the queue could not use them."""
    most, there, more = (amount_words(resource, amount) for amount in (limit, used, asked))
    return f"queue {queue} may use {most} {resource} (capability), uses {there}, and {more} more are wanted"
