"""The gang of a framework is its world: minimum, PodGroup and environment of one group agree, for every owner."""

from typing import Any

import jsonpatch
import msgspec
import pytest
from frameworks_world import FRAMEWORK, JOBSET, LWS, OWNERS, Group, env_of, jobset, leader_worker_set, template
from webhook_world import lookups

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import named_gang
from muster.workloads.table import group_name, min_member, slot_of, source_of, world_of
from webhook.mutate.pod import mutate

JSON = dict[str, Any]
OWNED = [name for name in OWNERS if not name.startswith(("Pod", "Volcano"))]
FORMS = {"torch": "PET_NNODES", "jax": "JAX_NUM_PROCESSES", "xgboost": "DMLC_NUM_WORKER"}


def least(group: Group) -> int:
    """The minimum of the gang of this pod."""
    pod = msgspec.convert(group.pod, Pod)
    source = source_of(pod.metadata)
    return min_member(pod, msgspec.convert(group.owner, source.type) if source else None)


def admitted(group: Group) -> JSON:
    """The pod of a group in a queue, after admission."""
    group.pod["metadata"]["labels"]["muster.dev/queue"] = "default"
    verdict = mutate(group.pod, "team", lookups(owners=group), FRAMEWORK)
    assert not verdict.errors
    pod: JSON = jsonpatch.apply_patch(group.pod, verdict.patch)
    return pod


def test_the_label_of_the_controller_is_the_index() -> None:
    """The template of a StatefulSet may have an annotation of that name, the same for all pods."""
    slot = slot_of(ObjectMeta(name="p", labels={names.POD_INDEX: "3"}, annotations={names.POD_INDEX: "0"}))
    assert slot is not None
    assert slot.rank == 3


@pytest.mark.parametrize("owner", OWNED)
@pytest.mark.parametrize("framework", FORMS)
def test_the_minimum_is_the_size(owner: str, framework: str) -> None:
    """What the pods wait for is what starts together."""
    group = OWNERS[owner](template(framework, {}, {}))
    pod = admitted(group)
    assert env_of(pod["spec"]["containers"][0])[FORMS[framework]] == str(least(group)) == "4"
    meta = msgspec.convert(pod["metadata"], ObjectMeta)
    assert named_gang(meta) == group_name(meta)
    assert slot_of(meta) is not None


@pytest.mark.parametrize("owner", OWNED)
@pytest.mark.parametrize(
    ("annotations", "minimum"),
    [({"muster.dev/min-member": "3"}, 3), ({"muster.dev/min-member": "9"}, 4), ({"muster.dev/elastic": "2:4"}, 2)],
)
def test_who_needs_fewer_says_so(owner: str, annotations: JSON, minimum: int) -> None:
    """An annotation, but never more than there are; of an elastic world the minimum."""
    assert least(OWNERS[owner](template("torch", annotations, {}))) == minimum


def meta_of(group: Group, **labels: str) -> ObjectMeta:
    """The metadata of its pod, with other labels."""
    return msgspec.convert(
        {**group.pod["metadata"], "labels": {**group.pod["metadata"]["labels"], **labels}}, ObjectMeta
    )


def test_one_gang_over_the_jobs_of_a_jobset() -> None:
    """Of each ReplicatedJob; also after the JobSet has made its Jobs anew. Without a framework each Job is one."""
    two = jobset(template("torch", {}, {}), jobs=2)
    assert group_name(meta_of(two)) == group_name(meta_of(two, **{f"{JOBSET}/job-index": "0"}))
    assert group_name(meta_of(two)) == "podgroup-jobset-train.node"
    assert group_name(meta_of(two, **{f"{JOBSET}/replicatedjob-name": "other"})) == "podgroup-jobset-train.other"
    assert (above := world_of(meta_of(two)))
    assert (above[0].kind, above[1]) == ("JobSet", "train")
    plain = meta_of(two)
    del plain.labels[names.FRAMEWORK]
    assert (group_name(plain), world_of(plain)) == ("podgroup-uid", None)


def test_one_gang_for_leader_and_workers() -> None:
    """They belong to two StatefulSets; each group of a LeaderWorkerSet is a gang."""
    worker = leader_worker_set(template("torch", {}, {}))
    leader = meta_of(worker, **{f"{LWS}/worker-index": "0"})
    assert group_name(meta_of(worker)) == group_name(leader) == "podgroup-lws-train.1"


def test_ranks_of_a_gang_differ() -> None:
    """The planner is told the rank where the index of the pod counts in one Job only."""
    slot = slot_of(msgspec.convert(admitted(jobset(template("torch", {}, {}), jobs=2))["metadata"], ObjectMeta))
    assert slot
    assert slot.rank == 3


def test_a_long_name_of_a_gang() -> None:
    """A label holds 63 characters; beyond that the gang stands in Volcano's annotation."""
    group = jobset(template("torch", {}, {}))
    group.pod["metadata"]["labels"][f"{JOBSET}/jobset-name"] = "t" * 50
    pod = admitted(group)
    assert pod["metadata"]["annotations"][names.GROUP_NAME] == f"podgroup-jobset-{'t' * 50}.node"
    assert names.GANG not in pod["metadata"]["labels"]
