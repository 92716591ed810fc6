"""Numbers over their limit are refused by name, all at once, and cost nothing."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from webhook_world import QueueWorld, lookups, request

from controller.job.rules.sync import over_limits
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import DIGITS, LIMITS, PODS, TASKS, whole_number
from muster.api.volcano.batch import Job
from muster.runtime.workload import template_of
from muster.workloads.kind import PodContext
from muster.workloads.pod import BarePodAdapter
from webhook.review import MOST_WARNINGS
from webhook.validate import podgroup
from webhook.validate import queue as queues
from webhook.validate.volcano_job.job import check_job, warn

PAGE = (Path(__file__).parents[3] / "docs/admission.md").read_text(encoding="utf-8")
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "i"}]}}


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    began = time.thread_time()  # other threads of the process may be at work
    yield
    assert time.thread_time() - began < 1.0


def job(**spec: Any) -> Job:
    """A Job with one task, and with this spec."""
    whole = {"tasks": [{"name": "w", "replicas": 1, "template": TEMPLATE}], "minAvailable": 1} | spec
    return convert({"metadata": {"name": "j"}, "spec": whole}, Job)


def refused(of: Job) -> dict[str, str]:
    """Field path → message."""
    return {error.path: error.message for error in check_job(of)}


def test_everything_over_its_limit_is_told_at_once() -> None:
    """With the path, the value, what is allowed and which limit it is."""
    names = {f"example.com/r{number}": "1" for number in range(65)}
    template = {"spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": names}}]}}
    task = {"name": "w", "replicas": 2_000_000_000, "template": template, "maxRetry": 10**9}
    errors = refused(job(tasks=[task], maxRetry=2 * 10**6, ttlSecondsAfterFinished=10**9))
    assert errors == {
        "spec.tasks[0].replicas": "must be at most 20000 (pods; limit 'pods per gang')",
        "spec.maxRetry": "must be at most 1000000 (restarts; limit 'retries')",
        "spec.ttlSecondsAfterFinished": "must be at most 315360000 (seconds; limit 'seconds')",
        "spec.tasks[0].maxRetry": "must be at most 1000000 (restarts; limit 'retries')",
        "spec.tasks[0].template.spec.containers": (
            "must have at most 64 resource names (limit 'resource names per pod')"
        ),
    }


def test_a_template_that_planning_would_have_to_remember_is_bounded() -> None:
    """Arguments do not count: they are not remembered."""
    container = {"name": "main", "image": "i", "args": [str(number) for number in range(20_000)]}
    assert refused(job(tasks=[{"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}}])) == {}
    labels = {f"example.com/label-{number}": "x" * 60 for number in range(1000)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    [(path, message)] = refused(job(tasks=[{"name": "w", "replicas": 1, "template": template}])).items()
    assert path == "spec.tasks[0].template"
    assert message == "must be at most 65536 (bytes; limit 'bytes of a template for planning')"


@pytest.mark.parametrize(("tasks", "told"), [(1_000, []), (3_000, ["spec"])])
def test_a_pod_group_is_at_most_as_long_as_is_read(tasks: int, told: list[str]) -> None:
    """Else it would be admitted, and left out by all who plan it."""
    minimums = {f"worker-with-a-longer-name-{number:04}": 1 for number in range(tasks)}
    group = {"metadata": {"name": "g"}, "spec": {"queue": "free", "minTaskMember": minimums}}
    errors = podgroup.reviewer(lookups(QueueWorld(free=("root", "Open"))))(request(group)).errors
    assert [error.path for error in errors if 'limit "bytes of a PodGroup\'s spec"' in error.message] == told
    assert len(errors) == len(told)


def of(*replicas: int) -> Job:
    """A Job whose tasks have so many pods."""
    return job(tasks=[{"name": f"t{n}", "replicas": each, "template": TEMPLATE} for n, each in enumerate(replicas)])


@pytest.mark.parametrize(("replicas", "told"), [
    ([1, 20_001], {"spec.tasks[1].replicas": "must be at most 20000 (pods; limit 'pods per gang')"}),
    ([10_001] * 2, {"spec.tasks": "must have at most 20000 pods (limit 'pods per gang')"}),
    ([1] * (TASKS.value + 1), {"spec.tasks": f"must have at most {TASKS.value} tasks (limit 'tasks per Job')"}),
    ([PODS.value], {}),
], ids=["one task", "all together", "too many tasks", "at the limit"])  # fmt: skip
def test_pods_of_tasks(replicas: list[int], told: dict[str, str]) -> None:
    """A task that is over the limit alone is told instead of the sum."""
    assert refused(of(*replicas)) == told


def test_the_controller_makes_nothing_for_a_job_over_the_limits() -> None:
    """Admission was bypassed."""
    assert over_limits(of(PODS.value)) is None
    failure = over_limits(of(10**9))
    assert failure is not None
    assert not failure.transient
    assert "asks for 1000000000; at most 20000 pods are allowed" in failure.message


@pytest.mark.parametrize("size", ["20001", "100000000", "9" * 18, "9" * 5000])
def test_a_bare_pod_of_too_large_a_world_is_refused(size: str) -> None:
    """Its hosts are not listed to find that out."""
    annotations = {"muster.dev/size": size, "muster.dev/rank": "1", "muster.dev/leader": "a.b"}
    spec, _, _ = template_of(TEMPLATE)
    errors = BarePodAdapter(PodContext(ObjectMeta(name="p", annotations=annotations), spec)).errors()
    assert [error.path for error in errors] == ["metadata.annotations[muster.dev/size]"]


@pytest.mark.parametrize("text", [None, "", "-1", "+1", "1.5", "²", "٣", "x", "1" * (DIGITS.value + 1), "1" * 5000])
def test_what_is_no_whole_number_is_none(text: str | None) -> None:
    """Python would raise an exception of its own for more than 4,300 digits."""
    assert whole_number(text) is None


def test_each_limit_has_a_row_in_the_documentation() -> None:
    """Messages name limits, and docs/admission.md describes them: name, value, and four cells of text."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if "<!--fact limit-" in line]
    slugs = [f"<!--fact limit-{limit.name.replace(' ', '-')}-->" for limit in LIMITS]
    assert [row[0] for row in rows] == [limit.name for limit in LIMITS]
    assert all(row[1].startswith(slug) for row, slug in zip(rows, slugs, strict=True))
    assert all(len(row) == 6 and all(row) for row in rows)


NAMES = {f"muster-{number:05}{'x' * 300}": 1 for number in range(20_000)}


def test_warnings_beyond_those_that_are_shown_cost_nothing() -> None:
    """Of unknown resources and of unknown keys, whose long names are cut."""
    queue = {"metadata": {"name": "q"}, "spec": {"deserved": NAMES}}
    keys = {"labels": {f"muster.dev/{name}": "" for name in NAMES}}
    task = {"name": "w", "replicas": 1, "template": {"metadata": keys, **TEMPLATE}}
    told = [*queues.reviewer(QueueWorld())(request(queue)).warnings], warn(job(tasks=[task] * 50))
    assert [len(each) for each in told] == [MOST_WARNINGS, MOST_WARNINGS]
    assert max(len(warning) for each in told for warning in each) < 400
