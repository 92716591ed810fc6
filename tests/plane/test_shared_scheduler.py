"""A cluster's own scheduler may serve Muster's pods too: it asks Muster about marked pods only."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import metric

from muster.api.kubernetes.core import INDEXED_JOBS, PODS
from muster.api.names import MARKERS
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane
from musterctl.plane.state import COMPONENTS, MUSTER_SCHEDULER

pytestmark = [pytest.mark.plane, pytest.mark.long]

JSON = dict[str, Any]


def template(**more: Any) -> JSON:
    """A pod template that fills a node."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}, **more}


def test_gangs_are_bound_together_and_ordinary_pods_are_not_asked_about(
    fresh_plane: Callable[..., Plane], wait_for: Callable[..., Any]
) -> None:
    """The webhook marks the pods that Muster places, of an Indexed Job with a label and of a Volcano Job."""
    plane = fresh_plane(set(COMPONENTS) - {MUSTER_SCHEDULER}, shared=True)
    client = plane.client()

    def bound() -> dict[str, str]:
        return {pod.metadata.name: pod.spec.node_name for pod in client.list(PODS, "default") if pod.spec.node_name}

    ordinary = {"metadata": {"name": "ordinary"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    client.create(PODS, ordinary, "default")
    wait_for(bound, 60, "the ordinary pod to be bound")
    spec = {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": template()}
    labels = {"muster.dev/queue": "default"}
    annotations = {"muster.dev/min-member": "4"}
    client.create(
        INDEXED_JOBS,
        {"metadata": {"name": "train", "labels": labels, "annotations": annotations}, "spec": spec},
        "default",
    )
    task = {"name": "worker", "replicas": 4, "template": template()}
    client.create(JOBS, {"metadata": {"name": "volcano"}, "spec": {"tasks": [task], "plugins": {"svc": []}}}, "default")
    wait_for(lambda: len(bound()) == 9, 60, "both gangs to be bound")
    nodes = [node for name, node in bound().items() if name != "ordinary"]
    assert len(set(nodes)) == 8
    for pod in client.list(PODS, "default"):
        wanted = {} if pod.metadata.name == "ordinary" else dict.fromkeys(MARKERS, "1")
        requests = pod.spec.containers[0].resources.requests
        assert {name: amount for name, amount in requests.items() if name in MARKERS} == wanted
    assert metric(plane, "extender", 'muster_filter_total{pod="pinned",reason="",verdict="passed"}') == 8
    assert metric(plane, "extender", 'muster_filter_names_total{pod="plain"}') == 0
