"""Marker resources: only on pods that Muster places, once, and only where the webhook is told to."""

from typing import Any

import pytest
from webhook_world import (
    JSON,
    OwnerWorld,
    apply,
    container,
    indexed_job,
    job_defaults,
    lookups,
    pod_of,
    request,
    task,
    vcjob,
)

from muster.runtime import registry
from webhook.mutate.pod import mutate

FRAMEWORK = registry.framework()
QUEUED = {"muster.dev/queue": "default"}
MARKERS = {"muster.dev/binding": "1", "muster.dev/member": "1"}


def marked(pod: JSON, *jobs: JSON) -> JSON:
    """The pod as a webhook admits it that marks pods."""
    verdict = mutate(pod, "team", lookups(owners=OwnerWorld(*jobs)), FRAMEWORK, marks=True)
    assert not verdict.errors
    return apply(pod, verdict.patch)


def limits(pod: JSON) -> list[Any]:
    """The limits of each container."""
    return [(each.get("resources") or {}).get("limits") for each in pod["spec"]["containers"]]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"name": "a"}], [MARKERS]),
        ([{"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}], [None, {"cpu": "1", **MARKERS}]),
        ([{"name": "a", "resources": {}}, {"name": "b", "resources": {"limits": {}}}], [MARKERS, {}]),
        (
            [{"name": "a"}, {"name": "b", "resources": {"limits": {"muster.dev/member": 1}}}],
            [None, {"muster.dev/member": 1, "muster.dev/binding": "1"}],
        ),
        ([], []),
    ],
)
def test_where_markers_go(containers: list[JSON], expected: list[Any]) -> None:
    """To the first container that has limits, else to the first; one that is there already is not added again."""
    pod = {"metadata": {"name": "a", "labels": QUEUED}, "spec": {"containers": containers}}
    assert limits(marked(pod)) == expected


def test_a_sidecar_that_comes_later() -> None:
    """A second review, after another webhook has put a container in front, finds the markers."""
    once = marked(pod_of(indexed_job(labels=QUEUED)))
    once["spec"]["containers"].insert(0, container("proxy"))
    assert not mutate(once, "team", lookups(), FRAMEWORK, marks=True).patch


def test_pods_that_muster_does_not_place() -> None:
    """Pods of other schedulers and pods that are only shaped are not marked; nor is anything unless asked for."""
    foreign = pod_of(indexed_job(labels=QUEUED))
    foreign["spec"]["schedulerName"] = "other"
    assert limits(marked(foreign)) == [None]
    job = indexed_job()
    assert limits(marked(pod_of(job), job)) == [None]
    pod = pod_of(indexed_job(labels=QUEUED))
    assert limits(apply(pod, mutate(pod, "team", lookups(), FRAMEWORK).patch)) == [None]


def test_tasks_of_a_volcano_job() -> None:
    """Their pods do not pass the webhook, so the templates are marked, where Muster places their pods."""
    other = {"spec": {"schedulerName": "other", "containers": [{"name": "main"}]}}
    job = vcjob(task("a"), task("b", template=other))
    after = apply(job, job_defaults(marks=True)(request(job)).patch)
    assert [limits({"spec": each["template"]["spec"]}) for each in after["spec"]["tasks"]] == [[MARKERS], [None]]
    assert not job_defaults(marks=True)(request(after)).patch
    plain = apply(job, job_defaults()(request(job)).patch)
    assert limits({"spec": plain["spec"]["tasks"][0]["template"]["spec"]}) == [None]


def test_a_template_of_another_shape() -> None:
    """It is the API server's to refuse."""
    job = vcjob(task(template={"spec": {"containers": [{"name": "a", "resources": 7}]}}))
    assert job_defaults(marks=True)(request(job)).outcome == "allowed"
