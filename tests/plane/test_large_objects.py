"""An object as large as the API server takes can be changed and deleted: the review of a change carries it twice."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from jobs import job, task

from muster.api.volcano.batch import JOBS
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
BYTES, ESCAPED = 1_300_000, 20_000
"""etcd takes 1.5 MiB for an object, and `<` is stored in six bytes."""


def test_a_job_of_the_largest_size_is_changed_and_deleted(
    plane: Plane, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """With a limit of 3 MiB for a review it could never lose its finalizers."""
    worker = task("worker", 0)
    worker["template"]["spec"]["containers"][0]["args"] = ["x" * BYTES, "<" * ESCAPED]
    with closing(plane.client()) as client:
        client.create(JOBS, job("large", namespace, worker), namespace)
        client.merge_patch(JOBS, "large", {"metadata": {"labels": {"changed": "yes"}}}, namespace)
        client.delete(JOBS, "large", namespace, propagation="Background")

        def gone() -> bool:
            try:
                client.get(JOBS, "large", namespace)
            except NotFound:
                return True
            return False

        wait_for(gone, 60, "the Job to be gone")
