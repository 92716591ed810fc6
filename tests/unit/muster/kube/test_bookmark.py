"""Bookmarks carry a version and nothing else that could be relied on."""

import asyncio
from typing import TypeVar, cast

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS
from muster.kube.answer import Answer, Headers
from muster.kube.watch import Watch

T = TypeVar("T")


class Over:
    """A connection that has ended."""

    def is_closing(self) -> bool:
        """It has."""
        return True


def events(line: bytes, resource: Resource[T]) -> list[tuple[str, T]]:
    """What a watch makes of a stream that has come as a whole."""
    answer = Answer(cast("asyncio.Transport", Over()), 200, Headers())
    answer.feed(line)
    answer.end()

    async def read() -> list[tuple[str, T]]:
        return [event async for event in Watch(answer, resource)]

    return asyncio.run(read())


def test_a_bookmark_of_a_pod_without_containers_is_read() -> None:
    """The API server sends an empty object, whose required lists are null."""
    line = (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"42",'
        b'"creationTimestamp":null},"spec":{"containers":null},"status":{}}}\n'
    )
    [(kind, pod)] = events(line, PODS)
    assert (kind, pod.metadata.resource_version) == ("BOOKMARK", "42")


def test_a_bookmark_of_a_kind_that_must_have_a_spec() -> None:
    """A TrainJob is nothing without a spec, and a bookmark has none."""
    line = b'{"type":"BOOKMARK","object":{"kind":"TrainJob","metadata":{"resourceVersion":"7"},"spec":{}}}\n'
    [(kind, found)] = events(line, TRAIN_JOBS)
    assert (kind, found.metadata.resource_version) == ("BOOKMARK", "7")
