"""A kind that is somebody else's: nothing is asked for while it is not installed, and all is told while it is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from muster.api.base import Resource
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.api.volcano.topology import TOPOLOGIES, Topology
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, NotFound, TooManyRequests
from muster.kube.optional import OptionalReflector

pytestmark = [pytest.mark.plane, pytest.mark.api]
WaitFor = Callable[..., Any]
NAME = f"{TOPOLOGIES.plural}.{TOPOLOGIES.group}"


def definition(*versions: str) -> dict[str, Any]:
    """Kueue's CRD, as far as it matters; the last version is stored."""
    level = {"type": "object", "properties": {"nodeLabel": {"type": "string"}}}
    spec = {"type": "object", "properties": {"levels": {"type": "array", "items": level}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {
            "name": NAME,
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue"},
        },
        "spec": {
            "group": TOPOLOGIES.group,
            "names": {"kind": TOPOLOGIES.kind, "plural": TOPOLOGIES.plural},
            "scope": "Cluster",
            "versions": [
                {"name": each, "served": True, "storage": each == versions[-1], "schema": schema} for each in versions
            ],
        },
    }


class Told:
    """What the handler knows, checked with each change."""

    def __init__(self) -> None:
        self.levels: dict[str, tuple[str, ...]] = {}

    def __call__(self, old: Topology | None, new: Topology | None) -> None:
        """Takes in a change."""
        name = (new or old or Topology()).metadata.name
        assert (old is not None) == (name in self.levels)
        self.levels.pop(name, None)
        if new is not None:
            self.levels[name] = new.levels


def test_a_kind_that_comes_and_goes(client: Client, wait_for: WaitFor) -> None:
    """Installed later, in an older version, in a newer one, and removed: the objects are those that there are."""
    told = Told()
    watched = OptionalReflector(client, TOPOLOGIES, told, longest_delay_s=0.5)
    watched.start()
    wait_for(lambda: watched.synced)
    assert told.levels == {}
    try:
        old: Resource[Topology] = replace(TOPOLOGIES, version="v1beta1")
        client.apply(DEFINITIONS, definition("v1beta1"))
        wait_for(lambda: client.get(DEFINITIONS, NAME).established)
        rack = {"metadata": {"name": "a"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}
        wait_for(lambda: _created(client, old, rack))
        wait_for(lambda: told.levels == {"a": ("rack",)})
        client.apply(DEFINITIONS, definition("v1beta1", "v1beta2"))
        wait_for(lambda: _created(client, TOPOLOGIES, {"metadata": {"name": "b"}, "spec": {"levels": []}}))
        wait_for(lambda: told.levels == {"a": ("rack",), "b": ()})
        client.delete(TOPOLOGIES, "a")
        wait_for(lambda: told.levels == {"b": ()})
        client.delete(DEFINITIONS, NAME)
        wait_for(lambda: told.levels == {})
        assert watched.synced
    finally:
        watched.stop()


def _created(client: Client, resource: Resource[Topology], content: dict[str, Any]) -> bool:
    """Whether it is there; a kind that is new to the API server takes a moment."""
    try:
        client.create(resource, content)
    except (NotFound, TooManyRequests):
        return False
    except AlreadyExists:
        return True
    return True
