"""How each page of the documentation is tried: what it takes for granted, what stands for its placeholders.

All is said in shell, as the pages do. A page that is not here takes nothing for granted.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

GANG: Final = "--image none --limits nvidia.com/gpu=8 --replicas"
JOB: Final = "examples/indexed-job.yaml"
RELEASE: Final = "helm install muster charts/muster --namespace muster-system"
KEPT: Final = (
    "kubectl get secret muster-webhook-tls -n muster-system ||"
    " kubectl create secret generic muster-webhook-tls -n muster-system --type=kubernetes.io/tls"
    " --from-file=tls.crt=pki/webhook.crt --from-file=tls.key=pki/webhook.key --from-file=ca.crt=pki/ca.crt"
    " --from-file=issuer.crt=pki/ca.crt --from-file=issuer.key=pki/ca.key &&"
    " kubectl label secret muster-webhook-tls -n muster-system app.kubernetes.io/managed-by=muster"
)
"""What the controller would make where the webhook's certificate is not made by `muster up`."""
GATED: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "gated"},
    "spec": {"schedulingGates": [{"name": "muster.dev/gang"}], "containers": [{"name": "main", "image": "none"}]},
}
HYPER_NODE: Final[dict[str, Any]] = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "rack-2"},
    "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "node-0000"}}}]},
}
RUNS: Final[dict[str, Any]] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "torchrun", "labels": {"muster.dev/queue": "default"}},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}},
}
ENDS: Final[dict[str, Any]] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "prepare"},
    "spec": {
        "schedulerName": "volcano",
        "tasks": [
            {
                "name": "main",
                "replicas": 1,
                "template": {
                    "metadata": {"annotations": {"kwok.muster.dev/run-seconds": "1"}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
                },
            }
        ],
    },
}
HELD: Final[dict[str, Any]] = {
    **RUNS,
    "metadata": {"name": "train", "labels": {"muster.dev/queue": "default", "array": "sweep"}},
    "spec": {**RUNS["spec"], "suspend": True},
}
ELASTIC: Final[dict[str, Any]] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "there", "annotations": {"muster.dev/elastic": "2:8"}},
    "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}},
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """How one page is tried."""

    chart: bool = False
    """Whether it is about a cluster in which the chart is installed, and not about a plane of `muster up`."""
    setup: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    """What stands in place of what."""
    before: Mapping[str, str] = field(default_factory=dict)
    """What has happened before a command, besides those before it on the page."""
    after: tuple[str, ...] = ()


PAGES: Final[dict[str, Page]] = {
    # This one starts the plane; the others that do so find it running.
    "README.md": Page(),
    "admission.md": Page(words={"--admission-config FILE": f"--admission-config groups.yaml -f {JOB}", "FILE": JOB}),
    "api.md": Page(setup=(f"muster job run train {GANG} 2",)),
    "autoscaling.md": Page(
        after=("kubectl annotate queue root muster.dev/scale-up-", "kubectl delete queue team-b --ignore-not-found")
    ),
    "concepts.md": Page(setup=(f"muster job run train {GANG} 2",)),
    "certificates.md": Page(setup=(KEPT,)),
    "web.md": Page(
        setup=(
            KEPT,
            f"muster job run train {GANG} 2",
            "kubectl create serviceaccount ada",
            "muster job run llama-7b --image none --limits nvidia.com/gpu=4 --replicas 6",
            "kubectl wait --for=jsonpath='{.status.state.phase}'=Running vcjob/llama-7b",
            f"muster job run eval {GANG} 6",
            "kubectl wait --for=create podgroup --all",
        ),
    ),
    "dynamic-resources.md": Page(setup=(f"muster job run train {GANG} 4",)),
    "jobs.md": Page(
        before={
            "muster job delete $(muster job list -l sweep=7 -o name)": (
                "muster job run swept --image none --replicas 1 && kubectl label vcjob swept sweep=7"
            )
        }
    ),
    "native-podgroups.md": Page(words={"FILE": JOB}),
    "history.md": Page(
        setup=(
            "kubectl get namespace research || kubectl create namespace research",
            f"muster job run train -n research {GANG} 1",
            "until muster history train -n research; do sleep 0.2; done",
        ),
        words={"history NAME": "history train -n research"},
    ),
    "queues.md": Page(
        setup=("muster queue create team-a", "muster queue create team-b", f"muster job run big {GANG} 8"),
        after=("kubectl delete queue team-a team-b vision",),
    ),
    "replay.md": Page(
        before={"muster replay recording": f"muster job run recorded {GANG} 2 && muster record recording --for 3s"}
    ),
    "scheduler-configuration.md": Page(words={"FILE": "planning.yaml"}),
    "security.md": Page(setup=("kubectl get namespace research || kubectl create namespace research",)),
    "topology.md": Page(
        setup=(f"kubectl apply -f - <<< {shlex.quote(json.dumps(HYPER_NODE))}", f"muster job run train {GANG} 2")
    ),
    "trainjobs.md": Page(
        setup=("muster queue create research", f"kubectl create -f - <<< {shlex.quote(json.dumps(ELASTIC))}"),
        words={"NAME": "there"},
        after=("kubectl delete trainjob --all", "until kubectl delete queue research; do sleep 0.5; done"),
    ),
    "ways-in.md": Page(
        setup=("kubectl get namespace research || kubectl create namespace research",), words={"FILE": JOB}
    ),
    "why.md": Page(
        setup=(
            KEPT,
            "muster job run llama-7b --image none --limits nvidia.com/gpu=4 --replicas 6",
            "kubectl wait --for=jsonpath='{.status.state.phase}'=Running vcjob/llama-7b",
            f"muster job run llama-70b {GANG} 4",
            f"muster job run eval {GANG} 6",
            "kubectl wait --for=create pod/llama-70b-worker-2",
            f"muster job run train {GANG} 4",
            f"kubectl create -f - <<< {shlex.quote(json.dumps(RUNS))}",
            "until muster ps -o name | grep torchrun; do sleep 0.2; done",
            "kubectl create priorityclass urgent --value 1000",
            "muster queue create research",
        ),
        words={
            "[job|gang|pod] NAME [-n NS]": "eval -n default",
            "explain NAME": "explain eval",
            "pod NAME": "pod llama-70b-worker-2",
            "config check FILE": "config check planning.yaml",
            "queue open NAME": "queue open default",
            "QUEUE": "default",
            "placement NAME": "placement $(kubectl get placement -o name | head -n 1 | cut -d/ -f2)",
            "-o FILE": "-o snapshot.json.gz",
            "FILE": JOB,
        },
        before={
            "muster release train torchrun": (
                "kubectl wait --for=jsonpath='{.status.state.phase}'=Aborted vcjob/train"
            ),
        },
        after=("kubectl delete priorityclass urgent", "until kubectl delete queue research; do sleep 0.5; done"),
    ),
    "install.md": Page(
        chart=True,
        before={
            "muster certs status": f"export KUBECONFIG=$(dirname $(readlink -f plane.json))/admin.kubeconfig; {KEPT}",
            'kubectl patch pod NAME --type=merge -p \'{"spec":{"schedulingGates":[]}}\'': (
                f"kubectl create -f - <<< {shlex.quote(json.dumps(GATED))}"
            ),
        },
        words={
            "NAME": "gated",
            "FILE": "planning.yaml",
            "muster certs status": "muster certs status --name default",  # the cluster of the chart has no controller
            # What they are for are other clusters: here the release has it all, and a second owner is a conflict.
            "--server-side --filename -": "--server-side --dry-run=server --force-conflicts --filename -",
            "--force-conflicts --filename charts": "--force-conflicts --dry-run=server --filename charts",
        },
    ),
    "NOTES.txt": Page(
        chart=True, setup=(RELEASE, "kubectl create namespace research"), words={"NAMESPACE": "research"}
    ),
    # They need a release, too.
    "operations.md": Page(
        setup=("muster job run traced --image none",),
        words={
            "FILE": "planning.yaml",
            "NAME": "traced",
            "drain NODE": "drain node-0000",
            ":8082": """:$(sed -n 's/.*"controller-status": *\\([0-9]*\\).*/\\1/p' plane.json)""",
        },
        after=("kubectl uncordon node-0000",),
    ),
    "migrate.md": Page(
        setup=(
            "cp planning.yaml volcano-scheduler.conf",
            "cp examples/torch-gang.yaml job.yaml",
            "muster queue create research",
            "kubectl create namespace team-a",
            f"kubectl create -f - <<< {shlex.quote(json.dumps(ENDS))}",
            f"kubectl create -f - <<< {shlex.quote(json.dumps(HELD))}",
        ),
        words={"FILE": "planning.yaml"},
        after=("kubectl delete queue team research a100", "kubectl delete priorityclass high"),
        before={f"{RELEASE} --create-namespace --take-ownership": "helm uninstall muster --namespace muster-system"},
    ),
    "quickstart.md": Page(
        before={
            "muster explain job torch-second": (
                "kubectl wait --for=jsonpath='{.status.state.phase}' vcjob/torch-second"
            ),
            "kubectl get placements -w": (  # on a slow machine the gangs of before have ended
                "kubectl replace --force -f examples/torch-gang-second.yaml"
            ),
            "muster kubectl get pod -l batch.kubernetes.io/job-name=torchrun -o yaml | grep -A1 PET_": (
                "kubectl wait --for=create pod -l batch.kubernetes.io/job-name=torchrun"
            ),
        },
        words={
            "kubectl --name N …": "kubectl --name default get nodes",
            "kubectl --name N": "kubectl --name default get nodes",
            "[--extender-url URL] [--kubeconfig FILE]": '--extender-url http://localhost:1 --kubeconfig "$KUBECONFIG"',
            "FILE": JOB,
        },
    ),
}
"""In the order in which they are tried; those that are not named come before `install.md`."""
