"""Any two plugins of a Job together do what each does alone, and the pod is one that an API server takes."""

from itertools import chain, combinations
from typing import Any

import pytest
from plugin_jobs import container, job, objects, shaped, variables

from muster.volcano.plugins import registry
from muster.volcano.plugins.registry import BUILT_IN

TASKS = {"master": 1, "worker": 2, "head": 1, "other": 1}
"""Every plugin has the tasks that it looks for, and there is one that none looks for."""
CONTAINERS = ("main", "side", "init")
PAIRS = [*combinations(BUILT_IN, 2)]
Named = dict[tuple[str, str], Any]


def parts(manifest: dict[str, Any]) -> Named:
    """Variables, mounts and ports by container and name, and volumes; each stands once."""
    found: Named = {}
    for name in CONTAINERS:
        one = container(manifest, name)
        lists = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}
        for field, key in lists.items():
            for each in one.get(field) or []:
                assert (name, f"{field} {each[key]}") not in found, each
                found[name, f"{field} {each[key]}"] = each
    spec = manifest["spec"]
    named = [("volume", each) for each in spec.get("volumes") or []]
    named += [("container", each) for each in chain(spec["containers"], spec["initContainers"])]
    assert len({(kind, each["name"]) for kind, each in named}) == len(named)
    found |= {(kind, each["name"]): each for kind, each in named if kind == "volume"}
    found |= {("pod", key): spec[key] for key in ("hostname", "subdomain") if key in spec}
    return found


def each_pod(*plugins: str) -> dict[tuple[str, int], Named]:
    """What the plugins add to each pod of a Job."""
    of = job(TASKS, **{plugin: [] for plugin in plugins})
    return {(task, index): parts(shaped(of, task, index)) for task, count in TASKS.items() for index in range(count)}


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
def test_two_plugins_add_what_each_adds(first: str, second: str) -> None:
    """In each pod and each of its containers, and beside the pods; in whatever order the Job names them."""
    alone = [each_pod(one) for one in (first, second)]
    both = each_pod(first, second)
    assert both == each_pod(second, first)
    for pod, found in both.items():
        assert found == alone[0][pod] | alone[1][pod], pod
    of = [job(TASKS, **{name: [] for name in names}) for names in ((first,), (second,), (first, second))]
    made = [[(owned.resource.kind, owned.manifest["metadata"]["name"]) for owned in objects(one)] for one in of]
    assert sorted(made[2]) == sorted([*made[0], *made[1]])
    assert len(set(made[2])) == len(made[2])
    for task in of[2].spec.tasks:
        ports = [sorted(registry.ports(one, task)) for one in of]
        assert ports[2] == sorted([*ports[0], *ports[1]])
    assert [*registry.check(of[2])] == []


@pytest.mark.parametrize("plugin", BUILT_IN)
def test_with_all_others_a_plugin_still_adds_its_own(plugin: str) -> None:
    """What the user has written stays, too."""
    alone, together = each_pod(plugin), each_pod(*BUILT_IN)
    for pod, found in alone.items():
        assert {key: together[pod].get(key) for key in found} == found, pod


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mpi"])
def test_what_a_container_has_already_is_the_users(framework: str) -> None:
    """Of two plugins and the template the template wins, in that container alone."""
    of = job(TASKS, **{"env": [], "svc": [], framework: []})
    names = [*variables(shaped(of, "master", 0))]
    main = next(task for task in of.spec.tasks if task.name == "master").template["spec"]["containers"][0]
    main["env"] = [{"name": name, "value": "mine"} for name in names]
    manifest = shaped(of, "master", 0)
    assert variables(manifest) == dict.fromkeys(names, "mine")
    assert "mine" not in variables(manifest, "side").values()
    assert [*variables(manifest, "side")] == names
