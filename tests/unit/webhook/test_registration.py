"""The API server sends only objects that opt in to Muster, and refuses them when the webhook does not answer."""

from base64 import b64decode
from collections.abc import Sequence
from itertools import product

import pytest
from webhook_world import FRAMEWORK, JSON, lookups

from webhook.app import routes
from webhook.conditions import ANNOTATED_REQUEST, IN_A_NATIVE_GROUP, in_a_group, quoted
from webhook.config import ResourceGroup
from webhook.registration import configurations

LEAVE = {"muster.dev/managed": "false"}
REVIEWED = {"muster.dev/reviewed": "true"}
GROUPS = [
    ResourceGroup(name="a", namespaces=("team", "ops"), labels={"x": "y"}),
    ResourceGroup(name="b", annotations=(("example.com/it's", 'a "b" \\ c\n'),), labels={"x": "y"}),
]


def webhooks(url: str | None = "https://127.0.0.1:9443/", service: tuple[str, str] | None = None) -> list[JSON]:
    """All webhooks of both configurations."""
    return [each for one in configurations(url=url, service=service, ca_bundle=b"PEM") for each in one["webhooks"]]


def test_one_configuration_of_each_kind() -> None:
    """Both are named muster, so that applying them again replaces them."""
    found = [(one["kind"], one["metadata"]["name"]) for one in configurations(url="https://x", ca_bundle=b"")]
    assert found == [("MutatingWebhookConfiguration", "muster"), ("ValidatingWebhookConfiguration", "muster")]


def test_every_route_exists_and_is_used() -> None:
    """Each webhook points to a route of the app, and no route is left out."""
    paths = {each["clientConfig"]["url"].removeprefix("https://127.0.0.1:9443") for each in webhooks()}
    assert paths == set(routes(lookups(), FRAMEWORK))


def test_names_are_unique_and_short() -> None:
    """The API server refuses a configuration with two webhooks of one name, and puts the name before each refusal."""
    for one in configurations(url="https://x", ca_bundle=b"", groups=GROUPS):
        found = [each["name"] for each in one["webhooks"]]
        assert len(found) == len(set(found))
        assert max(map(len, found)) <= 60


def test_fail_closed_and_small() -> None:
    """Each webhook fails closed, within 10 s, or open within 2 s, and never sees the system's namespaces.

    But for one that only warns, and for scales, which are those of all StatefulSets.
    """
    for each in webhooks():
        policy = ("Ignore", 2) if each["name"].startswith(("namespaces.", "scales.")) else ("Fail", 10)
        assert (each["failurePolicy"], each["timeoutSeconds"]) == policy
        assert each["sideEffects"] == "None"
        assert each["matchPolicy"] == "Equivalent"
        [outside, *_] = each["namespaceSelector"]["matchExpressions"]
        assert {"kube-system", "kube-node-lease", "muster-system"} == set(outside["values"])
        assert outside["operator"] == "NotIn"
        assert b64decode(each["clientConfig"]["caBundle"]) == b"PEM"


def test_foreign_kinds_are_filtered() -> None:
    """Foreign kinds are only sent when they, or their namespace, carry one of our labels. Scales have none."""
    ours = ("volcano.sh", "trainer.kubeflow.org")
    for each in webhooks():
        rules = each["rules"]
        if not all(rule["apiGroups"][0].endswith(ours) or rule["resources"][0].endswith("/scale") for rule in rules):
            conditions = each.get("matchConditions", [])
            by_object = any(one["operator"] == "Exists" for one in expressions(each, "objectSelector"))
            by_namespace = {"key": "muster.dev/queue", "operator": "Exists"} in expressions(each, "namespaceSelector")
            assert by_object or by_namespace or any(one["name"] == "asks-for-muster" for one in conditions)


def expressions(webhook: JSON, selector: str) -> list[JSON]:
    """The expressions of a selector."""
    found: list[JSON] = webhook.get(selector, {}).get("matchExpressions", [])
    return found


def selects(webhook: JSON, labels: dict[str, str], selector: str = "objectSelector") -> bool:
    """True if a webhook's selector takes these labels, as the API server evaluates it."""
    test = {
        "Exists": lambda one: one["key"] in labels,
        "DoesNotExist": lambda one: one["key"] not in labels,
        "NotIn": lambda one: labels.get(one["key"]) not in one["values"],
    }
    return all(test[one["operator"]](one) for one in expressions(webhook, selector))


def holds(webhook: JSON, known: dict[str, bool]) -> bool:
    """True if a webhook's conditions hold; those that are not among the known ones do."""
    texts = [one["expression"] for one in webhook.get("matchConditions", ())]
    known = known | {f"!({text})": not value for text, value in known.items()}
    return all(known.get(text, True) for text in texts)


@pytest.mark.parametrize(("groups", "grouped"), [((), False), (GROUPS, False), (GROUPS, True)])
@pytest.mark.parametrize("namespace", [{}, {"muster.dev/queue": "a"}, {"muster.dev/queue": "a", **LEAVE}])
def test_a_pod_is_sent_once(*, namespace: JSON, groups: Sequence[ResourceGroup], grouped: bool) -> None:
    """However labels, groups, the gate's annotation and a native PodGroup are combined, one webhook changes a pod.

    None does if it shall be left alone; one whose Job was reviewed is changed only for its own labels.
    """
    mutating, _ = configurations(url="https://x", ca_bundle=b"", groups=groups)
    of_pods = [each for each in mutating["webhooks"] if each["rules"][0]["resources"] == ["pods"]]
    here = [each for each in of_pods if selects(each, namespace, "namespaceSelector")]
    inherits = "muster.dev/queue" in namespace and LEAVE.items() - namespace.items() != set()
    labels: tuple[tuple[JSON, ...], ...] = (
        ({}, {"muster.dev/framework": "torch"}),
        ({}, {"muster.dev/queue": "b"}),
        ({}, LEAVE, {"muster.dev/managed": "true"}),
        ({}, REVIEWED, {"muster.dev/reviewed": "false"}),
    )
    for framework, queue, managed, reviewed in product(*labels):
        pod = {**framework, **queue, **managed, **reviewed}
        for held, native in product((False, True), repeat=2):
            known = {ANNOTATED_REQUEST: held, IN_A_NATIVE_GROUP: native}
            known |= {in_a_group(groups): grouped} if groups else {}
            taken = [each["name"] for each in here if selects(each, pod) and holds(each, known)]
            unseen = reviewed != REVIEWED
            asks = bool(framework or queue or (unseen and (inherits or grouped or held or native))) and managed != LEAVE
            assert len(taken) == asks, (pod, known)


@pytest.mark.parametrize("kind", [
    "deployments", "statefulsets", "replicasets", "replicationcontrollers", "cronjobs", "jobsets", "leaderworkersets",
    "daemonsets",
])  # fmt: skip
def test_the_creator_of_every_owner_of_pods_is_written(kind: str) -> None:
    """If pods are managed, or its template opts in: "no known creator" would be a second user for everybody."""
    mutating, _ = configurations(url="https://x", ca_bundle=b"")
    signed = [
        each
        for each in mutating["webhooks"]
        if any(rule["resources"] == [kind] and "volcano" not in rule["apiGroups"][0] for rule in each["rules"])
        and each["clientConfig"]["url"].endswith("/mutate/creator")
    ]
    queued = {"muster.dev/queue": "q"}
    everywhere = {"templated"} if kind == "daemonsets" else {"created", "templated"}
    for namespace, named in ((queued, everywhere), ({}, {"templated"}), (LEAVE | queued, {"templated"})):
        sent = {each["name"].partition("-")[0] for each in signed if selects(each, namespace, "namespaceSelector")}
        assert sent == named
    for each in signed:
        conditions = {one["name"] for one in each["matchConditions"]}
        assert conditions >= {"is-not-sent-by-a-controller"}
        assert ("says-nothing-in-templates" in conditions) != ("asks-for-muster" in conditions)


def test_conditions_of_groups() -> None:
    """One for all groups, whatever characters they are written with; without groups there is none."""
    text = in_a_group(GROUPS)
    assert text.startswith('(request.namespace in ["ops", "team"] || (has(object.metadata.annotations) && ')
    assert 'object.metadata.annotations["example.com/it\'s"] == "a \\"b\\" \\\\ c\\n")' in text
    assert quoted("ü😀") == '"ü😀"'
    assert "request.namespace" not in in_a_group(GROUPS[1:])
    assert "exists(owner, has(owner.controller) && owner.controller && owner.kind == 'Job' && " in text

    def entries(groups: Sequence[ResourceGroup]) -> set[str]:
        mutating, _ = configurations(url="https://x", ca_bundle=b"", groups=groups)
        return {each["name"].partition(".")[0] for each in mutating["webhooks"]}

    assert entries(GROUPS) - entries(()) == {"grouped-pods"}


@pytest.mark.parametrize("where", [None, ("elsewhere", "muster-webhook")])
def test_what_the_controller_computes_of_a_job_is_not_sent(where: tuple[str, str] | None) -> None:
    """Only its own account's: any tenant may have one of that name in another namespace."""
    url = None if where else "https://x"
    [entry] = [
        each
        for each in webhooks(url, where)
        if "/validate/podgroup" in (each["clientConfig"].get("url", "") + str(each["clientConfig"].get("service")))
    ]
    text = {one["name"]: one["expression"] for one in entry["matchConditions"]}["is-not-computed-from-a-workload"]
    namespace = where[0] if where else "muster-system"
    assert f'request.userInfo.username == "system:serviceaccount:{namespace}:muster-controller" && ' in text
    assert "(request.operation == 'CREATE' ? (" in text
    assert "owner.apiVersion.startsWith('batch.volcano.sh/')" in text


def test_mutations_are_repeated_when_others_change_the_pod() -> None:
    """Only mutating webhooks have a reinvocation policy."""
    mutating, validating = configurations(url="https://x", ca_bundle=b"")
    assert {each["reinvocationPolicy"] for each in mutating["webhooks"]} == {"IfNeeded"}
    assert not any("reinvocationPolicy" in each for each in validating["webhooks"])


def test_behind_a_service() -> None:
    """In a cluster the webhook is reached through its Service."""
    client = webhooks(None, ("muster-system", "muster-webhook"))[0]["clientConfig"]
    assert client["service"] == {"namespace": "muster-system", "name": "muster-webhook", "path": "/mutate/job"}


def test_either_url_or_service() -> None:
    """Neither or both is a mistake of the caller."""
    with pytest.raises(ValueError, match="either url or service"):
        configurations(ca_bundle=b"")
