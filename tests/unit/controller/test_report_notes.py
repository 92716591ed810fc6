"""A checkpoint that a trainer reports is noted on the gang of its TrainJob, where the planner reads it."""

import json
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.trainjob.report import Reports
from muster.api import names
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.reviews import TokenReviewStatus
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import NotFound

AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status"
TEXT = "step=7,at=2026-11-26T05:00:00Z"


class Api:
    """Takes reports; has PodGroups of the TrainJob, some of which go meanwhile."""

    def __init__(self, *groups: PodGroup, gone: str = "") -> None:
        self.groups = groups
        self.status: list[Any] = []
        self.notes: dict[str, Any] = {}
        self._gone = gone

    def create(self, *_: object, **__: object) -> Any:
        """The review of a token that was made for the TrainJob."""
        user = UserInfo(username="system:serviceaccount:team:default")
        return SimpleNamespace(status=TokenReviewStatus(user=user, authenticated=True, audiences=[AUDIENCE]))

    def apply(self, _kind: object, manifest: dict[str, Any], **_: object) -> None:
        """The status of the TrainJob."""
        self.status.append(manifest["status"]["trainerStatus"])

    def list(self, _kind: object, namespace: str, *, label_selector: str, **_: object) -> tuple[PodGroup, ...]:
        """The PodGroups of the TrainJob."""
        assert (namespace, label_selector) == ("team", f"{names.TRAIN_JOB}=train")
        return self.groups

    def merge_patch(self, _kind: object, name: str, body: dict[str, Any], _namespace: str, **_: object) -> None:
        """The note on a PodGroup."""
        if name == self._gone:
            raise NotFound("no such PodGroup")
        self.notes[name] = body["metadata"]


def group(name: str, **annotations: str) -> PodGroup:
    """A PodGroup."""
    return PodGroup(metadata=ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", annotations=annotations))


def report(api: Api, *metrics: tuple[str, str]) -> HTTPStatus:
    """Send a report with these metrics."""
    told = {"metrics": [{"name": name, "value": value} for name, value in metrics]}
    body = json.dumps({"trainerStatus": told}).encode()
    return Reports(cast("Any", api)).answer(f"/apis/{AUDIENCE}", "Bearer t", body)[0]


def test_a_checkpoint_reaches_the_gang() -> None:
    """By its UID; a gang that has gone meanwhile is no trouble."""
    api = Api(group("a"), group("b"), gone="b")
    assert report(api, ("loss", "0.5"), (names.CHECKPOINT, TEXT)) == HTTPStatus.OK
    assert api.notes == {"a": {"uid": "uid-a", "annotations": {names.CHECKPOINT: TEXT}}}
    assert api.status[0]["metrics"][1]["value"] == TEXT


@pytest.mark.parametrize(
    ("metrics", "status"),
    [([("loss", "0.5")], HTTPStatus.OK), ([(names.CHECKPOINT, "7")], HTTPStatus.UNPROCESSABLE_ENTITY)],
)
def test_nothing_is_noted_without_a_checkpoint(metrics: list[tuple[str, str]], status: HTTPStatus) -> None:
    """One that cannot be read is refused as a whole: the trainer is told."""
    api = Api(group("a"))
    assert report(api, *metrics) == status
    assert api.notes == {}
    assert bool(api.status) is (status == HTTPStatus.OK)


def test_the_same_checkpoint_is_noted_once() -> None:
    """Each report repeats it."""
    api = Api(group("a", **{names.CHECKPOINT: TEXT}))
    assert report(api, (names.CHECKPOINT, TEXT)) == HTTPStatus.OK
    assert api.notes == {}
