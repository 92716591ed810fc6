"""Writes the status of a gang into its PodGroup: Volcano's, or a native one, whose status is a subresource.

A native PodGroup has nothing but conditions for it (`muster.api.muster.native`). They are a list, and a merge patch
replaces it whole, so the patch names the version of the object that it was made of.
"""

from typing import Any

import msgspec

from extender.cluster import Live
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.native import conditions_of, is_native
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus
from muster.kube.client import Client
from muster.kube.errors import Conflict


def write_status(
    client: Client, cluster: Live, group: PodGroup, status: PodGroupStatus, body: dict[str, Any], now: float
) -> None:
    """Write a gang's new status, and tell the state; `body` is the merge patch for Volcano's PodGroup, `now` seconds.

    Raises Conflict if the object has changed, as far as the patch names its version; of a native one it always does.
    """
    meta = group.metadata
    if not is_native(group):
        written = client.merge_patch(POD_GROUPS, meta.name, body, meta.namespace)
        cluster.change(lambda state: state.on_pod_group_written(written))
        return
    native = cluster.ask(lambda state: state.native.groups.get(meta.key))
    seen = native and (native.metadata.uid, native.metadata.resource_version)
    if native is None or seen != (meta.uid, meta.resource_version):
        raise Conflict("it has changed since the decision", where=f"native PodGroup {meta.key}")
    pool, queue = cluster.ask(lambda state: state.pool), group.spec.queue
    conditions = msgspec.to_builtins(conditions_of(status, native.status.conditions, now, pool=pool, queue=queue))
    patch = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": conditions},
    }
    told = client.merge_patch(NATIVE_POD_GROUPS, native.metadata.name, patch, meta.namespace, subresource="status")
    cluster.change(lambda state: state.on_native_written(told))
