"""What a JobSet would fill in or do is done where a TrainJob becomes Jobs: restarts, suspension, initializers."""

from collections.abc import Iterator
from typing import Any

import pytest
from frameworks_world import compiled, component, errors_of, replicated_job, runtime, train_job

from muster.runtime.train_job import Target

JSON = dict[str, Any]
DATASET = "dataset-initializer"
MOUNTS = [{"name": "initializer", "mountPath": "/workspace"}]


def stepped(pods: JSON, **container: Any) -> Any:
    """A runtime that fetches data before it trains; `pods` are fields of each pod."""
    fetch = {"containers": [{"name": DATASET, "image": "i", **container}], **pods}
    train = {"containers": [{"name": "node", "image": "i"}], **pods}
    waits = [{"name": DATASET, "status": "Complete"}]
    before = replicated_job(DATASET, DATASET, fetch)
    before["template"]["spec"]["backoffLimit"] = 3
    return runtime({"torch": {}}, before, replicated_job("node", "trainer", train, dependsOn=waits))


def restarts(on: Any) -> Iterator[tuple[str, str]]:
    """API version and restart policy of the pods of each Job that a TrainJob becomes."""
    for each in compiled(train_job(), on, "Job").components:
        spec = each.manifest.get("spec") or {}
        for holder in (*spec.get("tasks", []), *([spec] if "completions" in spec else [])):
            yield each.manifest["apiVersion"], holder["template"]["spec"]["restartPolicy"]


@pytest.mark.parametrize(
    ("given", "initializer", "trainer"),
    [({}, "OnFailure", "Never"), ({"restartPolicy": "OnFailure"}, "OnFailure", "OnFailure")],
)
def test_pods_do_not_restart_for_ever(given: JSON, initializer: str, trainer: str) -> None:
    """The API server refuses Always in a Job; where nothing counts restarts, the policies see each failure."""
    assert list(restarts(stepped(given))) == [("batch/v1", initializer), ("batch.volcano.sh/v1alpha1", trainer)]


@pytest.mark.parametrize(("own", "of_the_runtime", "flags"), [
    ({}, {}, []),
    ({"muster.dev/network-policy": "true"}, {"muster.dev/network-policy": "false"}, []),
    ({}, {"muster.dev/network-policy": "false"}, ["--disable-network-policy"]),
    ({"muster.dev/network-policy": "false"}, {}, ["--disable-network-policy"]),
])  # fmt: skip
def test_the_network_policy_is_switched_by_annotation(own: JSON, of_the_runtime: JSON, flags: list[str]) -> None:
    """Of the TrainJob, else of its runtime."""
    on = runtime({"torch": {}})
    on.metadata.annotations |= of_the_runtime
    job = component(compiled(train_job({"annotations": own}), on, "Job"), "Job")
    assert job["spec"]["plugins"] == {"svc": ["--publish-not-ready-addresses", *flags]}
    [error] = errors_of(compiled(train_job({"annotations": {"muster.dev/network-policy": "no"}}), on, "Job"))
    assert "[muster.dev/network-policy]: " in error
    assert "must be true or false" in error


@pytest.mark.parametrize(("target", "kind"), [("Job", "Job"), ("JobSet", "JobSet"), ("JobSet", "PodGroup")])
def test_an_elastic_world_is_marked(target: Target, kind: str) -> None:
    """For the planner, which starts no member after others have ended well."""
    for policy, mark in (({"elasticPolicy": {"minNodes": 1, "maxNodes": 4}}, "1:4"), ({}, None)):
        made = component(compiled(train_job(trainer={"numNodes": 2}), runtime({"torch": policy}), target), kind)
        assert (made["metadata"].get("annotations") or {}).get("muster.dev/elastic") == mark


@pytest.mark.parametrize("suspend", [True, False])
def test_a_suspended_train_job(*, suspend: bool) -> None:
    """The JobSet is suspended, and so are the Jobs of initializers."""
    job = train_job(suspend=suspend)
    assert component(compiled(job, runtime({"torch": {}})), "JobSet")["spec"].get("suspend", False) == suspend
    jobs = [each.manifest for each in compiled(job, stepped({}), "Job").components]
    [before] = [each["spec"] for each in jobs if each["apiVersion"] == "batch/v1"]
    assert (before.get("suspend", False), before["backoffLimit"]) == (suspend, 3)


@pytest.mark.parametrize(
    ("container", "asked", "warns"), [({}, True, True), ({"volumeMounts": MOUNTS}, True, False), ({}, False, False)]
)
def test_an_initializer_needs_a_place_for_its_data(container: JSON, *, asked: bool, warns: bool) -> None:
    """Without the volume a warning, where the TrainJob asks for the step."""
    initializer = {"initializer": {"dataset": {"storageUri": "hf://x"}}} if asked else {}
    warnings = compiled(train_job(**initializer), stepped({}, **container)).findings.warnings
    assert [f"container {DATASET} of job {DATASET} mounts no volume 'initializer'" in each for each in warnings] == [
        True
    ] * warns


def test_a_train_job_hands_its_notice_and_its_budget_to_its_job() -> None:
    """With a budget failures restart the gang; how often, the budget says alone."""
    given = {"muster.dev/restart-budget": "5 in 1h", "muster.dev/evict-notice": "300s", "muster.dev/rank": "0"}
    for annotations, action in ((given, "RestartJob"), ({}, "TerminateJob")):
        made = component(compiled(train_job({"annotations": annotations}), runtime({"torch": {}}), "Job"), "Job")
        wanted = {key: text for key, text in annotations.items() if key != "muster.dev/rank"}
        assert made["metadata"].get("annotations", {}) == wanted
        assert {"event": "PodFailed", "action": action} in made["spec"]["policies"]
        assert made["spec"]["maxRetry"] > 100
