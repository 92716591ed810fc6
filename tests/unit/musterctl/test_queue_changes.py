"""`muster queue create`, `update` and `delete`: what is sent, and what is refused before."""

from typing import Any

import pytest
from answering_server import FORBIDDEN, Server
from builders import manifests

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
NODES = "/api/v1/nodes"


def listed(*items: Any) -> Any:
    """The answer to a list."""
    return (200, {"metadata": {"resourceVersion": "1"}, "items": [*items]}, [])


@pytest.fixture
def api(server: Server) -> Server:
    """Takes every queue; it has one queue of TPUs, and one node of GPUs."""
    server.answers[f"GET {NODES}"] = listed(manifests.node("n", gpus=8))
    has = {"metadata": {"name": "old"}, "spec": {"deserved": {"google.com/tpu": "4"}}}
    server.answers[f"GET {QUEUES}"] = listed(has)
    server.answers[f"POST {QUEUES}"] = (201, {"metadata": {"name": "q"}}, [])
    server.answers[f"PATCH {QUEUES}/q"] = (200, {"metadata": {"name": "q"}}, [])
    return server


@pytest.mark.parametrize(("options", "spec", "metadata"), [
    ([], {}, {}),
    (["--parent=p", "--weight=3", "--priority=-1"], {"parent": "p", "weight": 3, "priority": -1}, {}),
    (["--not-reclaimable"], {"reclaimable": False}, {}),
    (["--capability=nvidia.com/gpu=8,cpu=4", "--deserved=google.com/tpu=2", "--guarantee=memory=1Gi"],
        {"capability": {"nvidia.com/gpu": "8", "cpu": "4"}, "deserved": {"google.com/tpu": "2"},
        "guarantee": {"resource": {"memory": "1Gi"}}}, {}),
    (["--namespace-selector=team=a"], {}, {"annotations": {"muster.dev/namespace-selector": "team=a"}}),
    (["--namespace-selector=", "--pool=none"], {}, {}),
    (["--pool=b"], {}, {"labels": {"muster.dev/node-pool": "b"}}),
])  # fmt: skip
def test_a_new_queue(asked: Any, api: Server, options: list[str], spec: Any, metadata: Any) -> None:
    """It has the defaults of a queue, and what is given; what it would not have is left out."""
    result = asked("queue", "create", "q", *options)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    [sent] = api.bodies
    assert sent["spec"] == {"parent": "root", "weight": 1, "reclaimable": True, **spec}
    assert sent["metadata"] == {"name": "q", **metadata}


@pytest.mark.parametrize(("options", "patch"), [
    (["--weight=2"], {"spec": {"weight": 2}}),
    (["--reclaimable"], {"spec": {"reclaimable": True}}),
    (["--capability=cpu=none,memory=1Gi"], {"spec": {"capability": {"cpu": None, "memory": "1Gi"}}}),
    (["--namespace-selector="], {"metadata": {"annotations": {"muster.dev/namespace-selector": None}}}),
    (["--pool=none"], {"metadata": {"labels": {"muster.dev/node-pool": None}}}),
    (["--capability=hugepages-2Mi=1Gi"], {"spec": {"capability": {"hugepages-2Mi": "1Gi"}}}),
])  # fmt: skip
def test_a_change_of_a_queue(asked: Any, api: Server, options: list[str], patch: Any) -> None:
    """What is given is sent, and nothing else."""
    result = asked("queue", "update", "q", *options)
    assert (result.stdout, result.stderr) == ("queue.scheduling.volcano.sh/q updated\n", "")
    assert api.bodies == [patch]


@pytest.mark.parametrize(("options", "code", "words"), [
    ([], 2, "there is nothing to change: give at least one option, for example --weight 3"),
    (["--reclaimable", "false"], 2, "--reclaimable takes no value: write --reclaimable for true, --not-reclaimable"),
    (["--reclaimable=false"], 2, "--reclaimable takes no value"),
    (["--weight=0"], 2, "--weight"),
    (["--weight=65536"], 2, "--weight"),
    (["--namespace-selector=a in"], 2, "--namespace-selector"),
    (["--capability=nvidia.com/gpus=8"], 2, "is an unknown resource: no node and no queue has it; did you mean nv"),
])  # fmt: skip
def test_a_change_that_is_refused(asked: Any, api: Server, options: list[str], code: int, words: str) -> None:
    """Before anything is sent."""
    result = asked("queue", "update", "q", *options)
    assert result.exit_code == code
    assert words in result.stderr
    assert api.bodies == []


@pytest.mark.parametrize("may_list", [True, False])
def test_an_unknown_resource_is_warned_of(asked: Any, api: Server, *, may_list: bool) -> None:
    """Where it is near to none that is known; who may not list nodes and queues knows fewer."""
    if not may_list:
        api.answers[f"GET {NODES}"] = api.answers[f"GET {QUEUES}"] = FORBIDDEN
    result = asked("queue", "update", "q", "--capability=google.com/tpu=1,example.com/fpga=1,cpu=1")
    assert result.exit_code == 0
    unknown = ["example.com/fpga"] if may_list else ["google.com/tpu", "example.com/fpga"]
    assert result.stderr.splitlines() == [
        f"Warning: {each} is an unknown resource: no node and no queue has it" for each in unknown
    ]


def test_a_queue_with_gangs_is_kept(asked: Any, api: Server) -> None:
    """Those that have not ended count; others are deleted, and one with gangs by force."""
    for name in ("q", "other", "over"):
        api.answers[f"DELETE {QUEUES}/{name}"] = (200, {}, [])
    waits = manifests.pod_group("g", 2, namespace="team", queue="q")
    ended = manifests.pod_group("e", 2, namespace="team", queue="over", phase="Completed")
    api.answers[f"GET {GROUPS}"] = listed(waits, ended)
    result = asked("queue", "delete", "q", "other", "over")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f'queue.scheduling.volcano.sh "{name}" deleted' for name in ("other", "over")]
    assert result.stderr == (
        "Error: queue.scheduling.volcano.sh/q has gangs: PodGroup team/g. Close it with `muster queue close q` and "
        "wait until they have ended; --force deletes the queue now, unless pods are running in it\n"
    )
    assert asked("queue", "delete", "q", "--force").exit_code == 0
    api.answers[f"GET {GROUPS}"] = FORBIDDEN
    assert asked("queue", "delete", "q").exit_code == 0
