"""`muster logs`: what the pods of a gang print, and why there is nothing."""

from typing import Any

import pytest
from builders import manifests

from musterctl.commands import logs

PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
OWNER = manifests.owner("train", "Job", "batch/v1", "j")


@pytest.fixture(autouse=True)
def gang(lists: dict[str, Any]) -> None:
    """A gang of three pods, of which the last one has not begun; each of the others has printed its name."""
    lists[GROUPS] = [manifests.pod_group("g", 3, "default", queue="q", uid="g", owner=OWNER, phase="Running")]
    lists[PODS] = [
        manifests.pod(
            f"train-{rank}", "default", node="n", phase=phase, gang="g", task="worker", index=rank,
            containers=[{"name": "main"}, {"name": "side"}],
        )
        for rank, phase in enumerate(("Running", "Failed", "Pending"))
    ]  # fmt: skip
    for rank in range(2):
        lists[f"{PODS}/train-{rank}/log"] = f"I am {rank}\nto the end\n"


@pytest.mark.parametrize(("options", "printed"), [
    ((), ["I am 0", "to the end"]),
    (("--rank=1", "-c", "side"), ["I am 1", "to the end"]),
    (("--all",), ["[train-0] I am 0", "[train-0] to the end", "[train-1] I am 1", "[train-1] to the end"]),
])  # fmt: skip
def test_the_pods_that_are_meant_are_printed(muster: Any, options: tuple[str, ...], printed: list[str]) -> None:
    """By default the first one; of all each line behind the name of its pod, also while they are followed."""
    assert muster("logs", "train", *options).stdout.splitlines() == printed
    assert sorted(muster("logs", "job/train", "-f", *options).stdout.splitlines()) == printed


@pytest.mark.parametrize(("options", "words"), [
    (("train", "--rank=2"), "Job train has no log of rank 2 yet; its state is Running"),
    (("train", "--rank=3"), "Job train has 3 pods (ranks 0-2), but no pod of rank 3: choose another --rank"),
    (("train", "-c", "none"), "pod train-0 has no container none; it has main, side"),
    (("trian",), "there is no gang trian in namespace default; there is train"),
    (("gone",), "its logs are gone, and `muster history gone -n default` shows its events"),
])  # fmt: skip
def test_why_there_is_no_log(muster: Any, options: tuple[str, ...], words: str) -> None:
    """In a sentence."""
    assert words in muster("logs", *options, code=1).stderr


def test_a_pod_is_chosen_by_its_rank(muster: Any, lists: dict[str, Any]) -> None:
    """Also after the deletion of pods before it; the error names the ranks that are left."""
    del lists[PODS][0], lists[PODS][1]
    assert muster("logs", "train", "--rank=1").stdout.splitlines() == ["I am 1", "to the end"]
    told = muster("logs", "train", code=1).stderr
    assert "Job train has 1 pod (rank 1), but no pod of rank 0: choose another --rank" in told


def test_a_gang_without_pods_says_what_it_waits_for(muster: Any, lists: dict[str, Any]) -> None:
    """Of all its pods, too."""
    lists[PODS] = []
    waits = [{"type": "Unschedulable", "status": "True", "reason": "NoRoom", "message": "it lacks room"}]
    lists[GROUPS][0]["status"] = {"phase": "Inqueue", "conditions": waits}
    for options in ((), ("--all",)):
        assert (
            "Job train has no log yet; its state is Waiting: it lacks room"
            in muster("logs", "train", *options, code=1).stderr
        )


def test_a_log_that_cannot_be_read_is_said_after_the_others(muster: Any, lists: dict[str, Any]) -> None:
    """With exit code 1."""
    del lists[f"{PODS}/train-0/log"]
    for options in ((), ("-f",)):
        told = muster("logs", "train", "--all", *options, code=1)
        assert told.stdout.splitlines() == ["[train-1] I am 1", "[train-1] to the end"]
        assert "the log of pod train-0 cannot be read: log is forbidden" in told.stderr


def test_few_are_followed_at_once(muster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a connection; printing them one after another takes one."""
    monkeypatch.setattr(logs, "MOST_FOLLOWED", 1)
    told = muster("logs", "train", "--all", "-f", code=1).stderr
    assert "Job train has 2 pods with a log, but at most 1 can be followed at once" in told
    assert muster("logs", "train", "--all").exit_code == 0


def test_who_may_not_list_pods_is_told_the_role(muster: Any, lists: dict[str, Any]) -> None:
    """In the namespace."""
    del lists[PODS]
    assert (
        "you cannot list pods in namespace default: ask for the role muster-view there"
        in muster("logs", "train", code=1).stderr
    )
