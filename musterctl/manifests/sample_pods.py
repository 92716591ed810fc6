"""The first pods of a workload, as its controller submits them: they are what Muster shapes.

Each kind of workload makes its own, see muster.workloads.
"""

from collections.abc import Iterator

from muster.workloads.sample import JSON, SamplePod
from muster.workloads.table import kind_of


def sample_pods(workload: JSON) -> Iterator[SamplePod]:
    """The first pod of each shape; none for kinds without pods. PluginError if a plugin of a Job cannot be had."""
    kind = kind_of(str(workload.get("apiVersion", "")), str(workload.get("kind", "")))
    return kind.samples(workload) if kind and kind.samples else iter(())
