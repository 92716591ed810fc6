"""Warnings about the labels of a namespace: an unusable queue, or an unknown Muster key.

Nothing is refused, so namespaces can be created and labelled while the webhook is down, and the queue may be created
later.
"""

from collections.abc import Mapping
from contextlib import suppress

from muster.api import names
from muster.api.kubernetes import admission, core, meta
from muster.kube.errors import APIError
from webhook.lookup import NamespaceQueues, QueueTreeView
from webhook.objects.names import unknown_keys, unusable_queue
from webhook.review import Handler, ReviewVerdict, decode

_PATH = f"metadata.labels[{names.QUEUE}]"
_OF_NAMESPACES = frozenset({names.QUEUE, names.QUEUE_LOCKED, names.MANAGED})


class _Itself:
    """An implementation of `Namespaces` that returns the metadata of the namespace under review."""

    def __init__(self, metadata: meta.ObjectMeta) -> None:
        self._metadata = metadata

    def metadata(self, name: str, *, with_queue: bool = False) -> meta.ObjectMeta:  # noqa: ARG002 # there is only one
        """Return the metadata of the namespace under review."""
        return self._metadata


def reviewer(queues: QueueTreeView) -> Handler:
    """Return the handler for namespaces, on CREATE and UPDATE."""

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        metadata = decode(request.object, core.Namespace).metadata
        usable = NamespaceQueues(queues, _Itself(metadata), metadata.name)
        return ReviewVerdict(
            warnings=[*unknown_keys({"labels": _unknown(metadata.labels)}), *_no_queue(metadata, usable)]
        )

    return review


def _unknown(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in labels.items() if key not in _OF_NAMESPACES}


def _no_queue(metadata: meta.ObjectMeta, queues: NamespaceQueues) -> list[str]:
    """Return a warning if the queue in the label cannot accept pods, so that pods of the namespace would be refused."""
    name = metadata.labels.get(names.QUEUE)
    if name is None or names.opted_out(metadata.labels):
        return []
    with suppress(APIError):  # a warning is not worth a refusal
        return [
            f"{error.path}: {error.message}; until then pods of this namespace are refused"
            for error in unusable_queue(_PATH, name, queues)
        ]
    return []
