"""What the page knows: by namespace, made anew only where something has changed, and without what nobody reads."""

from typing import Any

import pytest
from web_world import Pages, cluster, gang, node, pods

from gangs.rows import RowSources
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.reflector import Reflector
from web import caches
from web.caches import ListableScope, PageCaches
from web.view import Caller


@pytest.fixture
def pages() -> Pages:
    """Two namespaces with a gang each."""
    made = Pages({"user": Caller()})
    cluster(made)
    gang(made, "a", "one")
    gang(made, "b", "two")
    return made


def renewed(item: dict[str, Any], version: str, **changes: Any) -> dict[str, Any]:
    """The same object in a later version."""
    return {**item, **changes, "metadata": {**item["metadata"], "resourceVersion": version}}


def test_rows_are_made_anew_only_where_something_has_changed(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that starts costs a look at its namespace, and not at the cluster."""
    made: list[int] = []
    rows = caches.rows

    def counted(objects: RowSources) -> Any:
        made.append(len(objects.groups))
        return rows(objects)

    monkeypatch.setattr(caches, "rows", counted)
    both = [pages.caches.rows(each) for each in ("a", "b")]
    assert [len(each) for each in both] == [1, 1]
    assert len(made) == 2
    pages.put(PODS, *(renewed(each, "2") for each in pods("a", "one", ["node-0", "node-0"])))
    assert pages.caches.rows("a")[0].nodes == ["node-0"]
    assert pages.caches.rows("b") is both[1]
    assert len(made) == 3


def test_a_generation_changes_with_rows_alone(pages: Pages) -> None:
    """A change that no row shows tells nobody."""
    before, of_others = pages.caches.generation("a"), pages.caches.generation("b")
    pages.put(PODS, *(renewed(each, "2") for each in pods("a", "one", ["", ""])))
    assert pages.caches.generation("a") == before
    pages.put(PODS, *(renewed(each, "3") for each in pods("a", "one", ["node-0", "node-0"])))
    assert pages.caches.generation("a") > before
    assert pages.caches.generation("b") == of_others


def test_that_a_node_lives_is_no_change(pages: Pages) -> None:
    """Kubelets say so every few minutes; 5,000 of them would have pages load without end."""
    nodes, total = pages.caches.changes_of(NODES), pages.caches.total
    alive = node("node-0")
    alive["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-26T09:00:00Z"
    pages.put(NODES, renewed(alive, "2"))
    assert (pages.caches.changes_of(NODES), pages.caches.total) == (nodes, total)
    pages.put(NODES, renewed(alive, "3", spec={"unschedulable": True}))
    assert pages.caches.changes_of(NODES) == nodes + 1


def test_what_only_containers_read_is_not_kept(pages: Pages) -> None:
    """Neither environment nor commands, nor annotations of other programs: they may hold secrets."""
    [pod] = pods("c", "three", [""])
    pod["spec"]["containers"][0] |= {"env": [{"name": "PASSWORD", "value": "x"}], "command": ["run"], "image": "i"}
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
    pages.put(PODS, pod)
    [kept] = pages.caches.objects_in(PODS, "c")
    container = kept.spec.containers[0]
    assert (container.env, container.command, container.image) == ([], [], "")
    assert list(kept.metadata.annotations) == ["scheduling.k8s.io/group-name", "volcano.sh/task-spec"]


def test_what_tenants_may_make_large_has_a_bound() -> None:
    """Of the kinds that they write, and of no other."""
    made = PageCaches(Client(ClientConfig("http://127.0.0.1:1")))
    bounded = {name for name, each in made._reflectors.items() if isinstance(each, Reflector) and each.mirror.budget}
    assert bounded == {
        "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", "podgroups.scheduling.k8s.io",
        "trainjobs.trainer.kubeflow.org", "workloads.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io",
        "persistentvolumeclaims", "resourceclaimtemplates.resource.k8s.io", "poddisruptionbudgets.policy",
    }  # fmt: skip


def test_kinds_that_may_not_be_listed_are_left_out() -> None:
    """Rows are made without them, and reports tell what the objects say that are there."""
    reach = {
        NODES: ListableScope(False, False),  # noqa: FBT003
        QUEUES: ListableScope(False, False),  # noqa: FBT003
        POD_GROUPS: ListableScope(False),  # noqa: FBT003
        JOBS: ListableScope(False),  # noqa: FBT003
    }
    made = PageCaches(Client(ClientConfig("http://127.0.0.1:1")), reach, "a")
    assert set(made.unread) == {
        "nodes",
        *(f"{kind}.scheduling.volcano.sh" for kind in ("queues", "podgroups")),
        "jobs.batch.volcano.sh",
    }
    assert "nodes" not in made.sizes()
    assert not made.dump().whole


def test_a_namespace_that_comes_back_as_it_is_forgotten_is_known(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread brings between the check and the removal counts."""
    namespace = {"metadata": {"name": "a", "uid": "a", "resourceVersion": "1"}}
    pages.put(NAMESPACES, namespace)
    for kind in (POD_GROUPS, PODS):
        for each in pages.caches.objects_in(kind, "a"):
            pages.remove(kind, each.metadata.key)
    jobs, came = pages.caches._stores[JOBS], list[bool]()
    keys = jobs.keys_by_index

    def comes_back(*_: str) -> list[str]:
        if not came and not pages.caches._lock.locked():
            came.append(True)
            gang(pages, "a", "again")
        return []

    monkeypatch.setattr(jobs, "keys_by_index", comes_back)
    pages.remove(NAMESPACES, "a")
    monkeypatch.setattr(jobs, "keys_by_index", keys)
    if not came:
        gang(pages, "a", "again")
    assert pages.caches.namespaces() == ["a", "b"]
