"""Commands are refused to users who may not change the target themselves."""

from typing import Any

import msgspec
import pytest
from webhook_world import JSON, request

from muster.api.base import Resource
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.reviews import ResourceAttributes, SubjectAccessReview
from muster.kube.errors import Unreachable
from webhook import review
from webhook.apiserver import Rights
from webhook.validate import command

ANNE = UserInfo(username="anne", groups=["team-a"])
QUEUE: JSON = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "prod", "uid": "u"}
JOB: JSON = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u"}


class Granted:
    """`Rights` of a test: these questions are answered with yes."""

    def __init__(self, *actions: ResourceAttributes) -> None:
        self._actions = actions
        self.asked: list[tuple[str, ResourceAttributes]] = []

    def allows(self, user: UserInfo, action: ResourceAttributes) -> bool:
        """See webhook.apiserver.Rights."""
        self.asked.append((user.username, action))
        return action in self._actions


MAY_QUEUE = ResourceAttributes(verb="update", group="scheduling.volcano.sh", resource="queues", name="prod")
MAY_JOB = ResourceAttributes(verb="update", group="batch.volcano.sh", resource="jobs", namespace="team", name="train")


def a_command(target: JSON | None, action: str = "CloseQueue", **metadata: Any) -> JSON:
    """A Command of namespace `team`."""
    return {"metadata": {"name": "c", **metadata}, "action": action, **({"target": target} if target else {})}


@pytest.mark.parametrize(("target", "question", "line"), [
    (QUEUE, MAY_QUEUE, "`kubectl auth can-i update queues.scheduling.volcano.sh/prod`"),
    (JOB, MAY_JOB, "`kubectl auth can-i update jobs.batch.volcano.sh/train -n team`"),
])  # fmt: skip
def test_the_right_to_change_the_target(target: JSON, question: ResourceAttributes, line: str) -> None:
    """With it the Command passes; without, the refusal says which right it is and how to see whether one has it."""
    sent = request(a_command(target), user_info=ANNE)
    assert not command.reviewer(Granted(question))(sent).errors
    denying = Granted()
    verdict = command.reviewer(denying)(sent)
    assert denying.asked == [("anne", question)]
    assert verdict.refusal == 403
    [error] = verdict.errors
    assert error.path == "target"
    assert "user 'anne' is not allowed to send CloseQueue to" in str(error)
    assert line in str(error)


@pytest.mark.parametrize(
    "target", [None, {**QUEUE, "kind": "Node", "apiVersion": "v1"}, {**JOB, "apiVersion": "batch/v1"}]
)
def test_other_targets(target: JSON | None) -> None:
    """No controller acts on them, so that no right is asked for."""
    denying = Granted()
    assert not command.reviewer(denying)(request(a_command(target), user_info=ANNE)).errors
    assert not denying.asked


def test_a_command_that_becomes_another_one() -> None:
    """A Command to one's own Job is not turned into one to a queue; one whose metadata changes can go away."""
    review = command.reviewer(Granted(MAY_JOB))
    old = a_command(JOB, "AbortJob")
    assert review(request(a_command(QUEUE), "UPDATE", old=old, user_info=ANNE)).errors
    same = a_command(QUEUE, finalizers=[])
    assert not review(request(same, "UPDATE", old=a_command(QUEUE, finalizers=["x"]), user_info=ANNE)).errors


def test_the_root_queue_stays_open() -> None:
    """It is said at once, and not in an Event later; the queues below it can be closed."""
    granted = Granted(msgspec.structs.replace(MAY_QUEUE, name="root"), MAY_QUEUE)
    root = {**QUEUE, "name": "root"}
    [error] = command.reviewer(granted)(request(a_command(root), user_info=ANNE)).errors
    assert (error.path, "close the queues below it" in error.message) == ("target.name", True)
    for other in (a_command(root, "OpenQueue"), a_command(QUEUE)):
        assert not command.reviewer(granted)(request(other, user_info=ANNE)).errors


def test_without_an_api_server() -> None:
    """Admission offline has no users."""
    assert not command.reviewer(None)(request(a_command(QUEUE))).errors


class Authorizer:
    """The API server's part: answers SubjectAccessReviews, and keeps them."""

    def __init__(self) -> None:
        self.allowed = True
        self.asked: list[JSON] = []
        self.timeouts_s: list[float] = []

    def create(self, res: Resource[Any], obj: SubjectAccessReview, *, timeout_s: float) -> SubjectAccessReview:
        """See muster.kube.client.Client."""
        assert res.path() == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.asked.append(msgspec.to_builtins(obj))
        self.timeouts_s.append(timeout_s)
        answer: JSON = {**msgspec.to_builtins(obj), "status": {"allowed": self.allowed}}
        return msgspec.convert(answer, SubjectAccessReview)


def test_an_answer_is_remembered_for_a_moment() -> None:
    """By user, groups and action; a role that is taken away counts a few seconds later."""
    now = [100.0]
    api = Authorizer()
    rights = Rights(api, lambda: now[0])  # type: ignore[arg-type] # all that is needed of a client
    assert rights.allows(ANNE, MAY_QUEUE)
    assert rights.allows(ANNE, MAY_QUEUE)
    api.allowed = False
    assert not rights.allows(ANNE, MAY_JOB)
    assert not rights.allows(UserInfo(username="anne", groups=["team-b"]), MAY_QUEUE)
    now[0] += 4.9
    assert rights.allows(ANNE, MAY_QUEUE)
    assert len(api.asked) == 3
    now[0] += 0.2
    assert not rights.allows(ANNE, MAY_QUEUE)
    assert api.asked[0]["spec"] == {
        "user": "anne",
        "groups": ["team-a"],
        "resourceAttributes": {
            "verb": "update", "group": "scheduling.volcano.sh", "resource": "queues", "name": "prod",
        },
    }  # fmt: skip


def test_within_the_time_of_the_review() -> None:
    """It is not asked for longer than the review lasts, nor when no time is left: then the Command is refused."""
    api = Authorizer()
    rights = Rights(api)  # type: ignore[arg-type] # all that is needed of a client
    with review.deadline("timeout=2s"):
        rights.allows(ANNE, MAY_QUEUE)
    assert api.timeouts_s == [pytest.approx(1.5, abs=0.2)]
    with review.deadline("timeout=400ms"), pytest.raises(Unreachable):
        rights.allows(ANNE, MAY_JOB)
