"""Defaults of a Volcano Job are written down once, and change nothing that the user wrote."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from webhook_world import JSON, apply, request, task, vcjob

from webhook.mutate.job import reviewer


def defaulted(job: JSON) -> JSON:
    """The Job after the mutation."""
    return apply(job, reviewer()(request(job)).patch)


def test_an_almost_empty_job_is_complete() -> None:
    """Queue, scheduler, retries, task names and minimums are filled in."""
    job = vcjob({"replicas": 2}, {"name": "b", "replicas": 3})
    del job["spec"]["queue"]
    assert defaulted(job)["spec"] == {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": 5,
        "tasks": [
            {"name": "default0", "replicas": 2, "minAvailable": 2, "maxRetry": 3},
            {"name": "b", "replicas": 3, "minAvailable": 3, "maxRetry": 3},
        ],
    }


def test_minimum_of_partitions() -> None:
    """A task with a minimum of partitions needs that many whole partitions."""
    policy = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    spec = defaulted(vcjob(task(replicas=8, partitionPolicy=policy)))["spec"]
    assert (spec["tasks"][0]["minAvailable"], spec["minAvailable"]) == (6, 6)


def test_host_network_gets_cluster_dns() -> None:
    """Pods on the host network still find their peers by name, unless they chose a DNS policy."""
    template = {"spec": {"hostNetwork": True, "containers": []}}
    assert defaulted(vcjob(task(template=template)))["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == (
        "ClusterFirstWithHostNet"
    )
    template["spec"]["dnsPolicy"] = "Default"
    assert defaulted(vcjob(task(template=template)))["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "Default"


def test_plugins_imply_others() -> None:
    """Distributed frameworks need svc, and mpi needs ssh; given arguments stay."""
    assert defaulted(vcjob(plugins={"mpi": ["--master=a"]}))["spec"]["plugins"] == {
        "mpi": ["--master=a"],
        "svc": [],
        "ssh": [],
    }
    assert defaulted(vcjob(plugins={"pytorch": [], "svc": ["x"]}))["spec"]["plugins"] == {"pytorch": [], "svc": ["x"]}


def test_malformed_job_passes_unchanged() -> None:
    """The API server's schema refuses it next, naming every wrong field."""
    assert reviewer()(request(vcjob({"replicas": "two"}))).outcome == "allowed"


TASKS = st.lists(
    st.fixed_dictionaries(
        {"replicas": st.integers(0, 5)},
        optional={
            "name": st.sampled_from(["", "a", "b"]),
            "minAvailable": st.integers(0, 3),
            "maxRetry": st.integers(0, 2),
            "template": st.just(
                {"metadata": {"annotations": {"unknown/field": "kept"}}, "spec": {"hostNetwork": True}}
            ),
        },
    ),
    min_size=1,
    max_size=4,
)


@given(TASKS, st.dictionaries(st.sampled_from(["svc", "mpi", "ray"]), st.just(["--x"]), max_size=2), st.integers(0, 3))
def test_defaults_are_idempotent_and_lose_nothing(tasks: list[Any], plugins: JSON, minimum: int) -> None:
    """A second review changes nothing, and every value that the user gave is still there."""
    job = vcjob(*tasks, plugins=plugins, minAvailable=minimum)
    once = defaulted(job)
    assert reviewer()(request(once)).outcome == "allowed"
    for before, after in zip(tasks, once["spec"]["tasks"], strict=True):
        assert after["replicas"] == before["replicas"]
        assert {**after.get("template", {})}.get("metadata") == before.get("template", {}).get("metadata")
        assert before.get("minAvailable") in {None, after["minAvailable"]}
    assert {name: once["spec"]["plugins"][name] for name in plugins} == plugins
