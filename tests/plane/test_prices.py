"""What a Job costs in writes and reviews, held against the table in docs/architecture.md."""

import re
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import audits
import pytest
from gang_jobs import job

from muster.api import names
from muster.api.kubernetes.core import NAMESPACES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
CALLS = {"create", "update", "patch", "delete", "get"}
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `(?P<process>[\w-]+)` \| (?P<verb>\w+) `(?P<resource>[\w/]+)` \| (?P<one>\d+) \| (?P<eight>\d+) \|",
    re.MULTILINE,
)
REVIEW = re.compile(r'^muster_webhook_reviews_total\{.*route="([^"]+)".*\} (\S+)$', re.MULTILINE)
MOST_UNTIL_RUNNING = 6
Price = tuple[str, str, str]


def prices(size: int) -> dict[Price, int]:
    """Who may write what, and how often, for a Job of so many pods: the table's."""
    column = {1: "one", 8: "eight"}[size]
    return {(row["process"], row["verb"], row["resource"]): int(row[column]) for row in ROW.finditer(PAGE)}


def paid(plane: Plane, namespace: str) -> Counter[Price]:
    """What has been asked of the API server in a namespace."""
    return Counter(
        (one.use.process, one.use.verb, one.use.resource)
        for one in audits.asked(plane)
        if one.namespace == namespace and one.use.verb in CALLS
    )


def reviews(plane: Plane) -> Counter[Price]:
    """What the webhook has been asked so far, in all namespaces."""
    port = plane.state.ports["webhook-status"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        found = REVIEW.findall(answer.read().decode())
    counts: Counter[Price] = Counter()
    for route, count in found:
        counts["webhook", "review", route] += round(float(count))
    return counts


@pytest.mark.parametrize(("size", "labels"), [(1, {}), (8, {}), (8, {names.QUEUE: names.DEFAULT_QUEUE})])
def test_a_job_costs_no_more_writes_than_the_table_says(
    plane: Plane, namespace: str, wait_for: Callable[..., Any], size: int, labels: dict[str, str]
) -> None:
    """From its submission until all its pods have ended; its pods are not reviewed where those of others are."""
    client = plane.client()
    client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": labels}})
    before = reviews(plane)
    client.create(JOBS, job("price", namespace, replicas=size, gpus=0, run_s=3.0), namespace)
    wait_for(lambda: client.get(JOBS, "price", namespace).status.state.phase == "Completed", 60)
    allowed, seen = prices(size), paid(plane, namespace) + (reviews(plane) - before)
    assert seen["webhook", "review", "/validate/job"] == 1
    assert seen["extender", "create", "pods/binding"] == size
    dearer = [
        f"{' '.join(price)}: {count} times, the table says {allowed.get(price, 0)}"
        for price, count in sorted(seen.items())
        if count > allowed.get(price, 0)
    ]
    assert not dearer, "\n".join(["the Job was dearer than docs/architecture.md says:", *dearer])


def test_a_job_of_one_pod_runs_after_six_writes(plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> None:
    """They create its PodGroup and its pod, admit and bind it, and tell that; clients see Pending without a write."""
    client = plane.client()
    created = client.create(JOBS, job("few", namespace, replicas=1, gpus=0), namespace)
    assert created.status.state.phase == "Pending"
    running = wait_for(lambda: (found := client.get(JOBS, "few", namespace)).status.running and found, 60)
    assert [each.status for each in running.status.conditions] == ["Pending", "Running"]
    asked = [one for one in audits.asked(plane) if one.namespace == namespace and one.use.verb in CALLS - {"get"}]
    told_s = max(one.moment_s for one in asked if one.use.resource == "jobs/status")
    writes = Counter(
        f"{one.use.process} {one.use.verb} {one.use.resource}"
        for one in asked
        if one.moment_s <= told_s and one.use.process != "webhook"  # whose pod is a dry run
    )
    assert writes["extender create pods/binding"] == writes["controller patch jobs/status"] == 1
    assert writes.total() <= MOST_UNTIL_RUNNING, writes
    wait_for(lambda: client.list(POD_GROUPS, namespace)[0].status.phase == "Running", 60)
