"""What the webhook remembers of an answer is for the same question alone: namespace, user and groups."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob
from muster.api.kubernetes.meta import OwnerReference
from muster.api.kubernetes.reviews import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewStatus
from muster.kube.client import Client
from muster.kube.config import Config
from webhook.apiserver import Rights
from webhook.lookup import Cached, OwnerLookup


class Server:
    """An API server that gives rights to eve in namespace `a`, and to all of group `admins` everywhere."""

    def create(self, res: Any, what: SubjectAccessReview, **_: Any) -> SubjectAccessReview:
        """A review of a right."""
        del res
        attributes = what.spec.resource_attributes
        of_eve = what.spec.user == "eve" and attributes is not None and attributes.namespace == "a"
        allowed = of_eve or "admins" in what.spec.groups
        return SubjectAccessReview(spec=what.spec, status=SubjectAccessReviewStatus(allowed=allowed))


@pytest.mark.parametrize(
    ("user", "namespace", "allowed"),
    [
        (UserInfo(username="eve"), "a", True),
        (UserInfo(username="eve"), "b", False),
        (UserInfo(username="bob"), "a", False),
        (UserInfo(username="bob", groups=["admins"]), "b", True),
    ],
)
def test_a_right_is_that_of_its_user(user: UserInfo, namespace: str, *, allowed: bool) -> None:
    """Whoever was asked about a moment ago, with whatever groups, and for whatever namespace."""
    rights = Rights(Server(), lambda: 100.0)  # type: ignore[arg-type]  # all that is called
    verb = {"verb": "update", "resource": "queues", "name": "q"}
    for before in (UserInfo(username="eve"), UserInfo(username="bob"), UserInfo(username="bob", groups=["admins"])):
        for where in ("a", "b"):
            rights.allows(before, ResourceAttributes(namespace=where, **verb))
    assert rights.allows(user, ResourceAttributes(namespace=namespace, **verb)) is allowed


def test_an_owner_is_that_of_the_pods_own_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may name the UID of a Job elsewhere, which others have just asked about: it is given no foreign Job."""

    def live(_: Cached[Any], name: str, namespace: str = "") -> IndexedJob | None:
        content = {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-in-{namespace}"}, "spec": {}}
        return msgspec.convert(content, IndexedJob)

    monkeypatch.setattr(Cached, "live", live)
    client = Client(Config("http://127.0.0.1:1"))
    owners = OwnerLookup(client, lambda: 100.0)

    def found(namespace: str, uid: str) -> str:
        reference = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid=uid)
        job = owners.find(INDEXED_JOBS, namespace, reference)
        return job.metadata.namespace if job else ""

    assert [found("a", "uid-in-a"), found("b", "uid-in-a"), found("b", "uid-in-b"), found("a", "uid-in-b")] == [
        "a", "", "b", ""
    ]  # fmt: skip
    assert [found("a", "uid-in-a"), found("b", "uid-in-b")] == ["a", "b"]
    client.close()
