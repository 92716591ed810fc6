"""Pods of a Job: names, labels and annotations, pinned or gated."""

from typing import Any

import pytest
from builders import job as a_job
from builders import placement as a_placement
from builders.manifests import task

from muster.api.muster.placement import Placement
from muster.api.names import CREATED_BY
from muster.api.volcano.batch import Job, VolumeSpec
from muster.volcano.manifests import Manifest, claims, mount
from muster.volcano.plugins.base import JobPlugin
from muster.volcano.plugins.registry import BUILT_IN, plugins_for
from muster.volcano.pods import complete_pod, pinned_or_gated, pod, usable
from muster.volcano.tasks import PodSlot

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "hello"}},
    "spec": {"containers": [{"name": "main"}], "nodeSelector": {"disk": "ssd"}},
}


def job(template: dict[str, Any] | None = None, **annotations: str) -> Job:
    """Job `n/j`, third version, with a task `w` of 4 in partitions of 2."""
    policy = {"totalPartitions": 2, "partitionSize": 2}
    return a_job(
        "j",
        [task("w", 4, template=template or TEMPLATE, partition_policy=policy)],
        "n",
        uid="u",
        queue="q",
        scheduler_name="volcano",
        priority_class_name="high",
        annotations=annotations,
        status={"version": 3, "retryCount": 1},
    )


def slot(of: Job, index: int) -> PodSlot:
    """A slot of its task."""
    return PodSlot(of.spec.tasks[0], index, f"j-w-{index}")


def placement(phase: str = "Planned", group_uid: str = "g") -> Placement:
    """Ranks 0 and 1 on node a, rank 2 on b, rank 3 nowhere yet."""
    return a_placement(pod_sets={"w": ["a", "a", "b"]}, gang_uid=group_uid, epoch=7, phase=phase)


def test_names_labels_and_annotations() -> None:
    """Everything that clients and the planner read is there, and the user's own stays."""
    made = pod(job(), slot(job(), 3))
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("j-w-3", "n")
    assert meta["labels"] == {
        "mine": "yes",
        "volcano.sh/task-index": "3",
        "volcano.sh/task-spec": "w",
        "volcano.sh/job-name": "j",
        "volcano.sh/job-namespace": "n",
        "volcano.sh/queue-name": "q",
        "volcano.sh/partition-id": "1",
    }
    assert meta["annotations"] == {
        "note": "hello",
        "volcano.sh/task-index": "3",
        "volcano.sh/task-spec": "w",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "3",
        "volcano.sh/template-uid": "j-w",
        "volcano.sh/job-retry-count": "1",
        "scheduling.k8s.io/group-name": "j-u",
    }
    assert [(o["uid"], o["controller"], o["kind"]) for o in meta["ownerReferences"]] == [("u", True, "Job")]
    assert (made["spec"]["schedulerName"], made["spec"]["priorityClassName"]) == ("volcano", "high")


@pytest.mark.parametrize(
    "key", ["gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "scheduling.volcano.sh/queue-allocation-gate"]
)
def test_a_pod_that_the_webhook_changes_does_not_say_that_it_was_reviewed(key: str) -> None:
    """Even if its template says so, and also where a plugin is why; any other was reviewed with its Job."""

    class Asks(JobPlugin):
        def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
            del job, slot
            manifest["metadata"]["annotations"][key] = "1"

    lies = {"muster.dev/reviewed": "true"}
    itself, other = job({**TEMPLATE, "metadata": {"labels": lies, "annotations": {key: "1"}}}), job()
    made = [complete_pod(itself, slot(itself, 0), []), complete_pod(other, slot(other, 0), [Asks([])])]
    assert [one["metadata"]["labels"]["muster.dev/reviewed"] for one in made] == ["false", "false"]
    assert complete_pod(other, slot(other, 0), [])["metadata"]["labels"]["muster.dev/reviewed"] == "true"


def test_the_template_wins_over_the_job_and_is_left_as_it_is() -> None:
    """SchedulerName and priorityClassName of the template stay; the template is not changed."""
    template = {"spec": {"schedulerName": "muster", "priorityClassName": "low", "containers": []}}
    of = job(template)
    made = pinned_or_gated(pod(of, slot(of, 0)), slot(of, 0), None)
    assert (made["spec"]["schedulerName"], made["spec"]["priorityClassName"]) == ("muster", "low")
    assert template == {"spec": {"schedulerName": "muster", "priorityClassName": "low", "containers": []}}


def test_annotations_of_the_job_that_pods_share() -> None:
    """Preemptable and the like are copied; of the two disruption budgets the first one is."""
    budgets = {"volcano.sh/jdb-max-unavailable": "1", "volcano.sh/jdb-min-available": "2"}
    of = job(None, **{"volcano.sh/preemptable": "true"}, **budgets)
    of.metadata.labels = {"volcano.sh/cooldown-time": "60s", "team": "a"}
    made = pod(of, slot(of, 0))["metadata"]
    assert made["annotations"]["volcano.sh/preemptable"] == "true"
    assert made["labels"]["volcano.sh/cooldown-time"] == "60s", "labels come from labels"
    assert not {"volcano.sh/preemptable", "team"} & made["labels"].keys()
    assert "volcano.sh/cooldown-time" not in made["annotations"]
    assert made["annotations"]["volcano.sh/jdb-min-available"] == "2"
    assert "volcano.sh/jdb-max-unavailable" not in made["annotations"]
    template = {"metadata": {"annotations": {"volcano.sh/jdb-max-unavailable": "50%"}}}
    own = pod(job(template, **budgets), slot(job(template), 0))["metadata"]["annotations"]
    assert own["volcano.sh/jdb-max-unavailable"] == "50%"
    assert "volcano.sh/jdb-min-available" not in own, "a pod has one budget"


def test_a_pod_is_created_by_who_created_its_job() -> None:
    """A template names nobody, as it is its author's."""
    forged = {"metadata": {"annotations": {CREATED_BY: "bob"}}, "spec": TEMPLATE["spec"]}
    for of, creator in ((job(forged), None), (job(forged, **{CREATED_BY: "alice"}), "alice")):
        assert pod(of, slot(of, 0))["metadata"]["annotations"].get(CREATED_BY) == creator


def test_born_pinned() -> None:
    """A slot with a node is pinned to it, by the placement's epoch."""
    of = job()
    made = pinned_or_gated(pod(of, slot(of, 2)), slot(of, 2), placement())
    (term,) = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    annotations = made["metadata"]["annotations"]
    assert (annotations["muster.dev/node"], annotations["muster.dev/epoch"]) == ("b", "7")
    assert "schedulingGates" not in made["spec"]


def test_born_gated() -> None:
    """A slot without a node waits behind the gate, next to the user's own gates."""
    of = job({"spec": {"containers": [], "schedulingGates": [{"name": "mine"}]}})
    for known in (None, placement()):
        made = pinned_or_gated(pod(of, slot(of, 3)), slot(of, 3), known)
        assert made["spec"]["schedulingGates"] == [{"name": "mine"}, {"name": "muster.dev/gang"}]
        assert "muster.dev/node" not in made["metadata"]["annotations"]


@pytest.mark.parametrize("gate", ["muster.dev/gang", "scheduling.volcano.sh/queue-allocation-gate"])
def test_gates_of_musters_in_a_template(gate: str) -> None:
    """A pod with a node is born without them: nobody would take them away. One without a node has one gate."""
    of = job({"spec": {"containers": [], "schedulingGates": [{"name": gate}, {"name": "mine"}]}})
    pinned = pinned_or_gated(pod(of, slot(of, 2)), slot(of, 2), placement())
    assert pinned["spec"]["schedulingGates"] == [{"name": "mine"}]
    gated = pinned_or_gated(pod(of, slot(of, 3)), slot(of, 3), placement())
    assert gated["spec"]["schedulingGates"] == [{"name": "mine"}, {"name": "muster.dev/gang"}]


def test_which_placements_are_usable() -> None:
    """Only one of this very gang that is being carried out."""
    assert usable(placement(), "g")
    assert usable(placement("Binding"), "g")
    assert not usable(placement("Bound"), "g")
    assert not usable(placement("Abandoned"), "g")
    assert not usable(placement(), "another")
    assert not usable(None, "g")


def test_volumes_are_mounted_and_claims_have_steady_names() -> None:
    """A named claim is used, another one created; both are mounted in each container, a claim once."""
    of = job()
    of.spec.volumes = [
        VolumeSpec(mount_path="/data", volume_claim_name="shared"),
        VolumeSpec(mount_path="/again", volume_claim_name="shared"),
        VolumeSpec(mount_path="/scratch", volume_claim={"accessModes": ["ReadWriteOnce"]}),
    ]
    (claim,) = claims(of)
    assert claim["metadata"]["name"].startswith("j-pvc-")
    assert claims(of) == [claim]
    made = pod(of, slot(of, 0))
    mount(of, made)
    sources = {one["name"]: one["persistentVolumeClaim"]["claimName"] for one in made["spec"]["volumes"]}
    paths = {one["mountPath"]: sources[one["name"]] for one in made["spec"]["containers"][0]["volumeMounts"]}
    assert paths == {"/data": "shared", "/scratch": claim["metadata"]["name"]}


def test_entries_without_a_name_are_left_to_the_api_server() -> None:
    """Of variables, ports, mounts and volumes: with every plugin the pod is made, and the API server refuses it."""
    entries = {"env": [{"value": "a"}, {"name": "b"}], "ports": [{}], "volumeMounts": [{}]}
    spec = {"containers": [{**entries}, {**entries}], "initContainers": [{**entries}], "volumes": [{}]}
    given = job({"spec": spec})
    given.spec.volumes.append(VolumeSpec(mount_path="/data"))
    plugins = {name: ["--wait-master-enabled", "--master=w", "--head=w"] for name in BUILT_IN}
    made = complete_pod(given, slot(given, 1), plugins_for(plugins))
    for container in (*made["spec"]["containers"], made["spec"]["initContainers"][0]):
        assert [each for each in container["env"] if each in entries["env"]] == entries["env"]
