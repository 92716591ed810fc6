"""Kubernetes itself: plain pods without gangs, and its own gangs (beta in 1.37), by plain pods and by batch Jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.binaries import CONTROL_PLANE, release_of
from musterctl.plane.state import API_SERVER, CONTROLLER_MANAGER, SCHEDULER
from tests.bench.peers.peer import AT_ONCE, JSON, NAMESPACE, Arguments, Peer, container, each

BATCH_JOBS: Resource[JSON] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
_SERVED = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
GATES = "--feature-gates=GenericWorkload=true"
_GATES_OF_JOBS = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true"
JOB_CONTROLLER = (
    "--controllers=job-controller,podgroup-protection-controller",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
    "--concurrent-job-syncs=20",
)
"""Only the controllers that take part, without their client's limits."""


class Stock(Peer):
    """Plain pods of this client: the machine's limit, as nothing that a gang needs is done."""

    name = "stock"
    title = "plain pods, no gangs"

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        return f"kube-scheduler {release_of(CONTROL_PLANE)}, `qps` 1000 and `burst` 2000; the client creates the pods"

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit the pods."""
        create_pods(client, (pod(f"{prefix}-{number}") for number in range(gangs * members)))


class NativePods(Peer):
    """A native PodGroup per gang; the client creates it and its pods, so that no controller takes part."""

    name = "native"
    title = "native gangs, pods of the client"
    arguments: ClassVar[Arguments] = {API_SERVER: (GATES, _SERVED), SCHEDULER: (GATES,)}
    made = (NATIVE_POD_GROUPS,)

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        return f"kube-scheduler {release_of(CONTROL_PLANE)} with `{GATES}`; the client creates PodGroups and pods"

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit groups, each followed by its pods."""
        kind = {"apiVersion": NATIVE_POD_GROUPS.api_version, "kind": NATIVE_POD_GROUPS.kind}
        spec = {"schedulingPolicy": {"gang": {"minCount": members}}}

        def group(name: str) -> object:
            return client.create(NATIVE_POD_GROUPS, kind | {"metadata": {"name": name}, "spec": spec}, NAMESPACE)

        def member(gang: str, name: str) -> JSON:
            return pod(name, schedulingGroup={"podGroupName": gang})

        submit_groups(client, [f"{prefix}-{number}" for number in range(gangs)], members, group, member)

    def clean(self, client: Client) -> None:
        """Remove all that was submitted; without the controller that protects PodGroups, their finalizers stay."""
        super().clean(client)
        free = {"metadata": {"finalizers": None}}
        names = [group.metadata.name for group in client.list(NATIVE_POD_GROUPS, NAMESPACE)]
        each(lambda name: client.merge_patch(NATIVE_POD_GROUPS, name, free, NAMESPACE), names)


class NativeJobs(Peer):
    """A batch Job with `spec.scheduling` per gang, of which Kubernetes makes the PodGroup and the pods."""

    name = "native-job"
    title = "native gangs, batch Jobs"
    parts = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    own = ("kube-controller-manager", "kube-scheduler")
    arguments: ClassVar[Arguments] = {
        API_SERVER: (_GATES_OF_JOBS, _SERVED),
        CONTROLLER_MANAGER: (_GATES_OF_JOBS, *JOB_CONTROLLER),
        SCHEDULER: (_GATES_OF_JOBS,),
    }
    made = (BATCH_JOBS, NATIVE_POD_GROUPS)

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        flags = " ".join((_GATES_OF_JOBS, *JOB_CONTROLLER))
        return f"batch Jobs with `spec.scheduling`; kube-controller-manager {release_of(CONTROL_PLANE)} with `{flags}`"

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit a batch Job per gang."""
        gang = {"scheduling": {"schedulingPolicy": {"gang": {"minCount": members}}}}
        submit_batch_jobs(client, prefix, gangs, members, gang)


def submit_batch_jobs(
    client: Client, prefix: str, gangs: int, members: int, spec: JSON, *, metadata: JSON | None = None
) -> None:
    """Submit Indexed Jobs with these additional fields of the spec and the metadata."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    amounts = {"completionMode": "Indexed", "completions": members, "parallelism": members}

    def create(number: int) -> None:
        meta = {"name": f"{prefix}-{number}", **(metadata or {})}
        client.create(BATCH_JOBS, {"metadata": meta, "spec": amounts | {"template": template} | spec}, NAMESPACE)

    each(create, range(gangs))


def pod(name: str, **spec: Any) -> JSON:
    """Return a small pod."""
    return {"metadata": {"name": name}, "spec": {"containers": [container()], **spec}}


def create_pods(client: Client, pods: Iterable[JSON]) -> None:
    """Create pods, several at the same time."""
    each(lambda one: client.create(PODS, one, NAMESPACE), pods)


def submit_groups(
    client: Client,
    names: Sequence[str],
    members: int,
    group: Callable[[str], object],
    member: Callable[[str, str], JSON],
) -> None:
    """Create the group and then the pods of each gang: of many gangs, or of a few gangs' pods, several at once."""

    def pods(gang: str) -> Iterator[JSON]:
        return (member(gang, f"{gang}-{rank}") for rank in range(members))

    def submit_gang(gang: str) -> None:
        group(gang)
        for one in pods(gang):
            client.create(PODS, one, NAMESPACE)

    if len(names) >= AT_ONCE:
        each(submit_gang, names)
        return
    for name in names:
        group(name)
        create_pods(client, pods(name))
