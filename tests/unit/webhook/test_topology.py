"""Topology in annotations: refused where users write it, at its path."""

from typing import Any

import msgspec
from webhook_world import task, vcjob

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job
from webhook.validate.pod import check_annotations
from webhook.validate.volcano_job.tasks import check_pods_of_tasks

KQ = "kueue.x-k8s.io/podset"


def job_of(*annotations: dict[str, str]) -> Job:
    """A Job with a task of two pods for each of these."""
    document: dict[str, Any] = vcjob(*[task(f"t{number}", 2) for number in range(len(annotations))])
    for one, said in zip(document["spec"]["tasks"], annotations, strict=True):
        one["template"]["metadata"] = {"annotations": said}
    return msgspec.convert(document, Job)


def test_each_mistake_has_the_path_of_its_template() -> None:
    """And the Job's own annotations are looked at, too."""
    job = job_of({}, {f"{KQ}-slice-required-topology": "rack", f"{KQ}-slice-size": "3"})
    job.metadata = ObjectMeta(name="a", annotations={"muster.dev/topology-required": "a b"})
    assert [error.path for error in check_pods_of_tasks(job)] == [
        "metadata.annotations[muster.dev/topology-required]",
        f"spec.tasks[1].template.metadata.annotations[{KQ}-slice-size]",
    ]


def test_a_group_is_a_leader_and_its_workers() -> None:
    """Two templates, one of them of one pod."""
    said = {f"{KQ}-group-name": "g", f"{KQ}-required-topology": "rack"}
    assert not list(check_annotations({}, [(said, "a", 1), (said, "b", 7)]))
    (alone,) = check_annotations({}, [(said, "a", 1)])
    assert alone.path == f"a[{KQ}-group-name]"
    (many,) = check_annotations({}, [(said, "a", 2), (said, "b", 7)])
    assert "one of them of one pod" in many.message
