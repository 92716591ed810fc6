"""The API server's verdicts on the pods of a Job, as errors and warnings."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from webhook_world import FRAMEWORK, JSON, lookups, request

from muster.api.base import Resource
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.volcano.batch import Job
from muster.kube.errors import APIError, BadRequest, Forbidden, Invalid, Unreachable
from webhook import review
from webhook.apiserver import DryRuns
from webhook.validate.trials import MAX_TRIED
from webhook.validate.volcano_job import job as validate_job
from webhook.validate.volcano_job.job import check_templates, sample

CAUSES = [
    {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].image"},
    {"reason": "FieldValueInvalid", "message": 'Invalid value: "UP": must be lower', "field": "metadata.labels"},
]


class Verdicts:
    """`DryRuns` of a test: what is said to each pod, by the name of its task."""

    def __init__(self, **verdicts: APIError) -> None:
        self.verdicts = verdicts
        self.asked: list[JSON] = []
        self.left_s: list[float] = []

    def attempt(self, pod: Mapping[str, Any], _namespace: str) -> APIError | None:
        """See webhook.apiserver.DryRuns."""
        self.asked.append(dict(pod))
        self.left_s.append(review.time_left(100.0))
        return self.verdicts.get(pod["metadata"]["generateName"].rstrip("-"))


def a_job(*templates: JSON, **spec: Any) -> JSON:
    """A Job with tasks t0, t1, … of these templates."""
    tasks = [{"name": f"t{i}", "replicas": 1, "template": template} for i, template in enumerate(templates or [{}])]
    return {"metadata": {"name": "j"}, "spec": {"tasks": tasks, "queue": "default", **spec}}


def template(host: str) -> JSON:
    """A template that differs from others."""
    return {"spec": {"hostname": host}}


def decoded(document: JSON) -> Job:
    """The Job."""
    return msgspec.convert(document, Job)


def test_errors_get_the_path_of_their_task() -> None:
    """In the API server's words, as causes that clients show field by field."""
    dry_runs = Verdicts(t1=Invalid("Pod is invalid", details={"causes": CAUSES}))
    found = check_templates(decoded(a_job({}, template("UP"))), "n", dry_runs)
    assert [str(error) for error in found.errors] == [
        "spec.tasks[1].template.spec.containers[0].image: Required value",
        'spec.tasks[1].template.metadata.labels: Invalid value: "UP": must be lower',
    ]
    assert [error.reason for error in found.errors] == ["Required", "Invalid"]


WAITS = ["--wait-master-enabled", "--master=t0", "--worker=t1"]


@pytest.mark.parametrize(("field", "expected"), [
    ("spec.containers[0].env[5].value", "spec.tasks[1].template.spec.containers[0].env[1].value: no"),
    ("spec.containers[0].env[0].value", "spec.plugins: spec.containers[0].env[0].value of its pods: no"),
    ("spec.containers[0].image", "spec.tasks[1].template.spec.containers[0].image: no"),
    ("spec.initContainers[0].image", "spec.tasks[1].template.spec.initContainers[0].image: no"),
    ("spec.initContainers[1].image", "spec.plugins: spec.initContainers[1].image of its pods: no"),
    ("spec.volumes[1].configMap", "spec.plugins: spec.volumes[1].configMap of its pods: no"),
    ("spec.hostname", "spec.plugins: spec.hostname of its pods: no"),
    ("spec.priorityClassName", "spec.priorityClassName: no"),
    ("metadata.labels", "spec.tasks[1].template.metadata.labels: no"),
])  # fmt: skip
def test_pods_are_tried_as_plugins_shape_them(field: str, expected: str) -> None:
    """The user's own entries keep their places; what a plugin adds is told at the plugins."""
    env = [{"name": "A", "value": "$(RANK)"}, {"name": "B", "value": "b"}]
    spec = {
        "containers": [{"name": "main", "image": "i", "env": env}],
        "initContainers": [{"name": "first"}],
        "volumes": [{"name": "v"}],
    }
    causes = [{"reason": "FieldValueInvalid", "message": "no", "field": field}]
    dry_runs = Verdicts(t1=Invalid("Pod is invalid", details={"causes": causes}))
    job = a_job({"spec": {"containers": [{"name": "main"}]}}, {"spec": spec}, priorityClassName="high",
                plugins={"pytorch": WAITS, "svc": ["--inject-hosts-env=false"]})  # fmt: skip
    found = check_templates(decoded(job), "n", dry_runs)
    assert [str(error) for error in found.errors] == [expected]


def test_jobs_that_are_alike_are_tried_once() -> None:
    """Whatever their names are: plugins name objects after the Job."""
    dry_runs = Verdicts()
    for name in ("a", "b"):
        job = a_job({"spec": {"containers": [{"name": "main"}]}}, plugins={"svc": [], "ssh": []})
        check_templates(decoded({**job, "metadata": {"name": name, "uid": name}}), "n", dry_runs)
    assert dry_runs.asked[0] == dry_runs.asked[1]


@pytest.mark.parametrize(("pods", "containers"), [(2_000_000_000, 1), (1, 100_000), (1, 0)])
def test_a_job_that_is_too_large_is_tried_as_it_is(pods: int, containers: int) -> None:
    """It is refused anyway: no list of its hosts is made, and none for each of very many containers."""
    spec = {"containers": [{"name": "main"}] * containers}
    job = a_job({"spec": spec}, plugins={"svc": [], "tensorflow": []})
    job["spec"]["tasks"][0]["replicas"] = pods
    dry_runs = Verdicts()
    check_templates(decoded(job), "n", dry_runs)
    assert dry_runs.asked[0]["spec"] == spec


def test_a_refusal_has_no_name_that_is_another_one_each_time() -> None:
    """Else a TrainJob that is tried again would have news without end."""
    said = [
        [
            str(error)
            for error in check_templates(
                decoded(a_job(template("a"))), "n", Verdicts(t0=Forbidden(f'pods "t0-{made_up}" is forbidden: no'))
            ).errors
        ]
        for made_up in ("x7k2p", "9qm4z")
    ]
    assert said[0] == said[1]
    assert 'pods "t0" is forbidden: no' in said[0][0]


@pytest.mark.parametrize(("refusal", "errors", "warnings"), [
    (Forbidden('violates PodSecurity "restricted:latest"'), 1, 0),
    (BadRequest("Pod in version v1 cannot be handled as a Pod"), 1, 0),
    (Forbidden("failed quota: q: must specify limits.cpu"), 1, 0),
    (Forbidden("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"), 0, 1),
    (BadRequest('admission webhook "x" does not support dry run'), 0, 0),
])  # fmt: skip
def test_refusals_as_a_whole(refusal: APIError, errors: int, warnings: int) -> None:
    """Policies refuse; a quota that is used up now, or a webhook without dry runs, does not."""
    found = check_templates(decoded(a_job()), "n", Verdicts(t0=refusal))
    assert (len(found.errors), len(found.warnings)) == (errors, warnings)
    assert all(refusal.message in words for words in [*map(str, found.errors), *found.warnings])


@pytest.mark.parametrize(("refusal", "kept_back"), [
    (Forbidden('violates PodSecurity "restricted:latest"'), True),
    (Forbidden("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"), True),
    (Forbidden("no PriorityClass with name high was found"), False),
    (Invalid("spec.containers[0].image: Required value"), False),
])  # fmt: skip
def test_users_without_the_right_to_pods_get_no_quotes(refusal: APIError, kept_back: bool) -> None:  # noqa: FBT001 - a column of the table
    """Its policies and quotas are quoted to users who may create pods there; the refusal itself is for all."""
    told = check_templates(decoded(a_job()), "n", Verdicts(t0=refusal), lambda: False)
    [words] = [*map(str, told.errors), *told.warnings]
    assert (refusal.message not in words) == ("kubectl auth can-i create pods -n n" in words) == kept_back


def test_the_sender_is_asked_for() -> None:
    """Only where there is something to keep back."""

    class NoRights:
        asked: list[tuple[str, ResourceAttributes]] = []  # noqa: RUF012 - one object, one test

        def allows(self, user: UserInfo, action: ResourceAttributes) -> bool:
            self.asked.append((user.username, action))
            return False

    def review(refusal: APIError) -> str:
        handler = validate_job.reviewer(lookups(dry_runs=Verdicts(t0=refusal), rights=NoRights()), FRAMEWORK)
        [error] = handler(request(a_job(), user_info=UserInfo(username="anne"))).errors
        return str(error)

    assert "hostname" in review(Invalid("hostname"))
    assert not NoRights.asked
    assert "secret" not in review(Forbidden("a secret of the namespace"))
    assert NoRights.asked == [("anne", ResourceAttributes(verb="create", resource="pods", namespace="team"))]


def test_equal_templates_are_tried_once() -> None:
    """Whatever their tasks are called; each task is told what its template's refusal is."""
    dry_runs = Verdicts(t0=Invalid("no"))
    found = check_templates(decoded(a_job(*[{}] * 400)), "n", dry_runs)
    assert len(dry_runs.asked) == 1
    assert [error.path for error in found.errors] == [f"spec.tasks[{index}].template" for index in range(400)]


def test_of_many_templates_the_first_are_tried() -> None:
    """Within the time of the review, which each of the threads knows; the others are warned of."""
    dry_runs = Verdicts(t3=Invalid("no"))
    with review.deadline("timeout=3s"):
        found = check_templates(decoded(a_job(*map(template, map(str, range(400))))), "n", dry_runs)
    assert len(dry_runs.asked) == MAX_TRIED
    assert max(dry_runs.left_s) <= 2.5
    assert [error.path for error in found.errors] == ["spec.tasks[3].template"]
    [warning] = found.warnings
    assert warning.startswith(f"spec.tasks[{MAX_TRIED}].template: {400 - MAX_TRIED} pod templates were not tested")


def test_muster_without_the_permission_says_so() -> None:
    """It is not the user's fault, so the Job is not called wrong."""
    refusal = Forbidden('pods is forbidden: User "system:x" cannot create resource "pods" in API group ""')
    with pytest.raises(Forbidden):
        check_templates(decoded(a_job()), "n", Verdicts(t0=refusal))


def test_a_sample_opts_out_of_muster() -> None:
    """Labels that opt in are left out, and it is marked as none of ours."""
    labels = {"muster.dev/queue": "q", "muster.dev/framework": "torch", "a": "b"}
    metadata = {"labels": labels, "annotations": {"c": "d"}}
    job = decoded(a_job({"metadata": metadata, "spec": {"hostname": "h"}}, priorityClassName="high"))
    pod = sample(job, job.spec.tasks[0])
    assert pod["metadata"]["labels"] == {"a": "b", "muster.dev/managed": "false"}
    assert pod["metadata"]["annotations"] == {"c": "d"}
    assert pod["spec"] == {"hostname": "h", "priorityClassName": "high"}


def test_templates_are_tried_once_on_create_and_not_on_update() -> None:
    """They cannot change; other errors are told together with theirs."""
    dry_runs = Verdicts(t0=Invalid("no", details={"causes": CAUSES}))
    review = validate_job.reviewer(lookups(dry_runs=dry_runs), FRAMEWORK)
    document = a_job(queue="nowhere")
    paths = [error.path for error in review(request(document)).errors]
    assert paths == [
        "spec.queue",
        "spec.tasks[0].template.spec.containers[0].image",
        "spec.tasks[0].template.metadata.labels",
    ]
    assert len(dry_runs.asked) == 1
    assert not review(request(a_job(queue="nowhere", minAvailable=1), "UPDATE", document)).errors
    assert len(dry_runs.asked) == 1


NO_CLASS = 'pods "t0-x" is forbidden: no PriorityClass with name high was found'


@pytest.mark.parametrize(("changes", "refusal", "paths", "asked"), [
    ({"priorityClassName": "high"}, NO_CLASS, ["spec.priorityClassName"], 1),
    ({"priorityClassName": "high"}, 'violates PodSecurity "restricted:latest"', [], 1),
    ({"priorityClassName": "low", "minAvailable": 1}, NO_CLASS, [], 0),
    ({}, NO_CLASS, [], 0),
], ids=["unknown", "refused for something else", "the same", "none any more"])  # fmt: skip
def test_a_new_priority_is_tried(changes: JSON, refusal: str, paths: list[str], asked: int) -> None:
    """On UPDATE one pod shows whether the class exists; templates may have a class of their own."""
    template = {"spec": {"priorityClassName": "own"}}
    dry_runs = Verdicts(priority=Forbidden(refusal))
    review = validate_job.reviewer(lookups(dry_runs=dry_runs), FRAMEWORK)
    old, new = a_job(template, {}, priorityClassName="low"), a_job(template, {}, **changes)
    errors = review(request(new, "UPDATE", old)).errors
    assert [error.path for error in errors] == paths
    assert [pod["spec"]["priorityClassName"] for pod in dry_runs.asked] == ["high"] * asked
    assert all("no PriorityClass with name high was found" in str(error) for error in errors)


class Server:
    """As much of a Client as a dry run needs."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = [*answers]

    def create(self, _res: Resource[Any], _obj: Any, _namespace: str, *, dry_run: bool, timeout_s: float) -> None:
        """See muster.kube.client."""
        assert dry_run
        assert timeout_s < 5
        answer = self.answers.pop(0)
        if answer:
            raise answer


def test_a_good_verdict_holds_for_a_moment() -> None:
    """Jobs that are all alike cost one call; a refusal is asked for again, and no answer is an error."""
    now = [0.0]
    server = Server(None, Invalid("no"), None, Unreachable("away"))
    dry_runs = DryRuns(server, lambda: now[0])  # type: ignore[arg-type]  # the one method
    pod, other = {"spec": {}}, {"spec": {"hostname": "h"}}
    assert dry_runs.attempt(pod, "n") is None
    assert dry_runs.attempt(pod, "n") is None
    assert isinstance(dry_runs.attempt(other, "n"), Invalid)
    now[0] += 19.9
    assert dry_runs.attempt(pod, "n") is None
    assert len(server.answers) == 2
    now[0] += 0.2
    assert dry_runs.attempt(pod, "n") is None
    with pytest.raises(Unreachable):
        dry_runs.attempt(pod, "another namespace")
    assert not server.answers
