"""A hostile tenant: what he tries, drawn at random, with a tenant's rights and at the ports of the plane."""

import contextlib
import json
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from jobs import job, policy, task
from tenants import JSON, Tenant, owner, pod

from muster.api import names
from muster.api.kubernetes.core import INDEXED_JOBS, NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

HUGE = ("100000000", "1000000000", "20000000", "10000000000", "9" * 5000, "-1", "²", "")
_SLOW_S = 6.0
_CLIENTS = 8
Deed = Callable[["Hostile"], None]


class Hostile:
    """Acts for one tenant. `told` counts what came of his deeds: by their name, and the answer's number or 0."""

    def __init__(self, plane: Plane, tenant: Tenant, others: list[str], chance: random.Random) -> None:
        self._plane = plane
        self._admin: Client = plane.client()
        self.tenant = tenant
        self.others = others
        self.chance = chance
        self.told: Counter[tuple[str, int]] = Counter()
        self._number = 0
        self._threads: list[threading.Thread] = []

    def act(self) -> None:
        """One deed."""
        name, deed = self.chance.choice(sorted(DEEDS.items()))
        try:
            deed(self)
        except APIError as error:
            self.told[name, error.status] += 1
        else:
            self.told[name, 0] += 1

    def end(self) -> None:
        """Waits for the slow clients to give up."""
        for thread in self._threads:
            thread.join(30)

    def create(self, resource: Any, obj: JSON) -> Any:
        """Creates an object in his namespace."""
        return self.tenant.client.create(resource, obj, self.tenant.namespace)

    def name(self) -> str:
        """A name that he has not used."""
        self._number += 1
        return f"bad-{self._number}"

    def job(self, replicas: int, *, gpus: int = 0, **spec: Any) -> JSON:
        """A Volcano Job of one task."""
        made = job(self.name(), self.tenant.namespace, task("w", replicas, run_s=5), **spec)
        if gpus:
            self.spec_of(made)["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
        return made

    def spec_of(self, made: JSON) -> JSON:
        """The pod spec of such a Job's task."""
        spec: JSON = made["spec"]["tasks"][0]["template"]["spec"]
        return spec

    def queue(self) -> str:
        """Any queue that is there."""
        return str(self.chance.choice(self.tenant.client.list(QUEUES)).metadata.name)

    def somebody(self) -> Any:
        """A Job of somebody else's, of which he has found out the UID, or None."""
        found = self._admin.list(JOBS, self.chance.choice(self.others))
        return self.chance.choice(found) if found else None

    def somebodys_pod(self) -> Any:
        """A pod of somebody else's, of which he has the YAML, or None."""
        found = self._admin.list(PODS, self.chance.choice(self.others))
        return self.chance.choice(found) if found else None

    def node(self) -> str:
        """Any node."""
        return str(self.chance.choice(self.tenant.client.list(NODES)).metadata.name)

    def slow_clients(self) -> None:
        """Connections to the webhook and the extender that send a byte a second."""
        part = self.chance.choice(["webhook", "extender"])
        thread = threading.Thread(target=_be_slow, args=(self._plane.state.ports[part],), daemon=True)
        self._threads.append(thread)
        thread.start()

    def post(self) -> None:
        """A call of the extender's port."""
        theirs = self.somebodys_pod()
        meta = theirs.metadata if theirs else None
        bind = {
            "PodName": meta.name if meta else "x",
            "PodNamespace": meta.namespace if meta else "x",
            "PodUID": meta.uid if meta else "x",
            "Node": self.node(),
        }
        nested = "[" * 10_000
        body = self.chance.choice([json.dumps(bind), "{}", nested, '{"Pod": 3}', "x" * 1_000_000])
        path = self.chance.choice(["/bind", "/bind", "/filter", "/prioritize", "/preempt"])
        kind = self.chance.choice(["application/json", "application/json", "text/plain"])
        url = f"http://127.0.0.1:{self._plane.state.ports['extender']}{path}"
        request = urllib.request.Request(url, body.encode(), {"Content-Type": kind})
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            answer.read()


def _be_slow(port: int) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(_CLIENTS)]
        end = time.monotonic() + _SLOW_S
        while time.monotonic() < end:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"\x16" if end - time.monotonic() > _SLOW_S - 1 else b"\x03")
            time.sleep(1)


def absurd_amounts(he: Hostile) -> None:
    """Sums that no machine word holds."""
    amount = he.chance.choice(["8E", "7E", "1n", "9223372036854775807"])
    made = he.job(2)
    one = {"image": "none", "resources": {"requests": {"memory": amount, "cpu": amount}}}
    he.spec_of(made)["containers"] = [{"name": f"c{number}", **one} for number in range(2)]
    he.create(JOBS, made)


def absurd_pod_amounts(he: Hostile) -> None:
    """The same in a pod that is bound already."""
    one = pod(he.name(), nodeName=he.node())
    resources = {"requests": {"memory": "8E"}}
    one["spec"]["containers"] = [{"name": f"c{n}", "image": "none", "resources": resources} for n in range(2)]
    he.create(PODS, one)


def absurd_numbers(he: Hostile) -> None:
    """Sizes, ranks and epochs that somebody wrote."""
    keys = (names.SIZE, names.RANK, names.MIN_MEMBER, names.MEMBER_INDEX, names.EPOCH, names.TASK_INDEX)
    annotations = {key: he.chance.choice(HUGE) for key in he.chance.sample(keys, 3)}
    labels = he.chance.choice([{}, {names.FRAMEWORK: "torch"}, {names.QUEUE: "default"}])
    metadata = {"annotations": annotations, "labels": labels}
    gates = he.chance.choice([{}, {"schedulingGates": [{"name": names.GATE}]}])
    he.create(PODS, pod(he.name(), gpus=1, metadata=metadata, **gates))


def absurd_replicas(he: Hostile) -> None:
    """Two thousand million pods."""
    he.create(JOBS, he.job(he.chance.choice([2_000_000_000, 10_000_000, 20_001])))


def many_names(he: Hostile) -> None:
    """A pod with 2,000 resource names."""
    limits = {f"example.com/{he.chance.randrange(10**6)}-{number}": "1" for number in range(2_000)}
    he.create(PODS, pod(he.name(), limits=limits))


def blocked_by_quota(he: Hostile) -> None:
    """A Job of many pods that his quota never lets be made."""
    he.create(JOBS, he.job(he.chance.choice([40, 300, 2_000]), gpus=1, queue=he.queue()))


def too_many_tasks(he: Hostile) -> None:
    """Hundreds of tasks, equal ones or each another."""
    made = he.job(1)
    count, same = he.chance.choice([(400, True), (60, False), (600, True)])
    tasks = [task(f"t{n}", 1, run_s=1, cpu="1m" if same else f"{n + 1}m") for n in range(count)]
    made["spec"] |= {"tasks": tasks, "minAvailable": count}
    he.create(JOBS, made)


def forge_placement(he: Hostile) -> None:
    """Room for twenty thousand ranks."""
    runs = [{"node": he.node(), "count": he.chance.choice([8, 20_000, 2**31 - 1])}]
    spec = {"podGroupUID": "u", "epoch": 1, "podSets": [{"name": "w", "runs": runs}]}
    he.create(PLACEMENTS, {"metadata": {"name": he.name()}, "spec": spec})


def foreign_pod(he: Hostile) -> None:
    """A pod that names somebody else's Job as its controller, and ends."""
    theirs = he.somebody()
    if theirs:
        ending = {"kwok.muster.dev/run-seconds": "0.1", "kwok.muster.dev/exit-code": he.chance.choice(["0", "1"])}
        slot = {names.TASK_SPEC: "w", names.TASK_INDEX: "0", names.JOB_VERSION: "0"}
        metadata = {"ownerReferences": [owner(theirs)], "annotations": ending | slot}
        he.create(PODS, pod(f"{theirs.metadata.name}-w-0", scheduler="default-scheduler", metadata=metadata))


def copied_pod(he: Hostile) -> None:
    """A pod made from the YAML of a running one."""
    theirs = he.somebodys_pod()
    if theirs:
        metadata = {"labels": dict(theirs.metadata.labels), "annotations": dict(theirs.metadata.annotations)}
        where = he.chance.choice([{}, {"nodeName": theirs.spec.node_name}]) if theirs.spec.node_name else {}
        he.create(PODS, pod(he.name(), gpus=1, metadata=metadata, **where))


def command(he: Hostile) -> None:
    """A Command to somebody else's Job or queue."""
    queues = he.tenant.client.list(QUEUES)
    targets = [("AbortJob", he.somebody()), ("CloseQueue", he.chance.choice(queues))]
    action, target = he.chance.choice(targets)
    if target:
        he.create(COMMANDS, {"metadata": {"generateName": "bad-"}, "action": action, "target": owner(target)})


def endless_gates(he: Hostile) -> None:
    """A gang that waits for somebody else for ever."""
    made = he.job(4, gpus=1)
    he.spec_of(made)["schedulingGates"] = [{"name": "example.com/never"}]
    he.create(JOBS, made)


def groups(he: Hostile) -> None:
    """A PodGroup that grows absurdly, moves, or says that it runs."""
    name = he.name()
    he.create(POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": he.queue()}})
    change: JSON = he.chance.choice(
        [
            {"spec": {"minMember": 2**31 - 1}},
            {"spec": {"minTaskMember": {f"t{n}": 2**31 - 1 for n in range(100)}}},
            {"spec": {"queue": "nowhere"}},
            {"status": {"phase": "Running", "running": 2**31 - 1}},
        ]
    )
    he.tenant.client.merge_patch(POD_GROUPS, name, change, he.tenant.namespace)


def endless_restarts(he: Hostile) -> None:
    """A Job that fails and restarts as often as it may."""
    made = he.job(3, policies=[policy("RestartJob", "PodFailed")], maxRetry=1_000_000)
    made["spec"]["tasks"][0] = task("w", 3, run_s=0.1, exit_code=1, cpu="1m")
    he.create(JOBS, made)


def churn(he: Hostile) -> None:
    """Jobs that are deleted as soon as they are there."""
    for _ in range(5):
        made = he.create(JOBS, he.job(10))
        he.tenant.client.delete(JOBS, made.metadata.name, he.tenant.namespace)


def large_world(he: Hostile) -> None:
    """An Indexed Job of two thousand MPI workers, which his quota refuses."""
    spec = {"containers": [{"name": "main", "image": "none", "command": ["mpirun"]}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {names.FRAMEWORK: "mpi", names.QUEUE: "default"}}, "spec": spec}
    body = {"completionMode": "Indexed", "completions": 2_000, "parallelism": 2_000, "template": template}
    labels = {names.QUEUE: "default", names.FRAMEWORK: "mpi"}
    he.create(INDEXED_JOBS, {"metadata": {"name": he.name(), "labels": labels}, "spec": body})


DEEDS: dict[str, Deed] = {deed.__name__: deed for deed in (
    absurd_amounts, absurd_pod_amounts, absurd_numbers, absurd_replicas, many_names, blocked_by_quota, too_many_tasks,
    forge_placement, foreign_pod, copied_pod, command, endless_gates, groups, endless_restarts, churn, large_world,
    Hostile.slow_clients, Hostile.post,
)}  # fmt: skip
"""What he may try, by name."""


class Worker(Protocol):
    """Somebody who does harm. `told` counts what came of his deeds: by their name, and the answer's number or 0."""

    told: Counter[tuple[str, int]]
    chance: random.Random

    def act(self) -> None:
        """One deed."""

    def end(self) -> None:
        """What is still under way ends."""


@contextlib.contextmanager
def at_work(hostile: Sequence[Worker], pause_s: float) -> Iterator[None]:
    """All of them act at once, each with such a pause between two deeds, until the end of the block."""
    over = threading.Event()

    def work(he: Worker) -> None:
        while not over.wait(he.chance.uniform(0, 2 * pause_s)):
            he.act()

    threads = [threading.Thread(target=work, args=(he,)) for he in hostile]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for he in hostile:
            he.end()
