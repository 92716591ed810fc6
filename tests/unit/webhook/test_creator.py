"""Who created a workload is the user of the request, whatever the object says."""

from itertools import product
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.admission import AdmissionRequest, GroupVersionKind, UserInfo
from muster.api.muster.creator import MOST_CHARS, UNKNOWN, creator_of, passed_on, written
from muster.api.names import CHANGED_BY, CREATED_BY, HELD_REPLICAS, MOVED_TO
from webhook.mutate.creator import note_user, signed
from webhook.patch import Patch
from webhook.review import Handler, ReviewVerdict

JOB = GroupVersionKind("batch.volcano.sh", "v1alpha1", "Job")


def owned(**controls: bool) -> dict[str, Any]:
    """Metadata of an object that has an owner."""
    return {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", **controls}]}


OWNED = owned(controller=True)
CONTROLLER = "system:serviceaccount:kube-system:job-controller"


def admitted(
    metadata: dict[str, Any],
    user: str,
    handler: Handler = lambda _: ReviewVerdict(),
    *,
    kind: GroupVersionKind = JOB,
    **more: Any,
) -> dict[str, Any]:
    """The object after admission."""
    document = {"metadata": metadata, "spec": more.get("spec", {})}
    old = msgspec.Raw(msgspec.json.encode({"metadata": more["old"]})) if "old" in more else msgspec.Raw(b"null")
    request = AdmissionRequest(
        uid="u",
        kind=kind,
        namespace=more.get("namespace", "team"),
        operation="UPDATE" if "old" in more else "CREATE",
        user_info=UserInfo(username=user),
        object=msgspec.Raw(msgspec.json.encode(document)),
        old_object=old,
    )
    verdict = signed(handler)(request)
    assert len(verdict.patch) == len(verdict.reasons) or not verdict.reasons
    result: dict[str, Any] = jsonpatch.apply_patch(document, list(verdict.patch))
    return result


def by(document: dict[str, Any]) -> str | None:
    """The creator that the object names."""
    found: str | None = document["metadata"].get("annotations", {}).get(CREATED_BY)
    return found


@pytest.mark.parametrize("said", [None, {}, {"a": "b"}, {CREATED_BY: "bob"}, {CREATED_BY: "alice"}])
def test_a_new_object_has_the_name_of_its_sender(said: dict[str, str] | None) -> None:
    """A name that it brings along is overwritten, and its other annotations stay."""
    after = admitted({} if said is None else {"annotations": said}, "alice")
    assert after["metadata"]["annotations"] == {**(said or {}), CREATED_BY: "alice"}


def test_what_a_handler_adds_stays() -> None:
    """The map of annotations is made once, whoever needs it first."""

    def handler(request: AdmissionRequest) -> ReviewVerdict:
        patch = Patch(msgspec.json.decode(request.object))
        patch.set("metadata", "annotations", "other", value="there")
        return ReviewVerdict.admitted_with(patch)

    assert admitted({}, "alice", handler)["metadata"]["annotations"] == {"other": "there", CREATED_BY: "alice"}


@pytest.mark.parametrize(
    ("user", "metadata", "is_controller"),
    [
        (CONTROLLER, OWNED, True),
        ("system:serviceaccount:jobs:controller", OWNED, True),
        ("system:kube-controller-manager", OWNED, True),
        ("alice", OWNED, False),
        ("system:serviceaccount:team:builder", OWNED, False),
        ("system:serviceaccount:ci:runner", {}, False),
        (CONTROLLER, owned(), False),
        (CONTROLLER, owned(controller=False), False),
        # An identity provider gives such names to people:
        ("system:kube-controller-manager-2", OWNED, False),
        ("my-system:kube-controller-manager", OWNED, False),
        ("system:kube-controller", OWNED, False),
        ("system:serviceaccounts:other:controller", OWNED, False),
        ("system:serviceaccount", OWNED, False),
        ("serviceaccount:other:controller", OWNED, False),
        ("me@system:serviceaccount:other:controller", OWNED, False),
        ("System:ServiceAccount:other:controller", OWNED, False),
    ],
)
def test_what_a_controller_makes_is_its_owners(user: str, metadata: dict[str, Any], *, is_controller: bool) -> None:
    """It is left as it is, as the owner says who created it; all others are creators themselves."""
    assert by(admitted({**metadata}, user)) == (None if is_controller else user)
    assert by(admitted({**metadata, "annotations": {CREATED_BY: "bob"}}, user)) == ("bob" if is_controller else user)


ALIKE = ["team", "teams", "team-a", "tea", "my-team", "eam", "a", "team-team", "Team", "jobset", "jobset-system"]


@pytest.mark.parametrize("namespace", ALIKE)
def test_only_an_account_of_this_very_namespace_creates_what_has_an_owner(namespace: str) -> None:
    """No account of a namespace with a similar name does (same beginning or end, or a longer name)."""
    for home, account in product(ALIKE, (namespace, "controller")):
        user = f"system:serviceaccount:{home}:{account}"
        for said in ({}, {CREATED_BY: "bob"}):
            after = admitted({**OWNED, "annotations": said}, user, namespace=namespace)
            assert by(after) == (user if home == namespace else said.get(CREATED_BY))


@pytest.mark.parametrize(("user", "stays"), [("alice", False), (CONTROLLER, True), ("", True)])
def test_a_copy_is_neither_moved_nor_held(user: str, *, stays: bool) -> None:
    """These notes are about the object that was copied; on an object that exists they are `muster move`'s."""
    notes = {MOVED_TO: "other", HELD_REPLICAS: "4", "a": "b"}
    after = admitted({**OWNED, "annotations": notes}, user)["metadata"]["annotations"]
    assert ({MOVED_TO, HELD_REPLICAS} <= after.keys()) is stays
    assert after["a"] == "b"
    assert admitted({"annotations": notes}, user, old={})["metadata"]["annotations"] == notes


@pytest.mark.parametrize("said", [None, "mallory"])
def test_an_update_keeps_it(said: str | None) -> None:
    """An update that leaves it out, or changes it, gets back what is there; one that has none before stays so."""
    metadata = {"annotations": {CREATED_BY: said}} if said else {}
    assert by(admitted({**metadata}, "mallory", old={"annotations": {CREATED_BY: "alice"}})) == "alice"
    assert by(admitted({**metadata}, "mallory", old={})) == said


def test_jobs_of_a_cron_job_have_it() -> None:
    """Kubernetes copies the annotations of its template to the Jobs that it makes, and Muster reads no CronJobs."""
    kind = GroupVersionKind("batch", "v1", "CronJob")
    after = admitted({}, "alice", kind=kind, spec={"jobTemplate": {"metadata": {"annotations": {CREATED_BY: "bob"}}}})
    assert by(after) == by(after["spec"]["jobTemplate"]) == "alice"


def test_without_a_user_nothing_is_written() -> None:
    """As for `muster shape`, which admits objects without a cluster."""
    assert by(admitted({}, "")) is None


@given(st.text(min_size=1, max_size=400))
def test_its_length_is_bounded(user: str) -> None:
    """Every name can be written and is read again, and very long ones stay apart."""
    value = written(user)
    assert len(value) <= MOST_CHARS
    assert creator_of({CREATED_BY: value}) == value
    assert written(user + "x") != value


def test_a_longer_value_is_not_read() -> None:
    """Nobody who may write it without admission fills memory with it."""
    assert creator_of({CREATED_BY: "x" * (MOST_CHARS + 1)}) == creator_of({}) == UNKNOWN


def test_what_is_made_of_a_template_has_the_creator_of_its_owner() -> None:
    """A template is its author's, and so is what it says about a creator."""
    said = {CREATED_BY: "bob", "a": "b"}
    assert passed_on({CREATED_BY: "alice"}, said) == {CREATED_BY: "alice", "a": "b"}
    assert passed_on({}, said) == {"a": "b"}


@pytest.mark.parametrize("annotations", [None, {}, {"a": "b"}, {CHANGED_BY: "bob"}])
def test_who_changes_a_pod_group_is_noted(annotations: dict[str, str] | None) -> None:
    """Whatever name the request brings along."""
    after = admitted({} if annotations is None else {"annotations": annotations}, "alice", note_user, old={})
    assert after["metadata"]["annotations"] == {**(annotations or {}), CHANGED_BY: "alice"}


@pytest.mark.parametrize(("kind", "api_version", "expected"), [
    ("Job", "batch.volcano.sh/v1alpha1", "bob"),
    ("StatefulSet", "apps/v1", ""),
])  # fmt: skip
def test_a_controller_does_not_change_a_pod_group_for_itself(kind: str, api_version: str, expected: str) -> None:
    """The Job names the user; for other kinds, the user is unknown."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "w", "uid": "u", "controller": True}
    metadata = {"annotations": {CHANGED_BY: "bob"}, "ownerReferences": [owner]}
    after = admitted(metadata, "system:serviceaccount:muster-system:muster-controller", note_user, old={})
    assert after["metadata"]["annotations"][CHANGED_BY] == expected
