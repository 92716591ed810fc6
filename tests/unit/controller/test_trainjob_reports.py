"""Who may report a trainer's progress, what a report is, and how its checkpoint reaches the gang."""

import json
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.report import Authorities, Reports
from controller.trainjob.rules.reports import (
    RefusedError,
    ReportTarget,
    admit,
    answer,
    checkpoint,
    read,
    target_of,
    token_of,
)
from muster.api import names
from muster.api.kubeflow.trainer import Metric, TrainerStatus
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.reviews import TokenReviewStatus
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import APIError, NotFound, error_of

TARGET = ReportTarget("team", "train")
PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status"


def review(user: str = "system:serviceaccount:team:default", **more: object) -> TokenReviewStatus:
    """A token that was made for the TrainJob."""
    given = {"authenticated": True, "audiences": [TARGET.audience], **more}
    return TokenReviewStatus(user=UserInfo(username=user), **given)  # type: ignore[arg-type] # a test's shorthand


def test_the_right_token() -> None:
    """Path, audience and namespace agree."""
    assert target_of(PATH) == TARGET
    assert f"/apis/{TARGET.audience}" == PATH
    assert token_of("Bearer abc") == "abc"
    admit(review(), TARGET)


WRONG = {
    "not known": review(authenticated=False),
    "for something else": review(audiences=["https://kubernetes.default.svc"]),
    "of another namespace": review("system:serviceaccount:team2:default"),
    "of a namespace that only begins so": review("system:serviceaccount:team-2:default"),
    "of a user": review("team"),
    "of a user who is called so": review("x:system:serviceaccount:team:default"),
}


@pytest.mark.parametrize("status", WRONG.values(), ids=WRONG.keys())
def test_wrong_tokens(status: TokenReviewStatus) -> None:
    """Forbidden, whatever is wrong."""
    with pytest.raises(RefusedError) as refused:
        admit(status, TARGET)
    assert refused.value.status == HTTPStatus.FORBIDDEN
    assert answer(refused.value)["reason"] == "Forbidden"


@pytest.mark.parametrize(
    "path", ["/", f"{PATH}/x", PATH.replace("team", "../kube-system"), PATH.replace("/status", ""), f"{PATH}?a=b"]
)
def test_other_paths(path: str) -> None:
    """There is one."""
    with pytest.raises(RefusedError) as refused:
        target_of(path)
    assert refused.value.status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc"])
def test_no_token(header: str) -> None:
    """Forbidden."""
    with pytest.raises(RefusedError):
        token_of(header)


def test_bodies() -> None:
    """Nothing changes nothing; what a newer SDK says in addition is left out; the rest must be right."""
    assert read(b"") is None
    assert read(b"{}") is None
    told = read(b'{"trainerStatus": {"progressPercentage": 5, "newer": 1}}')
    assert told
    assert told.progress_percentage == 5
    for body, status in ((b"{", 400), (b'{"trainerStatus": {"progressPercentage": -1}}', 422), (b"[]", 422)):
        with pytest.raises(RefusedError) as refused:
            read(body)
        assert refused.value.status == status


def test_a_checkpoint_is_a_metric() -> None:
    """The others are the trainer's; one that cannot be read is refused, as nobody would see it."""
    loss, text = Metric(name="loss", value="0.5"), "step=1200,at=2026-11-26T05:00:00Z"
    assert checkpoint(TrainerStatus(metrics=[loss])) == ""
    assert checkpoint(TrainerStatus(metrics=[loss, Metric(name="muster.dev/checkpoint", value=text)])) == text
    with pytest.raises(RefusedError) as refused:
        checkpoint(TrainerStatus(metrics=[Metric(name="muster.dev/checkpoint", value="1200")]))
    assert refused.value.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "'1200' is not a checkpoint such as step=1200,at=2026-11-26T05:00:00Z" in str(refused.value)


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


def gang_group(name: str, **annotations: str) -> PodGroup:
    """A PodGroup."""
    return PodGroup(metadata=ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", annotations=annotations))


def report(api: Api, *metrics: tuple[str, str]) -> HTTPStatus:
    """Send a report with these metrics."""
    told = {"metrics": [{"name": name, "value": value} for name, value in metrics]}
    body = json.dumps({"trainerStatus": told}).encode()
    return Reports(cast("Any", api)).answer(f"/apis/{AUDIENCE}", "Bearer t", body)[0]


def test_a_checkpoint_reaches_the_gang() -> None:
    """By its UID; a gang that has gone meanwhile is no trouble."""
    api = Api(gang_group("a"), gang_group("b"), gone="b")
    assert report(api, ("loss", "0.5"), (names.CHECKPOINT, TEXT)) == HTTPStatus.OK
    assert api.notes == {"a": {"uid": "uid-a", "annotations": {names.CHECKPOINT: TEXT}}}
    assert api.status[0]["metrics"][1]["value"] == TEXT


@pytest.mark.parametrize(
    ("metrics", "status"),
    [([("loss", "0.5")], HTTPStatus.OK), ([(names.CHECKPOINT, "7")], HTTPStatus.UNPROCESSABLE_ENTITY)],
)
def test_nothing_is_noted_without_a_checkpoint(metrics: list[tuple[str, str]], status: HTTPStatus) -> None:
    """One that cannot be read is refused as a whole: the trainer is told."""
    api = Api(gang_group("a"))
    assert report(api, *metrics) == status
    assert api.notes == {}
    assert bool(api.status) is (status == HTTPStatus.OK)


@pytest.mark.parametrize(("error", "status", "reason", "message"), [
    (error_of(404, b'{"message": "there is no TrainJob train"}'), 404, "NotFound", "there is no TrainJob train"),
    (error_of(422, b'{"message": "metrics: too many"}'), 422, "Invalid", "metrics: too many"),
    (error_of(500, b'{"message": "etcd"}'), 500, "InternalError", "the report cannot be written for now"),
    (error_of(409, b'{"message": "a conflict"}'), 500, "InternalError", "the report cannot be written for now"),
], ids=["gone", "invalid", "broken", "conflict"])  # fmt: skip
def test_what_a_trainer_hears_of_a_failed_write(
    monkeypatch: pytest.MonkeyPatch, error: APIError, status: int, reason: str, message: str
) -> None:
    """Of its own mistakes all, of the API server's troubles that it may try again; these are logged."""
    api = Api()

    def apply(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(api, "apply", apply)
    with capture_logs() as logs:
        code, content = Reports(cast("Any", api)).answer(f"/apis/{AUDIENCE}", "Bearer t", b'{"trainerStatus": {}}')
    assert (code, content["code"], content["reason"], content["message"]) == (status, status, reason, message)
    assert [each["event"] for each in logs] == (["report not written"] if status == 500 else [])


def test_the_same_checkpoint_is_noted_once() -> None:
    """Each report repeats it."""
    api = Api(gang_group("a", **{names.CHECKPOINT: TEXT}))
    assert report(api, (names.CHECKPOINT, TEXT)) == HTTPStatus.OK
    assert api.notes == {}


def test_it_is_followed(tmp_path: Path) -> None:
    """Until it is there, that is told; then what stands in it."""
    file = tmp_path / "ca.crt"
    authorities = Authorities(file)
    with pytest.raises(
        Obstacle, match="the CA certificates of the status server, to which trainers report, cannot be read"
    ):
        authorities.pem()
    for text in ("first", "second"):
        file.write_text(text)
        assert authorities.pem() == text
