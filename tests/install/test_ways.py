"""Other ways to install: the webhook alone, the cluster's own kube-scheduler, manifests without helm, and the page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from click.testing import CliRunner
from installed import chart, controlplane, figures
from installed.chart import Release
from installed.cluster import Cluster
from installed.work import Work

from certs.authority import Authority
from muster.api.names import CERTIFICATES, SYSTEM_NAMESPACE
from musterctl.app import main

pytestmark = pytest.mark.install
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@pytest.fixture
def work(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Work]:
    """The workloads of one test."""
    one = Work(cluster, str(request.node.name).replace("_", "-"))
    yield one
    one.remove()


@pytest.fixture
def removed(release: Release) -> Iterator[Release]:
    """The release of one test, which is gone after it."""
    yield release
    release.remove()


@pytest.fixture
def own_scheduler(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a control-plane node; its kube-scheduler has its defaults again after the test."""
    kubectl, node = cluster.plane.kubectl, cluster.nodes[0].name
    kubectl("label", "node", node, f"{_CONTROL_PLANE}=")
    yield cluster
    cluster.plane.scheduler_config = None
    cluster.plane.parts["kube-scheduler"].restart()
    kubectl("label", "node", node, f"{_CONTROL_PLANE}-")


def test_webhook_alone(cluster: Cluster, removed: Release, work: Work, tmp_path: Path) -> None:
    """The webhook and nothing else, with a certificate of one's own: pods are shaped."""
    authority, name = Authority.create("webhook-alone"), f"muster-webhook.{SYSTEM_NAMESPACE}.svc"
    authority.save(tmp_path)
    authority.issue(name, dns_names=[name], server=True).save(tmp_path)
    kubectl, pair = cluster.plane.kubectl, [f"--cert={tmp_path / 'tls.crt'}", f"--key={tmp_path / 'tls.key'}"]
    kubectl("create", "namespace", SYSTEM_NAMESPACE)
    kubectl("create", "secret", "tls", CERTIFICATES, f"--namespace={SYSTEM_NAMESPACE}", *pair)
    bundle = {"certificates.caBundle": tmp_path / "ca.crt"}
    removed.install("scheduler.mode=none", "controller.enabled=false", "certificates.mode=provided", files=bundle)
    assert {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in removed.pods()} == {"webhook"}
    work.submit("shaped-job")
    assert work.end("jobs.batch", "shaped") == "Complete"


def test_no_scheduler_of_ours(removed: Release, work: Work) -> None:
    """With scheduler.mode none, pods are shaped, and the cluster's own scheduler places them."""
    removed.install("scheduler.mode=none")
    assert "Phase:          Succeeded" in removed.test()
    assert not removed.pods("scheduler")
    work.submit("shaped-job")
    assert work.end("jobs.batch", "shaped") == "Complete"
    assert {work.log(pod["metadata"]["name"]) for pod in work.pods()} == {"rank 0 of 2\n", "rank 1 of 2\n"}


def test_clusters_own_scheduler(own_scheduler: Cluster, removed: Release, work: Work) -> None:
    """With scheduler.mode cluster and the printed configuration, the cluster's kube-scheduler places gangs."""
    cluster = own_scheduler
    removed.install("scheduler.mode=cluster", level="privileged")
    (found,) = cluster.objects("configmaps", SYSTEM_NAMESPACE, "--field-selector=metadata.name=muster-kube-scheduler")
    config = yaml.safe_load(found["data"]["config.yaml"])
    config["clientConnection"]["kubeconfig"] = str(cluster.plane.kubeconfig("kube-scheduler"))  # kubeadm's is elsewhere
    file = cluster.plane.root / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    cluster.plane.scheduler_config = file
    cluster.plane.parts["kube-scheduler"].restart()
    work.submit("train", "torch-gang", "indexed-job", "plain")
    assert work.end("vcjob", "torch-first") == "Completed"
    assert work.end("jobs.batch", "torchrun") == "Complete"
    cluster.wait("an ordinary pod ends", lambda: work.pods("plain")[0]["status"]["phase"] == "Succeeded")


def test_manifests_without_helm(removed: Release, work: Work) -> None:
    """`muster render | kubectl apply --server-side` installs the same, and `kubectl delete` takes it away."""
    manifests = rendered()
    with figures.timed("muster render | kubectl apply: all replicas ready after"):
        removed.apply(manifests)
    work.submit("volcano-job")
    assert work.end("vcjob", "sleepers") == "Completed"
    removed.delete(manifests)


def test_helm_and_kubectl_take_over(cluster: Cluster, removed: Release) -> None:
    """Rendered manifests, then a release of helm, then both again: the same values cause no conflict, no new pods."""
    manifests = rendered()
    removed.apply(manifests)
    before = {pod["metadata"]["uid"] for pod in removed.pods()}
    removed.helm("install", chart.NAME, str(chart.CHART), "--take-ownership", *chart.sets(chart.IMAGE))
    removed.apply(manifests)
    assert "REVISION: 2" in removed.helm("upgrade", chart.NAME, str(chart.CHART), "--reuse-values")
    removed.wait_ready()
    assert {pod["metadata"]["uid"] for pod in removed.pods()} == before
    diff = cluster.plane.kubectl("diff", "--server-side", "--filename=-", stdin=manifests)
    assert not diff.returncode, diff.stdout + diff.stderr


def rendered() -> str:
    """What `muster render` prints for the cluster's version of Kubernetes."""
    version = controlplane.version().removeprefix("v")
    done = CliRunner().invoke(main, ["render", f"--kubernetes-version={version}", *chart.sets(chart.IMAGE)])
    assert not done.exit_code, done.output
    return str(done.output)


def test_the_page_and_the_history(cluster: Cluster, removed: Release, work: Work, wait_for: Callable[..., Any]) -> None:
    """As pods: who may view one namespace sees his gang while it is there, and in the history once it is gone."""
    with figures.timed("web.enabled and history.enabled: all replicas ready after"):
        removed.install("web.enabled=true", "history.enabled=true")
    kubectl, space = cluster.plane.kubectl, work.namespace
    kubectl("create", "serviceaccount", "ada", f"--namespace={space}")
    bound = (f"--serviceaccount={space}:ada", "--clusterrole=muster-view", f"--namespace={space}")
    kubectl("create", "rolebinding", "ada", *bound)
    token = kubectl("create", "token", "ada", f"--namespace={space}").stdout.strip()
    pod = removed.pods("web")[0]["status"]["podIP"]

    def page(path: str) -> str:
        """A page for her; the text of what is refused, too."""
        asked = Request(f"https://{pod}:8443{path}", headers={"Authorization": f"Bearer {token}"})
        try:
            with urlopen(asked, context=removed.trust(), timeout=10) as answer:  # noqa: S310 - it is https
                return str(answer.read().decode())
        except HTTPError as error:
            return f"{error.code}: {error.read().decode()}"

    work.submit("volcano-job")
    # What she may do is asked once a minute: the first answer may be older than her gang.
    wait_for(lambda: "sleepers" in page("/gangs?ended=on"), 90, lambda: f"her gang, and not {page('/gangs')}")
    assert work.end("vcjob", "sleepers") == "Completed"
    kubectl("delete", "vcjob", "sleepers", f"--namespace={space}")
    story = wait_for(lambda: (text := page(f"/history/{space}/sleepers")) and "Completed" in text and text, 60)
    assert "started" in story
    assert page(f"/history/{SYSTEM_NAMESPACE}/sleepers").startswith("404")
    assert page("/usage").startswith("<!doctype")
