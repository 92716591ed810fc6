"""What one tenant may not do to others, and what he may write without any effect on them: each cell is a test."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from jobs import job, task
from rights_world import World, two_tenants
from tenants import JSON, owner, pod

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, LEASES, NAMESPACES, NODES, PODS, SECRETS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import APIError, Forbidden, Invalid, NotFound
from musterctl.plane.plane import Plane
from webhook.objects.names import WRITTEN

pytestmark = [pytest.mark.plane, pytest.mark.long]
Deed = Callable[[World], object]
HOOKS: Resource[JSON] = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
    dict[str, Any], namespaced=False
)  # fmt: skip
MOST = 2**31 - 1


@pytest.fixture(scope="module")
def world(
    module_plane: Callable[..., Plane], tmp_path_factory: pytest.TempPathFactory, wait_for: Callable[..., Any]
) -> Iterator[World]:
    """Two tenants of a plane that they may fill."""
    with two_tenants(module_plane(), tmp_path_factory.mktemp("tenants"), wait_for) as one:
        yield one


class Refused(NamedTuple):
    """Who tries what, how, and the error that must come; `says` stands in it."""

    what: str
    deed: Deed
    error: type[APIError] = Forbidden
    says: str = ""


class Admitted(NamedTuple):
    """Who writes what, how, and what becomes true of it in the end."""

    what: str
    deed: Deed
    then: Callable[[World], object] = lambda _: True


def command(action: str, target: JSON, name: str = "") -> JSON:
    """A Command."""
    return {"metadata": {"name": name} if name else {"generateName": "his-"}, "action": action, "target": target}


def group(name: str, queue: str = "default", minimum: int = 1, **more: Any) -> JSON:
    """A PodGroup."""
    return {"metadata": {"name": name}, "spec": {"queue": queue, "minMember": minimum}, **more}


def placement(name: str) -> JSON:
    """A Placement that would keep all of a node."""
    spec = {"podGroupUID": "u", "epoch": 1, "podSets": [{"name": "w", "runs": [{"node": "node-0", "count": 20000}]}]}
    return {"metadata": {"name": name}, "spec": spec}


def create(resource: Resource[Any], obj: JSON | Callable[[World], JSON], *, theirs: bool = False) -> Deed:
    """He creates an object, in his own namespace or in theirs."""

    def deed(world: World) -> object:
        where = (world.innocent if theirs else world.he).namespace if resource.namespaced else None
        return world.he.client.create(resource, obj(world) if callable(obj) else obj, where)

    return deed


def patch(resource: Resource[Any], name: Callable[[World], str], change: JSON, subresource: str = "") -> Deed:
    """He changes an object of the cluster's."""
    return lambda world: world.he.client.merge_patch(resource, name(world), change, subresource=subresource)


def close_by_changing_a_command(world: World) -> None:
    """A Command that nobody acts on is made, and then given another target; the controller would delete it before."""
    he, harmless = world.he, {"apiVersion": "v1", "kind": "Nothing", "name": "x", "uid": "x"}
    made = command("CloseQueue", harmless, "later")
    made["metadata"]["finalizers"] = ["example.com/stays"]
    he.client.create(COMMANDS, made, he.namespace)
    try:
        he.client.merge_patch(COMMANDS, "later", {"target": owner(world.queue)}, he.namespace)
    finally:
        he.client.merge_patch(COMMANDS, "later", {"metadata": {"finalizers": None}}, he.namespace)
        with contextlib.suppress(NotFound):
            he.client.delete(COMMANDS, "later", he.namespace)


def start_by_a_status(world: World) -> None:
    """Create the user's own PodGroup, and write a phase that only Muster decides."""
    world.he.client.create(POD_GROUPS, group("started"), world.he.namespace)
    world.he.client.merge_patch(POD_GROUPS, "started", {"status": {"phase": "Running"}}, world.he.namespace)


def move(queue: Callable[[World], str]) -> Deed:
    """He makes a PodGroup of his own, and moves it to another queue."""

    def deed(world: World) -> None:
        world.he.client.create(POD_GROUPS, group("moving"), world.he.namespace)
        world.he.client.merge_patch(POD_GROUPS, "moving", {"spec": {"queue": queue(world)}}, world.he.namespace)

    return deed


QUEUE_NAME = lambda world: world.queue.metadata.name  # noqa: E731 - reads as a noun in the table
THEIRS = lambda world: world.innocent.namespace  # noqa: E731

REFUSED = [
    # queues
    Refused("he makes a queue", create(QUEUES, {"metadata": {"name": "his"}, "spec": {}})),
    Refused("he raises a queue's weight", patch(QUEUES, QUEUE_NAME, {"spec": {"weight": 9}})),
    Refused("he writes a queue's status", patch(QUEUES, QUEUE_NAME, {"status": {"state": "Closed"}}, "status")),
    Refused("he deletes a queue", lambda w: w.he.client.delete(QUEUES, w.queue.metadata.name)),
    Refused("he closes a queue by a Command in his namespace",
        create(COMMANDS, lambda w: command("CloseQueue", owner(w.queue))),
        says="is not allowed to send CloseQueue to queues.scheduling.volcano.sh"),
    Refused("he opens a queue by a Command", create(COMMANDS, lambda w: command("OpenQueue", owner(w.closed)))),
    Refused("he closes a queue by a Command that names another version of it",
        create(COMMANDS, lambda w: command("CloseQueue",
        {**owner(w.queue), "apiVersion": "scheduling.volcano.sh/v1alpha2"}))),
    Refused("he closes a queue by a Command in their namespace",
        create(COMMANDS, lambda w: command("CloseQueue", owner(w.queue)), theirs=True), says="cannot create resource"),
    Refused("he gives a harmless Command a queue as its target", close_by_changing_a_command),
    Refused("he writes the phase of a PodGroup", start_by_a_status, says="only Muster writes"),
    # Jobs and pods of others
    Refused("he makes a Job in their namespace",
        create(JOBS, lambda w: job("x", THEIRS(w), task("w", 1)), theirs=True)),
    Refused("he deletes their Job", lambda w: w.he.client.delete(JOBS, "train", THEIRS(w))),
    Refused("he writes the status of their Job",
        lambda w: w.he.client.merge_patch(JOBS, "train", {"status": {}}, THEIRS(w), subresource="status")),
    Refused("he aborts their Job by a Command in their namespace",
        create(COMMANDS, lambda w: command("AbortJob", owner(w.train)), theirs=True)),
    Refused("he makes a pod in their namespace", create(PODS, pod("x"), theirs=True)),
    Refused("he deletes their pod", lambda w: w.he.client.delete(PODS, "train-w-0", THEIRS(w))),
    Refused("he lists their pods", lambda w: w.he.client.list(PODS, THEIRS(w))),
    Refused("he evicts their pod", lambda w: w.he.client.evict(THEIRS(w), "train-w-0", w.member.metadata.uid)),
    Refused("he binds a pod of his own to a node",
        lambda w: w.he.client.bind(w.he.namespace, "mine-w-0", "", "node-0", {})),
    # placements
    Refused("he makes a Placement in his namespace", create(PLACEMENTS, placement("his"))),
    Refused("he makes a Placement in their namespace", create(PLACEMENTS, placement("his"), theirs=True)),
    Refused("he changes the Placement of his Job",
        lambda w: w.he.client.merge_patch(PLACEMENTS, w.my_group, {"spec": {"epoch": 9}}, w.he.namespace)),
    Refused("he writes the status of the Placement of his Job",
        lambda w: w.he.client.merge_patch(PLACEMENTS, w.my_group, {"status": {"phase": "Planned"}}, w.he.namespace,
        subresource="status")),
    Refused("he deletes the Placement of his Job",
        lambda w: w.he.client.delete(PLACEMENTS, w.my_group, w.he.namespace)),
    Refused("he deletes the Placement of their Job", lambda w: w.he.client.delete(PLACEMENTS, w.group, THEIRS(w))),
    Refused("he reads the Placements of their namespace", lambda w: w.he.client.list(PLACEMENTS, THEIRS(w))),
    # secrets
    Refused("he reads the ssh keys of their Job", lambda w: w.he.client.get(SECRETS, "train-ssh", THEIRS(w))),
    Refused("he lists their Secrets", lambda w: w.he.client.list(SECRETS, THEIRS(w))),
    Refused("he lists the Secrets of all", lambda w: w.he.client.list(SECRETS)),
    Refused("he reads the hosts of their Job", lambda w: w.he.client.get(CONFIG_MAPS, "train-svc", THEIRS(w))),
    # PodGroups
    Refused("he makes a PodGroup in their namespace", create(POD_GROUPS, group("x"), theirs=True)),
    Refused("he writes the status of their PodGroup",
        lambda w: w.he.client.merge_patch(POD_GROUPS, w.group, {"status": {"phase": "Pending"}}, THEIRS(w))),
    Refused("he makes a PodGroup of an absurd size", create(POD_GROUPS, group("x", minimum=MOST)), Invalid, "20000"),
    Refused("he makes a PodGroup in a queue that is closed",
            create(POD_GROUPS, lambda w: group("x", w.closed.metadata.name)), Invalid, "Closed"),
    Refused("he moves a PodGroup to a queue that is closed",
            move(lambda w: w.closed.metadata.name), Invalid, "Closed"),
    Refused("he moves a PodGroup to a queue that does not exist", move(lambda _: "nowhere"), Invalid, "nowhere"),
    Refused("he moves a PodGroup to the root of all queues", move(lambda _: "root"), Invalid, "root"),
    Refused("he moves the PodGroup of his Job out of the queue of the Job",
        lambda w: w.he.client.merge_patch(POD_GROUPS, w.my_group, {"spec": {"queue": w.queue.metadata.name}},
        w.he.namespace), Invalid, "must stay 'default'"),
    # the cluster
    Refused("he changes a node", patch(NODES, lambda w: w.nodes[0], {"metadata": {"labels": {"x": "y"}}})),
    Refused("he gives a node other amounts", patch(NODES, lambda w: w.nodes[0], {"status": {}}, "status")),
    Refused("he names another queue for his namespace", patch(NAMESPACES, lambda w: w.he.namespace, {"metadata": {}})),
    Refused("he takes away the Lease of the scheduler",
            lambda w: w.he.client.delete(LEASES, names.SCHEDULER_LEASE, names.SYSTEM_NAMESPACE)),
    Refused("he takes away the webhooks", lambda w: w.he.client.delete(HOOKS, "muster")),
]  # fmt: skip


@pytest.mark.parametrize("cell", REFUSED, ids=lambda cell: f"{cell.what}: {cell.error.__name__}")
def test_refused(world: World, cell: Refused) -> None:
    """He is refused, and nothing has changed."""
    refused(world, cell)


def refused(world: World, cell: Refused) -> None:
    """Tries it."""
    try:
        with pytest.raises(cell.error) as found:
            cell.deed(world)
        assert cell.says in str(found.value)
        world.assert_unharmed()
    finally:
        world.clean()


def forged_pod(world: World, *, pinned: bool = False, **more: Any) -> JSON:
    """A pod that says of itself all that their Job's first pod says; `pinned`: also its node and epoch."""
    theirs = world.member.metadata
    left_out = {names.CREATED_BY, *(() if pinned else (names.NODE, names.EPOCH))}
    copied = {key: value for key, value in theirs.annotations.items() if key not in left_out}
    metadata = {"labels": dict(theirs.labels), "annotations": {**copied, **more.pop("annotations", {})}}
    metadata |= more.pop("metadata", {})
    return pod(more.pop("name", "train-w-0"), metadata=metadata, **more)


def hold_every_node(make: Callable[[World, int, str], JSON]) -> Deed:
    """He makes one such pod for each node."""

    def deed(world: World) -> None:
        for number, node in enumerate(world.nodes):
            world.he.client.create(PODS, make(world, number, node), world.he.namespace)

    return deed


def claims(node: str, **more: str) -> JSON:
    """What the planner writes on a pod that it has pinned to the node."""
    return {"annotations": {names.NODE: node, names.EPOCH: "999", **more}}


def unbound(*found: str) -> Callable[[World], bool]:
    """These pods of his, or all but those of his Job, have no node."""

    def then(world: World) -> bool:
        pods = [one for one in world.admin.list(PODS, world.he.namespace) if not one.metadata.name.startswith("mine-")]
        return all(not one.spec.node_name for one in pods if not found or one.metadata.name in found)

    return then


def no_commands(world: World) -> bool:
    """His Commands are gone, carried out or dropped."""
    return not world.admin.list(COMMANDS, world.he.namespace)


def set_aside(world: World) -> bool:
    """His PodGroup says that it was set aside."""
    his = world.admin.get(POD_GROUPS, "absurd", world.he.namespace)
    return any(condition.reason == "SetAside" for condition in his.status.conditions)


def grow_absurdly(world: World) -> None:
    """A small PodGroup is given an absurd minimum, which admission does not see."""
    world.he.client.create(POD_GROUPS, group("absurd"), world.he.namespace)
    world.he.client.merge_patch(POD_GROUPS, "absurd", {"spec": {"minMember": MOST}}, world.he.namespace)


def forge_status(world: World) -> None:
    """PodGroups' status is no subresource: a new PodGroup may have any."""
    status = {"phase": "Running", "running": 1000}
    made = group("forged", world.queue.metadata.name, 1000, status=status)
    made["spec"]["minResources"] = {"nvidia.com/gpu": "1000", "cpu": "8E"}
    world.he.client.create(POD_GROUPS, made, world.he.namespace)


def own_gang_behind_a_gate(world: World) -> None:
    """A gang for all of the cluster, whose pods carry a gate of somebody who never takes it away."""
    made = job("gated", world.he.namespace, task("w", 8))
    made["spec"]["tasks"][0]["template"]["spec"] |= {
        "schedulingGates": [{"name": "example.com/never"}],
        "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}],
    }
    world.he.client.create(JOBS, made, world.he.namespace)


ADMITTED = [
    Admitted("a Command of his namespace to their Job by its UID does nothing",
        create(COMMANDS, lambda w: command("AbortJob", owner(w.train))), no_commands),
    Admitted("a Command to a queue of no API group does nothing",
        create(COMMANDS, lambda w: command("CloseQueue", {**owner(w.queue), "apiVersion": "v1"}))),
    Admitted("a Command to his Job with the UID of theirs does nothing",
        create(COMMANDS, lambda w: command("AbortJob", {**owner(w.mine), "uid": w.train.metadata.uid})), no_commands),
    Admitted("a pod of his that their Job owns, called like theirs, fails: not theirs",
        create(PODS, lambda w: forged_pod(w, scheduler="default-scheduler",
        metadata={"ownerReferences": [owner(w.train)],
        "annotations": {"kwok.muster.dev/run-seconds": "0.1", "kwok.muster.dev/exit-code": "1"}}))),
    Admitted(
        "a pod of his with the name of their gang waits for a gang of his own",
        create(PODS, lambda w: forged_pod(w, gpus=8)),
        unbound("train-w-0"),
    ),
    Admitted("a pod of his that says it is of their namespace counts nowhere",
        create(PODS, lambda w: forged_pod(w, annotations={names.JOB_NAMESPACE: w.innocent.namespace}, gpus=8)),
        unbound("train-w-0")),
    Admitted("a PodGroup of his with the name and the owner of theirs is none of their Job's",
        create(POD_GROUPS, lambda w: group(w.group) | {"metadata": {"name": w.group,
        "ownerReferences": [owner(w.train)]}})),
    Admitted("a PodGroup that grows absurdly is set aside alone", grow_absurdly, set_aside),
    Admitted("the forged status of a PodGroup in their queue takes nothing of it", forge_status),
    Admitted("pods of his in a gang that does not exist hold no node",
        hold_every_node(lambda _, number, node: pod(f"lost-{number}", gpus=8,
        metadata={"labels": {names.GANG: "nobody"}}, nodeSelector={"kubernetes.io/hostname": node},
        schedulingGates=[{"name": names.GATE}])), unbound()),
    Admitted("pods of his made from their pods' YAML hold no node",
        hold_every_node(lambda w, number, node: forged_pod(w, name=f"copy-{number}", gpus=8,
        nodeSelector={"kubernetes.io/hostname": node})), unbound()),
    Admitted("a pod of another scheduler that he puts on their node himself counts in no queue, and displaces nobody",
        create(PODS, lambda w: pod("put", scheduler="nobody", gpus=1, nodeName=w.member.spec.node_name,
        metadata={"labels": {names.QUEUE_NAME: w.queue.metadata.name},
        "annotations": {names.GPU_FRACTION: "0.9", names.GPU_NUM_DEVICES: "4"}}))),
    Admitted("a gang of his whose gates never go holds no node", own_gang_behind_a_gate, unbound()),
]  # fmt: skip


@pytest.mark.parametrize("cell", ADMITTED, ids=lambda cell: cell.what)
def test_admitted(world: World, cell: Admitted) -> None:
    """He may write it; it comes to nothing, and nothing of theirs has changed."""
    try:
        cell.deed(world)
        world.wait_for(lambda: cell.then(world), 30, cell.what)
        world.assert_another_gang_starts()
        world.assert_unharmed()
    finally:
        world.clean()


PINNED = [
    Refused("he makes a pod that is a copy of theirs", create(PODS, lambda w: forged_pod(w, pinned=True, gpus=8))),
    Refused("he makes a pod on their node that is a copy of theirs",
        create(PODS, lambda w: forged_pod(w, pinned=True, name="put", nodeName=w.member.spec.node_name))),
    Refused("he puts a pod on their node himself, in their queue and as a member of their gang",
        create(PODS, lambda w: forged_pod(w, name="put", gpus=8, nodeName=w.member.spec.node_name))),
    Refused("he puts a pod of another scheduler on their node, in their queue and as a member of their gang",
        create(PODS, lambda w: forged_pod(w, name="put", scheduler="nobody", gpus=8,
        nodeName=w.member.spec.node_name))),
    Refused("he makes a pod that says which GPUs of which nodes it has",
        create(PODS, pod("has", metadata={"annotations": {names.GPU_DEVICES_CHOSEN: "0,1", names.GPU_PORTION: "1"}}))),
    Refused("he makes pods that say they are pinned to every node",
        hold_every_node(lambda _, number, node: pod(f"pinned-{number}", gpus=8,
        metadata={**claims(node), "labels": {names.GANG: "nobody"}}, schedulingGates=[{"name": names.GATE}]))),
    Refused("he makes pods with the markers of a shared scheduler that say they are pinned",
        hold_every_node(lambda _, number, node: pod(f"marked-{number}", scheduler="default-scheduler", gpus=8,
        metadata=claims(node), limits={names.MEMBER_MARKER: 1, names.BINDING_MARKER: 1}))),
    Refused("he pins a pod of his that exists", lambda w: w.he.client.merge_patch(PODS,
        w.he.client.create(PODS, pod("mine", gpus=8, schedulingGates=[{"name": "example.com/g"}]),
        w.he.namespace).metadata.name, {"metadata": claims(w.nodes[0])}, w.he.namespace)),
]  # fmt: skip


@pytest.mark.parametrize("cell", PINNED, ids=lambda cell: cell.what)
def test_only_muster_pins(world: World, cell: Refused) -> None:
    """The policy muster-pods refuses it, whoever admits pods otherwise."""
    refused(world, cell._replace(says="muster-pods"))


NOTES = sorted(WRITTEN)
"""Every label and annotation that Muster writes for itself."""
LIES = ("1", "true", "w", "0,1,2,3,4,5,6,7")


def forge(world: World, key: str) -> list[str]:
    """He writes a note on all that he may have, with words that it could have; return what was let in."""
    lies = [*LIES, world.group, world.queue.metadata.name, world.train.metadata.uid, world.nodes[0]]
    let_in = []
    for number, lie in enumerate(lies):
        notes = {"annotations": {key: lie}, "labels": {key: lie} if len(lie) <= 63 and "," not in lie else {}}
        name, where = f"forged-{number}", world.he.namespace
        gang = job(name, where, task("w", 1))
        gang["metadata"] |= notes
        gang["spec"]["tasks"][0]["template"]["metadata"] = notes
        for resource, made in (
            (PODS, pod(name, metadata=notes)),
            (POD_GROUPS, group(name, metadata={"name": name, **notes})),
            (JOBS, gang),
            (CONFIG_MAPS, {"metadata": {"name": name, **notes}}),
        ):
            with contextlib.suppress(Forbidden, Invalid):
                world.he.client.create(resource, made, where)
                let_in.append(f"{resource.plural}: {lie}")
    return let_in


@pytest.mark.parametrize("key", NOTES)
def test_a_note_of_musters_changes_nothing_of_theirs(world: World, key: str) -> None:
    """Those by which a pod gets a node, GPUs or a placement are refused; any other is about his own objects."""
    try:
        let_in = forge(world, key)
        on_pods = [each for each in let_in if each.startswith("pods: ")]
        guarded = {names.NODE, names.EPOCH, names.GPU_DEVICES_CHOSEN, names.GPU_PORTION, names.CREATED_BY}
        assert bool(on_pods) == (key not in guarded)
        assert any(each.startswith("podgroups: ") for each in let_in) == (key != names.PLACEMENT)
        world.assert_another_gang_starts()
        world.assert_unharmed()
    finally:
        for one in world.admin.list(CONFIG_MAPS, world.he.namespace):
            if one.metadata.name.startswith("forged-"):
                world.admin.delete(CONFIG_MAPS, one.metadata.name, world.he.namespace)
        world.clean()


@pytest.fixture
def waiting(world: World) -> Iterator[Callable[[str], Any]]:
    """Makes a pod of theirs that fits no node."""
    made: list[str] = []

    def make(scheduler: str) -> Any:
        one = pod(f"waits-{len(made)}", scheduler=scheduler, nodeSelector={"no": "where"})
        made.append(one["metadata"]["name"])
        return world.innocent.client.create(PODS, one, world.innocent.namespace)

    yield make
    for name in made:
        world.admin.delete(PODS, name, world.innocent.namespace, grace_period_s=0)


def binding(of: Any, node: str) -> JSON:
    """What kube-scheduler sends to have a pod bound."""
    meta = of.metadata
    return {"PodName": meta.name, "PodNamespace": meta.namespace, "PodUID": meta.uid, "Node": node}


@pytest.mark.parametrize("scheduler", ["muster", "default-scheduler"])
def test_he_asks_the_extender_to_bind_their_pod(world: World, waiting: Callable[[str], Any], scheduler: str) -> None:
    """Whosever scheduler the pod has, it stays where it is: nowhere."""
    theirs = waiting(scheduler)
    status, answer = world.post_to_extender("/bind", binding(theirs, world.nodes[0]))
    assert status == 200
    assert answer["Error"]
    assert not world.admin.get(PODS, theirs.metadata.name, world.innocent.namespace).spec.node_name
    world.assert_unharmed()


def test_he_asks_the_extender_to_bind_a_member_of_their_gang_elsewhere(world: World) -> None:
    """It runs where it runs."""
    member = world.member
    elsewhere = next(node for node in world.nodes if node != member.spec.node_name)
    _, answer = world.post_to_extender("/bind", binding(member, elsewhere))
    assert answer["Error"]
    assert world.member.spec.node_name == member.spec.node_name
    world.assert_unharmed()


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"Content-Type": "text/plain"}, 415), ({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 403)],
    ids=["as plain text", "from a web page", "by another host's name"],
)
def test_a_web_page_of_his_asks_the_extender(world: World, headers: dict[str, str], code: int) -> None:
    """It is not heard."""
    status, _ = world.post_to_extender("/bind", binding(world.member, world.nodes[0]), **headers)
    assert status == code
    world.assert_unharmed()


def test_a_review_does_not_tell_him_what_their_namespace_forbids(world: World) -> None:
    """He is told that such pods are not admitted, and not by which policy."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    world.admin.merge_patch(NAMESPACES, world.innocent.namespace, {"metadata": {"labels": labels}})
    try:
        body = job("probe", world.innocent.namespace, task("w", 1))
        request = {
            "uid": "probe",
            "kind": {"group": JOBS.group, "version": JOBS.version, "kind": JOBS.kind},
            "namespace": world.innocent.namespace,
            "operation": "CREATE",
            "userInfo": {"username": world.he.user, "groups": world.he.groups},
            "object": body,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        status, answer = world.post_to_webhook("/validate/job", review)
    finally:
        gone = {"pod-security.kubernetes.io/enforce": None}
        world.admin.merge_patch(NAMESPACES, world.innocent.namespace, {"metadata": {"labels": gone}})
    assert status == 200
    said = answer["response"]["status"]["message"]
    assert "the namespace does not admit such pods" in said
    assert "PodSecurity" not in said
    assert "restricted" not in said
    with pytest.raises(NotFound):
        world.admin.get(JOBS, "probe", world.innocent.namespace)
    world.assert_unharmed()
