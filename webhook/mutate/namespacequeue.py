"""The queue that a namespace names for what is created there without one: Volcano's annotation."""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.batch import Job
from webhook.lookup import Namespaces
from webhook.patch import Patch, Why, find

WHY = Why("the queue of its namespace", f"annotation {names.VOLCANO_QUEUE}")


def named_by(namespace: str, namespaces: Namespaces) -> str:
    """The queue, or "" if the namespace names none; APIError if that could not be found out."""
    return namespaces.annotations(namespace).get(names.VOLCANO_QUEUE, "")


def take_queue(job: Job, old: Mapping[str, Any] | None, namespace: str, namespaces: Namespaces, patch: Patch) -> None:
    """A Job in no queue, or in the default one, takes that of its namespace, where its user sees it.

    The schema writes `default` where nothing is said, so the two cannot be told apart. An update without a queue keeps
    the one that the Job has, whatever the namespace names by now: a Job stays in its queue. APIError where the
    namespace of a new Job cannot be read: the user submits it again, which is better than a Job that waits in another
    queue than it should.
    """
    if not _unnamed(job.spec.queue):
        return
    queue = named_by(namespace, namespaces) if old is None else find(old, ("spec", "queue"))
    if not _unnamed(queue):
        patch.set("spec", "queue", value=queue, why=WHY)


def _unnamed(queue: str | None) -> bool:
    return (queue or names.DEFAULT_QUEUE) == names.DEFAULT_QUEUE
