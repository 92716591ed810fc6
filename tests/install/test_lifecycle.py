"""A release from its installation to its end, in one cluster: each test goes on where the one before it stopped."""

from collections.abc import Iterator

import pytest
from installed import figures, quiet
from installed.chart import Release
from installed.cluster import Cluster
from installed.load import Load
from installed.work import Work
from realnode import namespaces
from realnode.node import Node

from muster.api.names import SYSTEM_NAMESPACE

pytestmark = pytest.mark.install
_LEASES = {"scheduler": "muster-scheduler", "controller": "muster-controller"}
_DRAIN_S = 300.0
_KINDS = ("vcjob", "jobs.batch")


@pytest.fixture(scope="module")
def work(cluster: Cluster) -> Iterator[Work]:
    """The workloads of this module."""
    one = Work(cluster, "jobs")
    yield one
    one.remove()


@pytest.fixture(scope="module")
def submissions(cluster: Cluster) -> Iterator[Work]:
    """What is submitted all the time while something happens to Muster."""
    one = Work(cluster, "load")
    yield one
    one.remove()


def all_end(cluster: Cluster, work: Work) -> None:
    """Waits until everything in a namespace has ended, and well."""
    cluster.wait("everything ends", lambda: all(all(work.ends(kind).values()) for kind in _KINDS), _DRAIN_S)
    assert {word for kind in _KINDS for word in work.ends(kind).values()} <= {"Complete", "Completed"}


def test_installs(release: Release) -> None:
    """`helm install` in a namespace that enforces Pod Security `restricted`: every pod becomes ready, on both nodes."""
    figures.note("helm install: all replicas ready after", f"{release.install():.1f} s")
    for part in ("webhook", "scheduler", "controller"):
        assert len({pod["spec"]["nodeName"] for pod in release.pods(part)}) == 2, part


def test_starts_without_complaint(cluster: Cluster, release: Release) -> None:
    """What is not there yet is waited for: no warnings in the logs, no false Event about the certificates."""
    lines = quiet.warnings(release.logs())
    figures.note("helm install: warnings in the logs", f"{len(lines)}")
    assert not lines, "\n".join(lines)
    events = cluster.objects("events", SYSTEM_NAMESPACE)
    assert [each["message"] for each in events if each["reason"] == "CertificateProblem"] == []


def test_helm_test(release: Release) -> None:
    """`helm test` finds every part through its Service."""
    assert "Phase:          Succeeded" in release.test()


def test_gang(work: Work) -> None:
    """A Volcano Job of four pods starts as a gang, its pods find each other, and it completes."""
    work.submit("train", "torch-gang")
    assert work.end("vcjob", "torch-first") == "Completed"
    assert "sum of ranks 6" in work.log("torch-first-master-0")


def test_indexed_job(work: Work) -> None:
    """A labelled Indexed Job is shaped and placed as a gang, and completes."""
    work.submit("indexed-job")
    assert work.end("jobs.batch", "torchrun") == "Complete"
    assert all("sum of ranks 6" in work.log(pod["metadata"]["name"]) for pod in work.pods("torchrun-"))


def test_volcano_job(work: Work) -> None:
    """A Volcano Job with nothing but tasks completes."""
    work.submit("volcano-job")
    assert work.end("vcjob", "sleepers") == "Completed"


def test_train_jobs(cluster: Cluster) -> None:
    """TrainJobs of two shipped runtimes complete, one of them with a rendezvous."""
    trains = Work(cluster, "trains", "baseline")
    trains.submit("trainjob")
    assert {trains.end("trainjob", name) for name in ("plain-train", "torch-train")} == {"Complete"}
    trains.remove()


def test_rests(cluster: Cluster, release: Release) -> None:
    """What Muster uses when there is nothing to do is within what its containers ask for."""
    used = figures.at_rest(cluster, release)
    for pod in release.pods():
        for container in pod["spec"]["containers"]:
            name = f"{pod['metadata']['name']}/{container['name']}"
            assert used[name] < figures.size(container["resources"]["requests"]["memory"]), name


def test_a_killed_webhook_comes_back(cluster: Cluster, release: Release, submissions: Work) -> None:
    """A replica of the webhook is killed while users submit: one who met it before its Service is without it is taken.

    SIGKILL leaves a process no time to announce its end, so these users submit again, a second later.
    """
    with Load(cluster, submissions.namespace, "killed", tries=10) as load:
        back_s = release.kill(release.pods("webhook")[0], "webhook")
    figures.note("killed: webhook ready again after", f"{back_s:.1f} s")
    figures.note("webhook killed: meanwhile", str(load))
    assert not load.refused, load.refused
    all_end(cluster, submissions)


def test_killed_containers_come_back(cluster: Cluster, release: Release, submissions: Work) -> None:
    """Each other kind of container is killed while users submit: it comes back, and nothing is refused."""
    with Load(cluster, submissions.namespace, "rest") as load:
        leaders = {part: release.leader(lease) for part, lease in _LEASES.items()}
        for pod, container in (
            (leaders["scheduler"], "extender"),
            (leaders["scheduler"], "kube-scheduler"),
            (leaders["controller"], "controller"),
        ):
            figures.note(f"killed: {container} ready again after", f"{release.kill(pod, container):.1f} s")
    figures.note("killed: meanwhile", str(load))
    assert not load.refused, load.refused
    all_end(cluster, submissions)


def test_upgrades_and_rotates(cluster: Cluster, release: Release, submissions: Work) -> None:
    """All pods are replaced by `helm upgrade`, then all certificates are, while users submit: nothing is refused."""
    settings = ("controller.workers=4", "webhook.logLevel=warning", "extender.barrierTimeoutSeconds=9")
    with Load(cluster, submissions.namespace, "upgraded") as load:
        figures.note("helm upgrade: all replicas new after", f"{release.upgrade(*settings):.1f} s")
        with figures.timed("muster certs rotate: all replicas show a new certificate after"):
            release.rotate()
    figures.note("upgraded and rotated: meanwhile", str(load))
    assert not load.refused, load.refused
    all_end(cluster, submissions)


def test_node_dies(cluster: Cluster, release: Release, submissions: Work) -> None:
    """A node with a replica of everything loses its power: when the cluster has seen it, nothing is refused."""
    node = cluster.node(release.leader(_LEASES["scheduler"])["spec"]["nodeName"])
    with Load(cluster, submissions.namespace, "lost") as load:
        node.die()
        with figures.timed("node lost: the webhook's Service is without it after"):
            cluster.wait("the Service is without it", lambda: release.served_by() == others(cluster, node))
        seen, made = load.next, load.made
        cluster.wait("submissions go on", lambda: load.made > made + 10)
        cluster.revive(node)
        release.wait_ready()
    figures.note("node lost and back: meanwhile", str(load))
    late = {number: words for number, words in load.refused.items() if number >= seen}
    assert not late, late
    cluster.wait("everything ends", lambda: all(all(submissions.ends(kind).values()) for kind in _KINDS), _DRAIN_S)


def others(cluster: Cluster, node: Node) -> set[str]:
    """The names of all nodes but that one."""
    return {each.name for each in cluster.nodes} - {node.name}


def test_the_kernel_keeps_its_settings(cluster: Cluster) -> None:
    """The machine panics and gives memory as it did before there were kubelets, who see what they have written."""
    assert namespaces.kernel_settings()["kernel/panic"] == "10"
    assert cluster.settings_now == cluster.settings_before


def test_nothing_crashed(release: Release) -> None:
    """In all that time no process of Muster's has written a traceback."""
    said = [line for lines in release.logs().values() for line in lines if "Traceback" in line]
    assert not said, "\n".join(said)


def test_uninstalls(cluster: Cluster, release: Release) -> None:
    """`helm uninstall` leaves what docs/install.md says and nothing else, and ordinary pods run as before."""
    release.uninstall()
    assert quiet.left(cluster) == quiet.STAYS
    plain = Work(cluster, "plain")
    plain.submit("plain")
    cluster.wait("an ordinary pod ends", lambda: plain.pods("plain")[0]["status"]["phase"] == "Succeeded")
    plain.remove()
