"""The headless Service under which the pods of a workload meet, where neither its user nor its controller makes one."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from muster.api.base import Resource
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference


def headless_service(resource: Resource[Any], meta: ObjectMeta, selector: Mapping[str, str]) -> dict[str, Any]:
    """The Service of a workload of this kind, named as it and gone with it; `selector` finds its pods.

    Pods are found before they are ready: they wait for each other before they are.
    """
    owner = OwnerReference(
        api_version=resource.api_version, kind=resource.kind, name=meta.name, uid=meta.uid, controller=True
    )
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "ownerReferences": [to_builtins(owner)]},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)},
    }
