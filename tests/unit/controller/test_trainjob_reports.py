"""Who may report a trainer's progress, and what a report is."""

from http import HTTPStatus

import pytest

from controller.trainjob.rules.reports import (
    RefusedError,
    Target,
    admit,
    answer,
    checkpoint,
    read,
    target_of,
    token_of,
)
from muster.api.kubeflow.trainer import Metric, TrainerStatus
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.reviews import TokenReviewStatus

TARGET = Target("team", "train")
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
    assert "'1200' is not a checkpoint, as step=1200,at=2026-11-26T05:00:00Z is" in str(refused.value)
