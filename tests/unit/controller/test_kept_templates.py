"""The controller's caches keep of templates with a megabyte of short arguments no more than their text."""

from collections.abc import Callable
from typing import Any

import pytest
from short_args import TEMPLATE, fill, growth, metadata

from controller.app import Controller
from muster.kube.client import Client
from muster.kube.config import Config

JSON = dict[str, Any]


def job(number: int) -> JSON:
    """A Volcano Job."""
    return {"metadata": metadata(number), "spec": {"tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}]}}


def pod(number: int) -> JSON:
    """A pod of nobody."""
    return {"metadata": metadata(number), "spec": TEMPLATE["spec"], "status": {"phase": "Pending"}}


def indexed(number: int) -> JSON:
    """A Job of Kubernetes."""
    return {"metadata": metadata(number), "spec": {"template": TEMPLATE}}


@pytest.mark.parametrize(
    ("cache", "make"),
    [("jobs", job), ("pods", pod), ("jobs of trainjobs", indexed)],
)
def test_a_cache_keeps_the_text_of_templates(cache: str, make: Callable[[int], JSON]) -> None:
    """At most; of pods, even less."""
    client = Client(Config("http://127.0.0.1:1"))
    controller = Controller(client, 1)
    with growth() as grown:
        size = fill(controller.reflectors[cache], make)
    client.close()
    assert grown.size_bytes < 1.2 * size
