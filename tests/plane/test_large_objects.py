"""An object as large as the API server takes can be changed and deleted: the review of a change carries it twice."""

from contextlib import closing

import pytest
from jobs import job, task

from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WAIT_S = 60
BYTES, ESCAPED = 1_300_000, 20_000
"""etcd takes 1.5 MiB for an object, and `<` is stored in six bytes."""


def test_a_job_of_the_largest_size_is_changed_and_deleted(plane: Plane, namespace: str) -> None:
    """With a limit of 3 MiB for a review it could never lose its finalizers."""
    worker = task("worker", 0)
    worker["template"]["spec"]["containers"][0]["args"] = ["x" * BYTES, "<" * ESCAPED]
    with closing(plane.client()) as client:
        client.create(JOBS, job("large", namespace, worker), namespace)
        changed = client.merge_patch(JOBS, "large", {"metadata": {"labels": {"changed": "yes"}}}, namespace)
        version = changed.metadata.resource_version
        # A watch, because each answer to a question costs the API server as much as a change.
        with closing(client.watch(JOBS, namespace, resource_version=version, timeout_s=WAIT_S)) as events:
            client.delete(JOBS, "large", namespace, propagation="Background")
            assert any(kind == "DELETED" for kind, _ in events)
