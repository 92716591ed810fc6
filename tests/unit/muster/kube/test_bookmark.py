"""Bookmarks carry a version and nothing else that could be relied on."""

import asyncio
from typing import Any, TypeVar

import uvloop
from scripted_server import head_and_body, scripted_server

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS
from muster.kube.config import Config
from muster.kube.loopclient import LoopClient
from musterctl.cluster import whole

T = TypeVar("T")


def events(line: bytes, resource: Resource[T]) -> list[tuple[str, T]]:
    """What a watch makes of a stream that has come as a whole."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(line), line))

    async def read() -> list[tuple[str, T]]:
        async with scripted_server(handler) as address:
            watch = await LoopClient(Config(f"http://{address}")).watch(resource, resource_version="1")
            return [event async for event in watch]

    return uvloop.run(read())


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


def test_a_bookmark_for_who_reads_objects_as_plain_data() -> None:
    """It is plain data, too."""
    line = b'{"type":"BOOKMARK","object":{"kind":"TrainJob","metadata":{"resourceVersion":"7"},"spec":{}}}\n'
    plain: Resource[dict[str, Any]] = whole(TRAIN_JOBS)
    assert events(line, plain) == [("BOOKMARK", {"metadata": {"resourceVersion": "7"}})]
