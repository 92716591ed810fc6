"""Bookmarks carry a version and nothing else that could be relied on."""

import io

import urllib3

from muster.api.core import PODS
from muster.api.trainer import TRAIN_JOBS
from muster.kube.watch import Watch


def test_a_bookmark_of_a_pod_without_containers_is_read() -> None:
    """The API server sends an empty object, whose required lists are null."""
    line = (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"42",'
        b'"creationTimestamp":null},"spec":{"containers":null},"status":{}}}\n'
    )
    answer = urllib3.HTTPResponse(body=io.BytesIO(line), preload_content=False)
    [(kind, pod)] = list(Watch(answer, PODS))
    assert (kind, pod.metadata.resource_version) == ("BOOKMARK", "42")


def test_a_bookmark_of_a_kind_that_must_have_a_spec() -> None:
    """A TrainJob is nothing without a spec, and a bookmark has none."""
    line = b'{"type":"BOOKMARK","object":{"kind":"TrainJob","metadata":{"resourceVersion":"7"},"spec":{}}}\n'
    answer = urllib3.HTTPResponse(body=io.BytesIO(line), preload_content=False)
    [(kind, found)] = list(Watch(answer, TRAIN_JOBS))
    assert (kind, found.metadata.resource_version) == ("BOOKMARK", "7")
