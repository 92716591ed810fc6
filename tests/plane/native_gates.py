"""The feature gates of Kubernetes' own gangs, for planes."""

import os
from collections.abc import Mapping, Sequence

from muster.api.kubernetes.scheduling import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS, WORKLOADS
from musterctl.plane.state import API_SERVER, CONTROLLER_MANAGER, SCHEDULER

GATES = "--feature-gates=" + ",".join(f"{gate}=true" for gate in (
    "GenericWorkload", "WorkloadWithJob", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims",
    "CompositePodGroup",
))  # fmt: skip
SERVED = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
ARGUMENTS: dict[str, tuple[str, ...]] = {API_SERVER: (GATES, SERVED), CONTROLLER_MANAGER: (GATES,), SCHEDULER: (GATES,)}
"""With all gates of the cluster's own parts on; Muster's kube-scheduler is as it is without."""
NATIVE_KINDS = (NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS, WORKLOADS)
"""Kinds that API servers serve with the gates only."""
EVERYWHERE = "MUSTER_NATIVE_GANGS" in os.environ
"""Whether all planes of this run have the gates."""


def with_gates(arguments: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Arguments of a plane's parts, with the gates if all planes of this run have them."""
    more = ARGUMENTS if EVERYWHERE and not any(GATES in each for each in arguments.values()) else {}
    return {part: [*arguments.get(part, ()), *more.get(part, ())] for part in {*arguments, *more}}
