"""The chart's NetworkPolicies, enforced: what has to work does, and who has no business at a port does not reach it."""

from collections.abc import Iterator

import pytest
from installed import network, probers
from installed.chart import Release
from installed.cluster import Cluster
from installed.probers import Probers
from installed.work import MANIFESTS, Work

pytestmark = pytest.mark.install
_PARTS = ("webhook", "scheduler", "controller")
_MONITORING = "monitoring"
_SETTINGS = (
    f"networkPolicies.apiServer[0].ipBlock.cidr={network.CONTROL_PLANE}/32",
    rf"networkPolicies.monitoring[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name={_MONITORING}",
    "trainJobs.reports.enabled=true",
)
_BY_NAME = {
    f"{service}:{port}": f"muster-{service}.muster-system.svc:{port}"
    for service, port in (("webhook", 443), ("webhook", 8080), ("reports", 443))
}


@pytest.fixture(scope="module")
def strangers(cluster: Cluster) -> Iterator[Probers]:
    """Pods of a tenant, who has nothing to do with Muster's own."""
    one = Probers(cluster, "strangers")
    yield one
    one.remove()


@pytest.fixture(scope="module")
def monitoring(cluster: Cluster) -> Iterator[Probers]:
    """Pods of the namespace that may read metrics."""
    one = Probers(cluster, _MONITORING)
    yield one
    one.remove()


@pytest.fixture(scope="module")
def work(cluster: Cluster) -> Iterator[Work]:
    """The workloads of this module."""
    one = Work(cluster, "guarded", "baseline")
    yield one
    one.remove()


def test_policies_are_enforced(cluster: Cluster, strangers: Probers, monitoring: Probers) -> None:
    """A policy of anybody's that denies all does so, in both directions and on both nodes, until it is gone."""
    ours, theirs = strangers.targets(), monitoring.targets()
    both = set(ours)
    monitoring.wait_reach(ours, both)
    strangers.wait_reach(theirs, both)
    strangers.work.submit("deny-all")
    monitoring.wait_reach(ours, set())
    strangers.wait_reach(theirs, set())
    monitoring.wait_reach(theirs, both)
    cluster.plane.kubectl("delete", "networkpolicy", "deny-all", f"--namespace={strangers.work.namespace}")
    monitoring.wait_reach(ours, both)
    strangers.wait_reach(theirs, both)


def test_installs(release: Release) -> None:
    """With an API server and a monitoring that are named, every part becomes ready: probes and leaders' calls pass."""
    release.install(*_SETTINGS)
    for part in _PARTS:
        assert len({pod["spec"]["nodeName"] for pod in release.pods(part)}) == 2, part


def test_listens_at_declared_ports_only(cluster: Cluster, release: Release) -> None:
    """A pod of Muster's listens for others at the ports that it declares, so the tests that follow know them all."""
    for part in _PARTS:
        for pod in release.pods(part):
            probers.wait_listens(cluster, pod)


def test_who_reaches_what(release: Release, strangers: Probers, monitoring: Probers) -> None:
    """Monitoring reaches metrics, trainers anywhere reach the port for reports, and the webhook is the API server's."""
    doors = probers.doors(release)
    reports = {name for name in doors if "/reports" in name}
    assert len(reports) == 2
    strangers.wait_reach(doors, reports)
    monitoring.wait_reach(doors, {name for name in doors if "/https" not in name})


def test_services(strangers: Probers, monitoring: Probers) -> None:
    """By the names of Services everybody reaches what he reaches by addresses: no way leads around the policies."""
    strangers.wait_reach(_BY_NAME, {"reports:443"})
    monitoring.wait_reach(_BY_NAME, {"reports:443", "webhook:8080"})


def test_other_ports_are_closed(cluster: Cluster, release: Release, strangers: Probers, monitoring: Probers) -> None:
    """Whatever else may listen in a pod of Muster's, nobody reaches it."""
    for part in _PARTS:
        with probers.listener(cluster, release.pods(part)[0], 7777) as target:
            monitoring.wait_reach({part: target}, set())
            strangers.wait_reach({part: target}, set())


def test_submissions(work: Work) -> None:
    """The API server reaches the webhook, and kube-scheduler the extender: gangs and shaped Jobs run to their end."""
    work.submit("train", "torch-gang", "indexed-job", "shaped-job")
    assert work.end("vcjob", "torch-first") == "Completed"
    assert work.end("jobs.batch", "torchrun") == "Complete"
    assert work.end("jobs.batch", "shaped") == "Complete"


def test_reports(cluster: Cluster, work: Work) -> None:
    """A trainer reports its progress to the controller."""
    work.submit("reporting-train")

    def told() -> bool:
        (job,) = cluster.objects("trainjobs", work.namespace)
        return bool(job.get("status", {}).get("trainerStatus", {}).get("progressPercentage") == 45)

    cluster.wait("the TrainJob shows its progress", told, probers.LISTENS_S)
    assert work.end("trainjob", "reporting") == "Complete"


def test_plugin_svc(cluster: Cluster, work: Work, strangers: Probers) -> None:
    """Pods of a Volcano Job with the plugin svc reach each other, and no pod of others reaches them."""
    work.submit("guarded-gang")
    cluster.wait("the gang runs", lambda: [pod["status"]["phase"] for pod in work.pods("guarded-")] == ["Running"] * 2)
    pods = work.pods("guarded-")
    targets = {pod["metadata"]["name"]: f"{pod['status']['podIP']}:{probers.PORT}" for pod in pods}
    answer = "the pods of the gang reach each other"
    cluster.wait(answer, lambda: all(probers.reached(cluster, pod, targets) == set(targets) for pod in pods))
    strangers.wait_reach(targets, set())
    cluster.plane.kubectl("delete", "vcjob", "guarded", f"--namespace={work.namespace}")


def test_helm_test(release: Release) -> None:
    """`helm test` reaches every part, though it is not of the monitoring."""
    assert "Phase:          Succeeded" in release.test()


def test_an_api_server_elsewhere(cluster: Cluster, release: Release, work: Work) -> None:
    """Where the policy names another address, the API server itself reaches no webhook, until it is put right."""
    kubectl, gang = cluster.plane.kubectl, MANIFESTS / "guarded-gang.yaml"
    submission = ("create", f"--namespace={work.namespace}", f"--filename={gang}", "--dry-run=server")
    release.upgrade("networkPolicies.apiServer[0].ipBlock.cidr=192.0.2.0/24")
    release.replace("webhook")  # connections that exist are let go on
    cluster.wait("the webhook is not reached", lambda: "failed calling webhook" in kubectl(*submission).stderr)
    release.upgrade(_SETTINGS[0])
    cluster.wait("the webhook is reached", lambda: not kubectl(*submission).returncode)


def test_without_policies(release: Release, strangers: Probers) -> None:
    """Without the chart's policies strangers reach every port: so it was the policies that kept them away."""
    release.upgrade("networkPolicies.enabled=false")
    doors = probers.doors(release)
    strangers.wait_reach(doors, set(doors))
    strangers.wait_reach(_BY_NAME, set(_BY_NAME))
