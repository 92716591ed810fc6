"""A Queue: its amounts fit into each other and into the tree, and what others stand on is not deleted."""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.volcano.scheduling import Queue
from webhook.lookup import Queues
from webhook.review import Handler, Verdict, decode
from webhook.validate.queues.amounts import (
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    check_deserved,
    check_guarantee,
    read_amounts,
)
from webhook.validate.queues.tree import check_hierarchy, check_neighbours, check_parent

_QUEUE = Decoder(Queue)


def reviewer(queues: Queues) -> Handler:
    """The handler for Queues, on CREATE, UPDATE and DELETE."""

    def review(request: AdmissionRequest) -> Verdict:
        if request.operation == "DELETE":
            return Verdict(errors=list(check_delete(request.name, queues)))
        queue = decode(request.object, _QUEUE)
        if request.operation == "UPDATE":
            return Verdict(errors=list(check_update(decode(request.old_object, _QUEUE), queue, queues)))
        return Verdict(errors=list(check(queue, queues)))

    return review


def check_delete(name: str, queues: Queues) -> Iterator[FieldError]:
    """The two queues that always exist stay, and so does a queue with queues below it."""
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        yield FieldError("metadata.name", f"`{name}` queue can not be deleted; Muster needs it", reason="Forbidden")
    children = queues.children(name)
    if children:
        message = f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        yield FieldError("metadata.name", message, reason="Forbidden")


def check_update(old: Queue, new: Queue, queues: Queues) -> Iterator[FieldError]:
    """A queue may be edited in every state. Where nothing changes that is looked at here, nothing is refused."""
    said = (names.HIERARCHY, names.HIERARCHY_WEIGHTS)
    kept = all(old.metadata.annotations.get(key) == new.metadata.annotations.get(key) for key in said)
    if new.metadata.deletion_timestamp or (old.spec == new.spec and kept):
        return
    if new.metadata.name == names.ROOT_QUEUE:
        yield from _check_root(old, new)
    yield from check(new, queues, moved=old.spec.parent != new.spec.parent)


def check(queue: Queue, queues: Queues, *, moved: bool = True) -> Iterator[FieldError]:
    """Everything that is wrong with a queue; `moved`: it is new where it is in the tree."""
    amounts, errors = read_amounts(queue)
    yield from errors
    yield from check_guarantee(amounts)
    yield from check_deserved(amounts)
    yield from check_hierarchy(queue, queues)
    wrong = list(check_parent(queue, queues, moved=moved))
    yield from wrong
    if not wrong:
        yield from check_neighbours(queue, amounts, queues)


def _check_root(old: Queue, new: Queue) -> Iterator[FieldError]:
    """The root is the cluster: what it has is not for users to say."""
    for path, was, is_ in (
        (CAPABILITY, old.spec.capability, new.spec.capability),
        (DESERVED, old.spec.deserved, new.spec.deserved),
        (GUARANTEE, old.spec.guarantee.resource, new.spec.guarantee.resource),
    ):
        if was != is_:
            message = "of the root queue can not be changed: it is what the cluster has"
            yield FieldError(path, message, reason="Forbidden")
