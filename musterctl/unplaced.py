"""Workloads that Muster does not place: they have no gang to explain, so their labels are looked at instead.

The dump that `muster explain` works on has no such workloads, as the planner never reads them.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from muster.api import names
from muster.api.kubernetes.core import NAMESPACES
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from muster.workloads.kind import WorkloadKind, pod_templates
from muster.workloads.table import KINDS
from musterctl.cluster import whole
from webhook.objects.names import meant_labels


def why_unplaced(client: Client, name: str, namespace: str) -> str:
    """Return sentences about the workloads of this name in the namespace; empty if there are none, or all have a queue.

    Kinds that the user may not read, or that the cluster does not have, are left out.
    """
    found: list[str] = []
    of_namespace: Mapping[str, str] = {}
    with suppress(NotFound, Forbidden):
        of_namespace = client.get(NAMESPACES, namespace).metadata.labels
    for kind in (kind for kind in KINDS if kind.labelled):
        with suppress(NotFound, Forbidden):
            workload = client.get(whole(kind.resource), name, namespace)
            found += dict.fromkeys(_sentences(kind, workload, of_namespace))
    return "\n".join(found)


def slips(what: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each label that looks like one of Muster's."""
    for key, meant in meant_labels(labels):
        yield f"{what} has the label {key}; did you mean {meant}?"


def _sentences(kind: WorkloadKind, workload: Mapping[str, Any], of_namespace: Mapping[str, str]) -> Iterator[str]:
    name = f"{kind.resource.kind} {workload['metadata']['name']}"
    nodes = [workload, *(template for _, template in pod_templates(workload, kind.templates))]
    labels = [(each.get("metadata") or {}).get("labels") or {} for each in nodes]
    for given in labels:
        yield from slips(name, given)
    if not any(names.QUEUE in given for given in (*labels, of_namespace)):
        yield f"{name} has no label {names.QUEUE}, so Muster does not place its pods"
    elif any(given.get(names.MANAGED) == "false" for given in labels):
        yield f'{name} has the label {names.MANAGED}: "false", so Muster leaves its pods alone'
