"""The road of an invented kind's pods through admission, controller, planner and a simulation; see `invented_table`."""

import random
from typing import Any

from extender_world import World, of, slots
from invented_kind import BEE, SWARMS, pods
from simulated_api import Api
from simulated_faults import Faults
from webhook_world import JSON, NamespaceWorld, OwnerWorld, apply, lookups, request

from controller.caches import SharedCaches
from controller.gangs.podgroups import PodGroups
from controller.kit import Kit
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.runtime import registry
from muster.workloads.table import gang_of, slot_of
from webhook import mutate, validate
from webhook.mutate.pod import mutate as admit
from webhook.offline.submission import Submission
from webhook.registration import configurations

FRAMEWORK = registry.framework()


def swarm(**spec: Any) -> JSON:
    """A Swarm of three pods, each of which needs half a node."""
    half = {"name": "node", "image": "i", "resources": {"requests": {"cpu": "16"}}}
    labels = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
    metadata = {"name": "hive", "namespace": "ns", "uid": "swarm-uid", "labels": labels}
    content = {"bees": 3, "template": {"spec": {"containers": [half]}}, **spec}
    return {"apiVersion": "example.com/v1", "kind": "Swarm", "metadata": metadata, "spec": content}


def registered() -> set[str]:
    """The kinds that admission is sent."""
    entries = [each for kind in configurations(url="https://x", ca_bundle=b"") for each in kind["webhooks"]]
    return {rule["resources"][0] for each in entries for rule in each["rules"]}


def admitted() -> JSON:
    """The Swarm as admission changes it."""
    verdict = mutate.workload.reviewer(NamespaceWorld())(request(swarm()))
    assert list(verdict.warnings) == ["1 template with bees"]
    return apply(swarm(), verdict.patch)


def shaped(made: JSON) -> list[JSON]:
    """Its pods, likewise."""
    changed = [admit(pod, "ns", lookups(owners=OwnerWorld(made)), FRAMEWORK) for pod in pods(made)]
    assert not [error for each in changed for error in each.errors]
    return [apply(pod, each.patch) for pod, each in zip(pods(made), changed, strict=True)]


def refused(made: JSON) -> set[str]:
    """The paths of what is wrong with a Swarm."""
    return {error.path for error in validate.workload.reviewer(lookups(), FRAMEWORK)(request(made)).errors}


def grouped(client: Any, bees: list[JSON]) -> tuple[PodGroup, list[Pod]]:
    """The PodGroup that the controller makes for the pods, and the pods."""
    caches = SharedCaches(client)
    store, groups = caches.pods.store, caches.groups.store
    there: list[Pod] = [client.add(PODS, bee) for bee in bees]
    for pod in there:
        store.add_object(pod)
    controller = PodGroups(Kit(client, None), caches)  # type: ignore[arg-type] # no Event is due
    [key] = {f"ns/{gang_of(pod)}" for pod in there}
    controller.process(key)
    [group] = client.all(POD_GROUPS)
    groups.add_object(group)
    for pod in there:
        store.discard(pod.metadata.key)
    client.merge_patch(SWARMS, "hive", {"status": {"landed": True, "why": "it rains"}}, "ns")
    controller.process(key)
    [over] = client.all(POD_GROUPS)
    assert (over.status.phase, over.status.ending) == ("Completed", "it rains")
    return group, there


def planned(group: PodGroup, bees: list[Pod], nodes: int) -> list[dict[str, list[str]]]:
    """The nodes that the planner gives to the pods."""
    world = World().nodes(nodes)
    world.state.on_pod_group(None, group)
    for bee in bees:
        world.state.on_pod(None, bee)
    return [slots(place) for place in of(world.session(world.progress, Enqueue(), Allocate()), decisions.Place)]


def main() -> None:
    """From admission to a placement."""
    assert "swarms" in registered()
    made = admitted()
    assert made["spec"]["template"]["metadata"]["labels"] == made["metadata"]["labels"]
    assert refused(made) == set()
    assert refused({**made, "spec": {**made["spec"], "lazy": True}}) == {"spec.lazy"}
    few = {**made["metadata"], "annotations": {"muster.dev/min-member": "4"}}
    assert refused({**made, "metadata": few}) == {"metadata.annotations[muster.dev/min-member]"}
    client: Any = Api(Faults(random.Random(1), 0, 0), lambda: 0.0, lambda *_: None)  # noqa: S311 - nothing fails
    made["metadata"]["uid"] = client.add(SWARMS, made).metadata.uid
    group, there = grouped(client, shaped(made))
    assert (group.spec.min_member, group.metadata.controller) == (3, there[0].metadata.controller)
    bees = {pod.metadata.name: int(pod.metadata.labels[BEE]) for pod in there}
    assert {pod.metadata.name: slot_of(pod.metadata) for pod in there} == {name: ("pods", bees[name]) for name in bees}
    assert not any(names.MEMBER_INDEX in pod.metadata.annotations for pod in there), "their own label says it"
    assert planned(group, there, 1) == []
    [place] = planned(group, there, 2)
    assert sorted(place["pods"]) in (["node-0", "node-0", "node-1"], ["node-0", "node-1", "node-1"])
    trial = Submission("ns", 0.0, {})
    trial.add([swarm()], "hive.yaml")
    trial.finish()
    assert [kind for kind, _ in trial.items] == [PODS, PODS, PODS, POD_GROUPS]


if __name__ == "__main__":
    main()
