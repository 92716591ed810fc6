"""What a caller does to a Job or TrainJob: confirmed first, about the object that was confirmed, with their rights."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from web_world import Known, Pages, cluster, gang

from history.model import Scope
from muster.api.base import Resource
from muster.api.kubernetes.reviews import ResourceAttributes
from web.view import Caller


def command(action: str) -> dict[str, Any]:
    """The Command for a Job, which is deleted with it."""
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u"}
    metadata = {"generateName": f"train-{action.lower()}-", "ownerReferences": [target]}
    return {"metadata": metadata, "action": action, "target": target}


def suspended(*, suspend: bool) -> dict[str, Any]:
    """The change of a TrainJob, which is refused for another of its name."""
    return {"metadata": {"uid": "u"}, "spec": {"suspend": suspend}}


class Api:
    """A client that notes what it is asked to change; every object has the UID `u`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def get(self, resource: Resource[Any], name: str, namespace: str) -> Any:
        """An object, by kind, name and namespace."""
        self.calls.append(("get", resource.plural, name, namespace))
        return SimpleNamespace(metadata=SimpleNamespace(uid="u"))

    def create(self, resource: Resource[Any], content: Any, namespace: str, *, strict: bool) -> None:
        """An object is made."""
        self.calls.append(("create", resource.plural, content, namespace, strict))

    def merge_patch(self, resource: Resource[Any], name: str, patch: Any, namespace: str) -> None:
        """An object is changed."""
        self.calls.append(("patch", resource.plural, name, patch, namespace))

    def delete(self, resource: Resource[Any], name: str, namespace: str, *, uid: str, propagation: str) -> None:
        """An object is deleted."""
        self.calls.append(("delete", resource.plural, name, namespace, uid, propagation))


class Some(Known):
    """Callers who lack some rights: `verb resource`."""

    def __init__(self, *lacks: str) -> None:
        super().__init__({"user": Caller(name="ada", scope=Scope(frozenset({"ns"})))})
        self.client: Any = Api()
        self.lacks = lacks

    def may(self, request: Any, right: ResourceAttributes) -> bool:
        """Rights in what they see, but for some."""
        return super().may(request, right) and f"{right.verb} {right.resource}" not in self.lacks


def pages(*lacks: str) -> tuple[Pages, Api]:
    """A server for a user of one namespace who lacks some rights, and what it asks of the API server."""
    made, callers = Pages({}), Some(*lacks)
    made.site.callers = callers
    cluster(made)
    return made, callers.client


@pytest.mark.parametrize(("action", "kind", "call"), [
    ("suspend", "jobs", ("create", "commands", command("AbortJob"))),
    ("resume", "jobs", ("create", "commands", command("ResumeJob"))),
    ("delete", "jobs", ("delete", "jobs", "train")),
    ("suspend", "trainjobs", ("patch", "trainjobs", "train", suspended(suspend=True))),
    ("resume", "trainjobs", ("patch", "trainjobs", "train", suspended(suspend=False))),
    ("delete", "trainjobs", ("delete", "trainjobs", "train")),
])  # fmt: skip
def test_what_is_meant_is_done(action: str, kind: str, call: tuple[Any, ...]) -> None:
    """With the UID that the page of the question had; afterwards the gangs of the namespace are shown."""
    made, api = pages()
    path, end = f"/act/{action}/{kind}/ns/train", {"create": ("ns", True), "patch": ("ns",)}
    asked = made.get(path)
    assert (asked.status, api.calls) == (200, [("get", kind, "train", "ns")])
    assert 'value="u"' in asked.text
    done = made.post(path, urlencode({"uid": "u"}))
    assert (done.status, done.headers["location"]) == (303, "/gangs?namespace=ns")
    assert api.calls[1:] == [(*call, *end.get(call[0], ("ns", "u", "Background")))]


@pytest.mark.parametrize(("path", "lacks", "status", "words"), [
    ("/act/suspend/jobs/other/train", "", 404, "there is no jobs other/train, or you may not see it"),
    ("/act/suspend/pods/ns/train", "", 404, "there is no pods ns/train"),
    ("/act/explode/jobs/ns/train", "", 404, "there is no jobs ns/train"),
    ("/act/suspend/jobs/ns/Train_", "", 404, "there is no jobs ns/Train_"),
    (*("/act/suspend/jobs/ns/train", "update jobs", 403),
        "right to create commands.bus.volcano.sh and update jobs.batch.volcano.sh in namespace ns"),
    ("/act/delete/trainjobs/ns/train", "delete trainjobs", 403, "delete trainjobs.trainer.kubeflow.org"),
])  # fmt: skip
def test_what_may_not_be_done_is_refused(path: str, lacks: str, status: int, words: str) -> None:
    """Whether it is only asked about, or meant."""
    made, api = pages(lacks)
    for answer in (made.get(path), made.post(path, "uid=u")):
        assert (answer.status, words in answer.text) == (status, True), answer.text
    assert api.calls == []


def test_a_form_without_a_uid_does_nothing() -> None:
    """Another object of the name may have been made meanwhile."""
    made, api = pages()
    assert made.post("/act/delete/jobs/ns/train").status == 400
    assert api.calls == []


@pytest.mark.parametrize(
    ("lacks", "buttons"), [("", {"suspend", "delete"}), ("create commands", {"delete"}), ("delete jobs", {"suspend"})]
)
def test_a_gang_offers_what_its_caller_may_do(lacks: str, buttons: set[str]) -> None:
    """Of a gang that runs it is no use to be resumed."""
    made, api = pages(lacks)
    api.list = lambda *_, **__: []  # type: ignore[attr-defined]  # no Events
    gang(made, "ns", "train", ["node-0", "node-1"])
    text = made.get("/gangs/ns/train").text
    assert {each for each in ("suspend", "resume", "delete") if f'id="do-{each}"' in text} == buttons
