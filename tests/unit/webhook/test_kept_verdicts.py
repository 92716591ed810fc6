"""What admission says of objects, and of their mistakes, stays as it was.

The objects are those of the examples and some of each other kind. One or two fields get another value, or name, by
chance; then each object is created, and put in place of the right one. `kept_verdicts.txt` has the beginning of the
answer, and a hash of all of it with the patch. A change that is meant is written by `make decisions`.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import msgspec
import pytest
from builders import manifests
from workload_kinds import KINDS, template

from muster.api.kubernetes.admission import AdmissionRequest, GroupVersionKind, UserInfo
from muster.runtime import registry
from webhook.app import routes
from webhook.offline import schemas
from webhook.offline.admission import OfflineAdmission, admit_all, submit_all
from webhook.offline.lookups import Documents
from webhook.offline.manifests import documents_in
from webhook.registration import routes_of
from webhook.review import MalformedError

JSON = dict[str, Any]
KEPT = Path(__file__).with_name("kept_verdicts.txt")
EXAMPLES = Path(__file__).parents[3] / "examples"
CHANGES = 36
FRAMEWORK = registry.framework()
POD = {"containers": [{"name": "main", "image": "image", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
OTHERS: tuple[JSON, ...] = (
    manifests.queue("team", weight=2, capability={"cpu": "4"}, deserved={"cpu": 2}, guarantee={"resource": {"cpu": 1}},
                    annotations={"muster.dev/namespace-selector": "team in (a,b)", "muster.dev/budget": "cpu=10h/day"}),
    manifests.pod_group("gang", 2, min_task_member={"worker": 2}, network_topology={"mode": "hard"},
                        sub_group_policy=[{"name": "a", "subGroupSize": 1}]),
    manifests.manifest("topology.volcano.sh/v1alpha1", "HyperNode", "rack", tier=1,
                       members=[{"type": "Node", "selector": {"exactMatch": {"name": "node-0"}}}]),
    manifests.manifest("batch.volcano.sh/v1alpha1", "CronJob", "nightly", "ns", schedule="0 3 * * *",
                       timeZone="Europe/Berlin", jobTemplate={"spec": {"tasks": [manifests.task("w", 2)]}}),
    manifests.manifest("flow.volcano.sh/v1alpha1", "JobFlow", "flow", "ns",
                       flows=[{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]),
    manifests.manifest("flow.volcano.sh/v1alpha1", "JobTemplate", "a", "ns", tasks=[manifests.task("w", 2)]),
    {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "c", "namespace": "ns"},
     "action": "AbortJob", "target": manifests.job_owner("train")},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"muster.dev/queue": "team"}}},
    manifests.batch_job("train", 4, labels={"muster.dev/queue": "team", "muster.dev/framework": "torch"},
                        annotations={"muster.dev/spares": "1", "muster.dev/min-member": "3"}, template={"spec": POD}),
    manifests.manifest("v1", "Pod", "alone", "ns", labels={"muster.dev/queue": "team", "muster.dev/gang": "g"},
                       annotations={"muster.dev/rank": "1", "muster.dev/size": "2"}, spec=POD),
    manifests.train_job("fit", "torch-distributed", nodes=2, trainer={"numNodes": 2, "numProcPerNode": 4,
                        "env": [{"name": "A", "value": "1"}], "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}),
    *(make(template(schedulingGroup={"podGroupName": "g"})) for make, _ in KINDS.values()),
)  # fmt: skip
_FIXED = ("apiVersion", "kind", "metadata")
_TEXTS = (("labels",), ("annotations",))
"""Parts of the metadata that users write, and the API server admits with any text."""


AROUND: tuple[JSON, ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"muster.dev/queue": "inner"}}},
    manifests.queue("outer", labels={"muster.dev/node-pool": "fast"}, capability={"cpu": "8"}),
    manifests.queue("inner", parent="outer", annotations={"muster.dev/allowed-namespaces": "ns"}),
)
"""A namespace with a queue, which has a pool: beside half of the objects."""


def documents() -> list[JSON]:
    """The objects, in the order of their files."""
    found = [each for file in sorted(EXAMPLES.rglob("*.yaml")) for each in documents_in(file.read_text(), "")]
    return [*OTHERS, *(each for each in found if each and routes_of(*_group_and_plural(each)))]


def _group_and_plural(document: JSON) -> tuple[str, str]:
    return document["apiVersion"].rpartition("/")[0], f"{document['kind'].lower()}s"


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values below a node."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(document: JSON, chance: Random) -> tuple[str, JSON]:
    """The object with one other value, and which one."""
    result = deepcopy(document)
    path = chance.choice(
        [each for each in places(document) if each[0] not in _FIXED or (each[1:2] in _TEXTS and each[2:])]
    )
    parent: Any = result
    for key in path[:-1]:
        parent = parent[key]
    value = parent[path[-1]]
    if isinstance(path[-1], str) and chance.random() < 0.12:
        misspelt = chance.choice((path[-1][:-1], path[-1].replace("muster.dev/", "muster.io/")))
        parent[misspelt] = parent.pop(path[-1])
        return f"{'.'.join(map(str, path))} as {misspelt}", result
    wrong: list[Any] = ["", "Bad_Name!", "x" * 70, "2", "-1"]
    if path[0] != "metadata":
        wrong += [None, 0, -1, 10**10, [], {}, True]
    if isinstance(value, list) and value:
        wrong += [[*value, deepcopy(value[0])]] * 3
    if isinstance(value, dict):
        wrong += [{**value, "typo": 1}] * 2
    if isinstance(value, int):
        wrong += [value + 1, value - 1] * 2
    new = parent[path[-1]] = chance.choice(wrong)
    return f"{'.'.join(map(str, path))}={str(new)[:24]}", result


def created(document: JSON, around: tuple[JSON, ...]) -> list[Any]:
    """Errors, warnings and result of an object and of those that follow from it."""
    admission = OfflineAdmission(Documents([document, *around], "ns"), FRAMEWORK, user="eve", native=bool(around))
    admitted = [*submit_all(admission, [document])]
    if schemas.mistakes(document):  # the API server refuses it; the webhook answers all the same
        admitted += admit_all(admission, [document])
    return [[str(error) for error in each.errors] + [each.warnings, each.after, each.about] for each in admitted]


def updated(old: JSON, new: JSON) -> list[Any]:
    """Errors, warnings and patches of a change."""
    handlers = routes(OfflineAdmission(Documents([old], "ns"), FRAMEWORK).lookups, FRAMEWORK)
    group, plural = _group_and_plural(old)
    request = AdmissionRequest(
        uid="u", kind=GroupVersionKind(group, old["apiVersion"].rpartition("/")[2], old["kind"]), name="n",
        namespace="ns", operation="UPDATE", user_info=UserInfo(username="eve"),
        object=msgspec.Raw(msgspec.json.encode(new)), old_object=msgspec.Raw(msgspec.json.encode(old)),
    )  # fmt: skip
    answers: list[Any] = []
    for route in routes_of(group, plural):
        verdict = handlers[route](request)
        answers += [*(str(error) for error in verdict.errors), [verdict.warnings, verdict.patch]]
    return answers


def answer(act: Any, *objects: Any) -> str:
    """The beginning of what is said, and a hash of all."""
    try:
        found = act(*objects)
    except (MalformedError, ValueError) as error:
        found = [f"{type(error).__name__}: {error}"]
    first = next((each for each in found if isinstance(each, str)), "")
    first = first or next((each[0] for each in found if isinstance(each, list) and isinstance(each[0], str)), "ok")
    return f"{' '.join(first[:60].split())} {crc32(msgspec.json.encode(found)):08x}"


def verdicts(number: int) -> Iterator[str]:
    """What is said of one object, and of those that it is changed into."""
    document, chance = documents()[number], Random(number)  # noqa: S311 - the same changes each time
    yield f"as it is: {answer(created, document, AROUND)}; {answer(updated, document, document)}"
    for _ in range(CHANGES):
        what, other = changed(document, chance)
        if chance.random() < 0.4:
            more, other = changed(other, chance)
            what = f"{what}, {more}"
        yield f"{what}: {answer(created, other, chance.choice([(), AROUND]))}; {answer(updated, document, other)}"


@pytest.mark.parametrize("number", range(len(documents())))
def test_verdicts_are_those_that_were_kept(number: int) -> None:
    """Of one object."""
    kept = KEPT.read_text().split("# ")[1 + number].split("\n", 1)[1].rstrip()
    assert "\n".join(verdicts(number)) == kept


if __name__ == "__main__":
    KEPT.write_text(
        "".join(f"# {number}\n" + "\n".join(verdicts(number)) + "\n\n" for number in range(len(documents())))
    )
