"""A Volcano Job records the resource groups of its templates once, and its tasks stay as they were sent."""

import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from webhook_world import JSON, apply, job_defaults, request, task, vcjob

from muster.api.limits import NODE_CONDITIONS, TOLERATIONS
from muster.api.volcano.batch import Job
from webhook.config import ResourceGroup, parse
from webhook.validate.volcano_job.job import check_update

NOTE = "muster.dev/grouped-templates"
GROUPS = parse(
    """
resourceGroups:
- resourceGroup: gpu
  schedulerName: other
  labels: {pool: gpu, zone: a}
  tolerations: [{key: pool, value: gpu}]
- resourceGroup: team
  object: {key: namespace, value: [team]}
  labels: {pool: team}
"""
)
LATER = parse("resourceGroups: [{resourceGroup: gpu, labels: {zone: c, disk: ssd}, schedulerName: muster}]")
GPU = {
    "metadata": {"annotations": {"volcano.sh/resource-group": "gpu"}},
    "spec": {"containers": [{"name": "main"}], "nodeSelector": {"zone": "b", "own": "1"},
        "tolerations": [{"key": "x"}]},
}  # fmt: skip
MANIFEST = vcjob(task("a", template=GPU), {"replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}})


def created(manifest: JSON, groups: Sequence[ResourceGroup] = GROUPS, *, marks: bool = False) -> JSON:
    """The Job as it is admitted; a second review changes nothing."""
    review = job_defaults(groups=groups, marks=marks)
    after = apply(manifest, review(request(manifest)).patch)
    assert not review(request(after)).patch
    assert after["spec"]["tasks"] == manifest["spec"]["tasks"]
    return after


def updated(new: JSON, old: JSON, groups: Sequence[ResourceGroup] = GROUPS, **options: Any) -> JSON:
    """The Job as an update of the old one is admitted."""
    return apply(new, job_defaults(groups=groups, **options)(request(new, "UPDATE", old)).patch)


def specs(job: JSON) -> list[JSON]:
    """The pod specs of its tasks, as readers of the Job get them."""
    return [each.template["spec"] for each in msgspec.convert(job, Job).spec.tasks]


def test_each_template_gets_its_group() -> None:
    """By its own annotations, or the namespace."""
    first, second = specs(created(MANIFEST))
    assert first["nodeSelector"] == {"zone": "a", "own": "1", "pool": "gpu"}
    assert first["tolerations"] == [{"key": "x"}, {"key": "pool", "value": "gpu"}]
    assert first["schedulerName"] == "other"
    assert second == {"containers": [{"name": "main"}], "nodeSelector": {"pool": "team"}}


def test_templates_that_are_left_alone() -> None:
    """One that wants it, and those of no group; then nothing is noted, either."""
    template = {"metadata": {"labels": {"muster.dev/managed": "false"}}, "spec": {"containers": []}}
    assert created(vcjob(task(template=template)))["spec"]["tasks"][0]["template"] == template
    assert NOTE not in created(vcjob(task()), ())["metadata"].get("annotations", {})


def test_markers_follow_the_groups_scheduler() -> None:
    """A template whose group has a foreign scheduler needs none."""
    first, second = specs(created(MANIFEST, marks=True))
    assert "resources" not in first["containers"][0]
    assert "resources" in second["containers"][0]


@pytest.mark.parametrize("groups", [GROUPS, LATER, ()], ids=["the same", "others", "none"])
@pytest.mark.parametrize("marks", [False, True])
def test_a_manifest_can_be_applied_again(groups: Sequence[ResourceGroup], *, marks: bool) -> None:
    """Whatever is configured by then, the Job keeps what it was created with; also if its annotations are replaced."""
    old = created(MANIFEST, marks=marks)
    assert updated(MANIFEST, old, groups, marks=marks) == old
    more = copy.deepcopy(MANIFEST)
    more["spec"]["tasks"][0] |= {"replicas": 5}
    after = updated(more, old, groups, marks=marks)
    assert specs(after) == specs(old)
    assert after["spec"]["tasks"][0]["replicas"] == 5
    assert specs(updated(MANIFEST, after, groups, marks=marks)) == specs(old)


@pytest.mark.parametrize("then", [True, False], ids=["marked", "not marked"])
@pytest.mark.parametrize("now", [True, False], ids=["marks", "no marks"])
@pytest.mark.parametrize("groups", [GROUPS, ()], ids=["a group", "none"])
def test_what_was_configured_later(groups: Sequence[ResourceGroup], *, then: bool, now: bool) -> None:
    """A Job that was created before there were groups, or with markers or without, can be applied again."""
    manifest = copy.deepcopy(MANIFEST)
    manifest["spec"]["tasks"][1]["template"]["spec"]["hostNetwork"] = True
    old = created(manifest, (), marks=then)
    assert updated(manifest, old, groups, marks=now) == old


def test_a_job_without_a_note_gets_no_group() -> None:
    """It was created before that was configured, so nothing but what is really changed is refused."""
    old = created(MANIFEST, ())
    new = copy.deepcopy(MANIFEST)
    new["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "other"
    [error] = check_update(old, updated(new, old))
    assert error.path == "spec.tasks[0].template.spec.containers[0].image"


def test_the_note_stays_when_only_it_is_lost() -> None:
    """A client that writes the spec back without the annotation does not make the next `kubectl apply` fail."""
    old = created(MANIFEST)
    new = copy.deepcopy(old)
    del new["metadata"]["annotations"]
    assert updated(new, old, LATER) == old


@pytest.mark.parametrize("groups", [LATER, ()])
def test_an_update_of_something_else_is_not_touched(groups: Sequence[ResourceGroup]) -> None:
    """The templates of a Job that exists do not follow the configuration."""
    old = created(MANIFEST)
    new = copy.deepcopy(old)
    new["spec"]["tasks"][0]["replicas"] = 7
    assert specs(updated(new, old, groups)) == specs(new)
    plain = vcjob(task("a", template=GPU), maxRetry=1)
    assert specs(updated({**plain, "status": {}}, plain, groups)) == specs(plain)


def test_a_template_that_did_change_is_refused_for_that_alone() -> None:
    """Additions of its group are not among the differences, removals by the user are."""
    old = created(MANIFEST)
    new = copy.deepcopy(MANIFEST)
    new["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "other"
    del new["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"]["own"]
    paths = [error.path for error in check_update(old, updated(new, old))]
    prefix = "spec.tasks[0].template.spec"
    assert paths == [f"{prefix}.containers[0].image", f"{prefix}.nodeSelector[own]"]


@pytest.mark.parametrize("note", ["{", "[]", '{"a": "0123"}', '[{"tasks": ["a"], "schedulerName": "mine"}]', ""])
def test_the_note_is_not_the_users(note: str) -> None:
    """A new Job gets its own, and an update keeps that; text that is none has no effect."""
    own = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "annotations": {NOTE: note}}}
    old = created(MANIFEST)
    for after in (created(own), updated(own, old)):
        assert after["metadata"]["annotations"] == old["metadata"]["annotations"]
    for after in (created(own, ()), updated(own, MANIFEST)):
        assert specs(after) == specs(MANIFEST)


def test_a_long_note_costs_little() -> None:
    """Where nothing was admitted, a user may write any; a pod with one entry too many exceeds the limits as well."""
    tolerations, selector = [{"key": str(key)} for key in range(8000)], {str(key): "a" for key in range(4000)}
    names = [f"t{number}" for number in range(100)]
    note = [{"tasks": [*names, "x"], "tolerations": tolerations, "nodeSelector": selector}]
    job = vcjob(*(task(name) for name in names))
    job["metadata"] = {**job["metadata"], "annotations": {NOTE: msgspec.json.encode(note).decode()}}
    for spec in specs(job):
        assert len(spec["tolerations"]) == TOLERATIONS.value + 1
        assert len(spec["nodeSelector"]) == NODE_CONDITIONS.value + 1


def test_a_job_is_read_the_same_again() -> None:
    """Caches store Jobs as text; reading changes nothing in the document."""
    document = created(MANIFEST, marks=True)
    before = copy.deepcopy(document)
    job = msgspec.convert(document, Job)
    assert document == before
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_tasks_of_the_same_settings_share_an_entry() -> None:
    """The annotation of a Job with many tasks stays small."""
    note = created(vcjob(*(task(f"t{number}", template=GPU) for number in range(100))))["metadata"]["annotations"][NOTE]
    [entry] = msgspec.json.decode(note)
    assert len(entry.pop("tasks")) == 100
    toleration = {"key": "pool", "value": "gpu"}
    assert entry == {
        "nodeSelector": {"pool": "gpu", "zone": "a"},
        "tolerations": [toleration],
        "schedulerName": "other",
    }


@pytest.mark.parametrize("template", [
    {"spec": {"containers": [], "nodeSelector": "x"}},
    {"spec": {"containers": [], "tolerations": [None]}},
    {"spec": {"containers": []}, "metadata": {"annotations": []}},
    {"metadata": {"labels": 7}},
    {"metadata": True, "spec": True},
])  # fmt: skip
def test_a_template_of_another_shape(template: JSON) -> None:
    """It is the API server's to refuse."""
    job = vcjob(task(template=template))
    assert job_defaults(groups=GROUPS)(request(job)).outcome == "allowed"
    assert not job_defaults(groups=GROUPS)(request(job, "UPDATE", created(MANIFEST))).errors


def test_nulls_in_a_template() -> None:
    """They count as missing."""
    null = {"containers": [{"name": "main"}], "nodeSelector": None, "tolerations": None, "affinity": None}
    [spec] = specs(created(vcjob(task(template={"metadata": None, "spec": null}))))
    assert spec["nodeSelector"] == {"pool": "team"}
