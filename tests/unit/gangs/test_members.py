"""The gang that a user names, and its pods by rank."""

from typing import Any

import pytest
from builders import pod as a_pod

from gangs.members import UnknownGangError, by_rank, container_of, members, named
from gangs.row import GangRow
from gangs.rows import RowSources
from muster.api.kubernetes.core import Pod


def row(name: str, kind: str = "Job", state: str = "Running", created: str = "", **more: Any) -> GangRow:
    """A gang."""
    reference = {"Job": f"job.batch/{name}", "TrainJob": f"trainjob.trainer.kubeflow.org/{name}"}[kind]
    return GangRow(
        namespace="ns", name=name, kind=kind, reference=reference, queue="q", state=state, created=created, **more
    )


def test_a_name_with_and_without_its_kind() -> None:
    """As people write it, and as `-o name` prints it; two workloads of one name must be told apart."""
    rows = [row("a"), row("a", "TrainJob"), row("b")]
    assert named(rows, "b", "ns").name == "b"
    assert named(rows, "job/a", "ns").kind == "Job"
    assert named(rows, "trainjob.trainer.kubeflow.org/a", "ns").kind == "TrainJob"
    assert named(rows, "a", "ns", "TrainJob").kind == "TrainJob"
    with pytest.raises(UnknownGangError, match=r"job\.batch/a and trainjob\.trainer\.kubeflow\.org/a: name one"):
        named(rows, "a", "ns")


def test_one_that_has_not_ended_comes_first() -> None:
    """Of several starts the latest is meant."""
    rows = [
        row("a", state="Failed", created="3", gang="old"),
        row("a", created="1", gang="x"),
        row("a", created="2", gang="y"),
    ]
    assert named(rows, "a", "ns").gang == "y"
    assert named(rows[:1], "a", "ns").gang == "old"


def test_a_name_that_is_not_there() -> None:
    """Near names are told, else some of those that are there."""
    rows = [row("train-a"), row("train-b")]
    with pytest.raises(UnknownGangError, match="there is no gang train-c in namespace ns; there is train-"):
        named(rows, "train-c", "ns")
    with pytest.raises(UnknownGangError, match="and no other gang"):
        named([], "x", "ns")


def pod(name: str, pod_set: str, index: int, created: str = "", **more: Any) -> Pod:
    """A pod of a Volcano Job's gang."""
    more = {"containers": [{"name": "first"}, {"name": "main"}], "created": created, **more}
    return a_pod(name, gang="g", task=pod_set, index=index, scheduler="volcano", **more)


def test_pods_by_rank() -> None:
    """The leader's comes first, initializers come last, and of one slot only the latest pod counts."""
    pods = [
        pod("w-10", "worker", 10), pod("w-2", "worker", 2), pod("m", "master", 0),
        pod("d", "dataset-initializer", 0), pod("w-2-old", "worker", 2, ""), pod("w-2", "worker", 2, "2"),
    ]  # fmt: skip
    found = members(RowSources(pods=pods), row("a", gang="g"))
    assert [each.metadata.name for each in found] == ["m", "w-2", "w-10", "d"]
    assert members(RowSources(pods=pods), row("a", gang="other")) == []


def test_ranks() -> None:
    """Those of the workers follow the launcher's; a missing pod leaves its rank empty."""
    found = by_rank([pod("l", "launcher", 0), pod("w-1", "worker", 1), a_pod("x")])
    assert {rank: each.metadata.name for rank, each in found.items()} == {0: "l", 2: "w-1", 3: "x"}
    assert list(by_rank([a_pod("x"), a_pod("y")])) == [0, 1]


def test_the_container_of_a_log() -> None:
    """The one that is asked for, the one that the pod says, the first."""
    assert container_of(pod("p", "w", 0)) == "first"
    told = pod("p", "w", 0, annotations={"kubectl.kubernetes.io/default-container": "main"})
    assert container_of(told) == "main"
    assert container_of(told, "first") == "first"
    with pytest.raises(UnknownGangError, match="it has first, main"):
        container_of(told, "x")


def test_many_names_are_told_with_how_many_more() -> None:
    """The first five, where none is near; of near ones nothing is left out."""
    rows = [row(f"train-{letter}") for letter in "abcdefg"]
    with pytest.raises(UnknownGangError, match=r"there is train-a, train-b, train-c, train-d, train-e and 2 more$"):
        named(rows, "x", "ns")
    with pytest.raises(UnknownGangError, match=r"there is train-[a-g](, train-[a-g]){4}$"):
        named(rows, "train-h", "ns")


def test_pods_of_a_job_whose_gang_is_gone() -> None:
    """By the label of their Job."""
    mine, theirs = (pod(name, "worker", 0, labels={"volcano.sh/job-name": name}) for name in ("a", "b"))
    assert members(RowSources(pods=[mine, theirs]), row("a")) == [mine]
