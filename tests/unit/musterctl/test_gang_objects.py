"""`muster ps` lists gangs that are native PodGroups, where their user may list them."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from builders import node

from gangs.forecast import ForecastCluster
from gangs.rows import RowSources, rows
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS, Namespace, Pod
from muster.api.kubernetes.meta import ListMeta
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, WORKLOADS, NativePodGroup
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import Forbidden, NotFound
from musterctl.gangobjects import native_gangs, read, read_cluster


def meta(name: str, **more: Any) -> dict[str, Any]:
    """Metadata in namespace `ns`."""
    return {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1", **more}


def group(name: str, **more: Any) -> NativePodGroup:
    """A native PodGroup of a gang of two."""
    return msgspec.convert(
        {"metadata": meta(name, **more), "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}, NativePodGroup
    )


def pod(name: str, of: str, scheduler: str = "muster") -> Pod:
    """A pod of one, that runs."""
    spec = {"schedulerName": scheduler, "nodeName": "n", "schedulingGroup": {"podGroupName": of}}
    return msgspec.convert({"metadata": meta(name), "spec": spec, "status": {"phase": "Running"}}, Pod)


class Listed(list[Any]):
    """One page with all objects of a kind."""

    metadata = ListMeta(resource_version="7")


class Api:
    """Lists these objects; kinds that are not here are not served, or forbidden."""

    def __init__(self, objects: Mapping[Resource[Any], list[Any]], *, forbidden: bool = False) -> None:
        self.objects = objects
        self.forbidden = forbidden
        self.asked: set[Resource[Any]] = set()

    def list(self, resource: Resource[Any], _namespace: str | None = None) -> list[Any]:
        """As a client."""
        self.asked.add(resource)
        if resource in self.objects:
            return self.objects[resource]
        raise (Forbidden if self.forbidden else NotFound)("no", where=resource.plural)

    def pages(self, resource: Resource[Any], namespace: str | None = None) -> Iterator[Listed]:
        """As a client."""
        yield Listed(self.list(resource, namespace))

    def get(self, resource: Resource[Any], name: str) -> Any:
        """The namespace, which has a queue."""
        assert resource is NAMESPACES
        return msgspec.convert({"metadata": {"name": name, "labels": {"muster.dev/queue": "blue"}}}, Namespace)


def test_a_group_with_a_pod_of_musters_is_a_row() -> None:
    """In the queue of its namespace, by the name of its Job or its own; groups of others are no rows."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "fit", "uid": "uid-job", "controller": True}
    natives = [group("g", ownerReferences=[owner]), group("bare"), group("other")]
    pods = [pod("g-0", "g"), pod("g-1", "g"), pod("bare-0", "bare"), pod("other-0", "other", "default-scheduler")]
    api: Any = Api({WORKLOADS: []})
    found = native_gangs(api, "ns", natives, pods)
    listed = {(row.kind, row.name): row for row in rows(RowSources(groups=found, pods=pods))}
    assert listed.keys() == {("PodGroup", "bare"), ("Job", "fit")}
    fit = listed["Job", "fit"]
    assert (fit.gang, fit.queue, fit.minimum, fit.running) == ("native.g", "blue", 2, 2)


def test_without_native_groups_nothing_else_is_read() -> None:
    """The cluster does not serve them, or the user may not list them; they are not watched either."""
    for forbidden in (False, True):
        api: Any = Api({POD_GROUPS: [], PODS: [pod("g-0", "g")]}, forbidden=forbidden)
        found = read(api, "ns")
        assert (found.groups, list(found.versions)) == ([], [POD_GROUPS])
        assert WORKLOADS not in api.asked


def test_both_kinds_are_watched_from_where_they_were_listed() -> None:
    """A gang that is a native PodGroup has no other whose change would tell."""
    api: Any = Api({POD_GROUPS: [], NATIVE_POD_GROUPS: [group("g")], PODS: [pod("g-0", "g")]})
    found = read(api, "ns")
    assert [each.metadata.name for each in found.groups] == ["native.g"]
    assert found.versions == {POD_GROUPS: "7", NATIVE_POD_GROUPS: "7"}


@pytest.mark.parametrize("everything", [True, False])
def test_who_may_list_the_cluster_has_a_forecast(*, everything: bool) -> None:
    """Of nodes, gangs and pods: without any of them nothing is played."""
    there: dict[Resource[Any], list[Any]] = {NODES: [node("n")], POD_GROUPS: [], PODS: [pod("g-0", "g")]}

    def found(*missing: Resource[Any]) -> ForecastCluster | None:
        api: Any = Api({kind: each for kind, each in there.items() if kind not in missing}, forbidden=True)
        objects = RowSources(pods=None if PODS in missing else there[PODS])
        return read_cluster(api, objects, everything=everything)

    whole = found()
    assert whole is not None
    assert (list(whole.nodes), whole.objects.pods) == (there[NODES], there[PODS])
    assert [found(NODES), found(PODS)] == [None, None]
    assert (found(POD_GROUPS) is None) is not everything
