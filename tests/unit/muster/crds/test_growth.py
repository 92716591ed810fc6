"""CRDs only grow: what was released once is not taken back, and each way of taking something back is seen."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from muster.crds import growth
from muster.crds.files import DEFINITIONS, Definition, as_lines, facts_of
from musterctl.chart.files import CRDS, document
from musterctl.generate import RELEASED, RELEASED_NAMES, ROOT, wire_names

JSON = dict[str, Any]


def taken_back(released: list[str], definition: JSON | None) -> list[str]:
    """The ways in which the definition is narrower than the released one, as sentences; None: it is gone."""
    if definition is None:
        return ["the definition is gone"]
    return [*growth.taken_back(dict(_read(released)), facts_of(definition))]


def _read(lines: list[str]) -> Iterator[tuple[str, JSON]]:
    """The paths that `as_lines` wrote, and the facts at each."""
    stack: list[str] = []
    for line in lines:
        name, _, text = line.strip().partition(" ")
        del stack[len(line) - len(line.lstrip()) :]
        stack.append(name)
        yield ".".join(stack), json.loads(text)


JSON = dict[str, Any]
STATUS: JSON = {"type": "object", "properties": {"phase": {"type": "string"}}}
SCHEMA: JSON = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 63, "description": "Its name."},
        "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
        "count": {"type": "integer", "format": "int32", "minimum": 0},
        "sizes": {"type": "array", "items": {"type": "integer", "maximum": 9}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [{"rule": "self.count < 5", "message": "too many"}],
}
WHOLE: JSON = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SCHEMA, "status": STATUS}}}}
VERSION = {"served": True, "subresources": {"status": {}}, **WHOLE}
NAMES = {"kind": "Thing", "plural": "things", "singular": "thing"}
VERSIONS = [{"name": name, "storage": name == "v1", **deepcopy(VERSION)} for name in ("v1", "v1beta1")]
BEFORE: JSON = {"spec": {"group": "example.dev", "scope": "Namespaced", "names": NAMES, "versions": VERSIONS}}
NEWER: frozenset[str] = frozenset()
"""CRDs that the last release did not have."""


def _status(crd: JSON) -> JSON:
    status: JSON = crd["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    return status


Change = Callable[[JSON, JSON], object]
"""Gets the spec of the definition, and the schema of `spec` in its version v1."""

TAKEN_BACK: dict[str, tuple[Change, str]] = {
    "a field": (lambda _, spec: spec["properties"].pop("mode"), "v1.object.spec.mode: is gone"),
    "items": (lambda _, spec: spec["properties"]["sizes"].pop("items"), "v1.object.spec.sizes.[]: is gone"),
    "a version": (lambda crd, _: crd["versions"].pop(), "v1beta1: is gone"),
    "a version's service": (lambda crd, _: crd["versions"][1].update(served=False),
        "v1beta1: served was true and is false"),
    "the status": (lambda crd, _: crd["versions"][0].update(subresources={}),
        'v1: subresources was ["status"] and is []'),
    "the scope": (lambda crd, _: crd.update(scope="Cluster"), 'definition: scope was "Namespaced" and is "Cluster"'),
    "a type": (lambda _, spec: spec["properties"]["name"].update(type="integer"),
        'v1.object.spec.name: type was "string" and is "integer"'),
    "a type in a list": (lambda _, spec: spec["properties"]["sizes"]["items"].update(type="string"),
        'v1.object.spec.sizes.[]: type was "integer" and is "string"'),
    "a type in a map": (lambda _, spec: spec["properties"]["labels"]["additionalProperties"].update(type="integer"),
        'v1.object.spec.labels.{}: type was "string" and is "integer"'),
    "the freedom to leave a field out": (lambda _, spec: spec["required"].append("count"),
        "v1.object.spec: count is required now"),
    "a new field that is required": (lambda _, spec: (spec["required"].append("more"),
        spec["properties"].update(more={"type": "string"})), "v1.object.spec: more is required now"),
    "a value": (lambda _, spec: spec["properties"]["mode"]["enum"].remove("fast"), "no longer accepts fast"),
    "all other values": (lambda _, spec: spec["properties"]["name"].update(enum=["a", "b"]),
        "v1.object.spec.name: accepts only a, b now"),
    "length": (lambda _, spec: spec["properties"]["name"].update(maxLength=10), "maxLength was 63 and is 10"),
    "small numbers": (lambda _, spec: spec["properties"]["count"].update(minimum=1), "minimum was 0 and is 1"),
    "big numbers": (lambda _, spec: spec["properties"]["count"].update(maximum=7), "maximum was null and is 7"),
    "free text": (lambda _, spec: spec["properties"]["name"].update(pattern="a+"), 'pattern was null and is "a+"'),
    "a default": (lambda _, spec: spec["properties"]["mode"].update(default="fast"),
        'default was "safe" and is "fast"'),
    "unknown fields": (lambda _, spec: spec["properties"]["free"].pop("x-kubernetes-preserve-unknown-fields"),
        "x-kubernetes-preserve-unknown-fields was true and is null"),
    "objects that a rule refuses": (lambda _,
        spec: spec["x-kubernetes-validations"].append({"rule": "self.name != 'x'"}),
        "v1.object.spec: has a new rule, self.name != 'x'"),
    "how lists are merged": (lambda _, spec: spec["properties"]["sizes"].update({"x-kubernetes-list-type": "atomic"}),
        'x-kubernetes-list-type was null and is "atomic"'),
}  # fmt: skip
GROWN: dict[str, Change] = {
    "nothing": lambda *_: None,
    "a field": lambda _, spec: spec["properties"].update(more={"type": "string", "maxLength": 5}),
    "an object with a field that it needs": lambda _, spec: spec["properties"].update(
        more={"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    ),
    "a version": lambda crd, _: crd["versions"].append({**crd["versions"][0], "name": "v2", "storage": False}),
    "a value": lambda _, spec: spec["properties"]["mode"]["enum"].append("both"),
    "any value": lambda _, spec: spec["properties"]["mode"].pop("enum"),
    "length": lambda _, spec: spec["properties"]["name"].update(maxLength=253),
    "smaller numbers": lambda _, spec: spec["properties"]["count"].pop("minimum"),
    "longer numbers": lambda _, spec: spec["properties"]["count"].update(format="int64"),
    "freedom": lambda _, spec: spec["required"].clear(),
    "one rule less": lambda _, spec: spec["x-kubernetes-validations"].clear(),
    "a rule's other words": lambda _, spec: spec["x-kubernetes-validations"][0].update(message="fewer than 5, please"),
    "another description": lambda _, spec: spec["properties"]["name"].update(description="What it is called."),
    "a default of a status": lambda crd, _: _status(crd).update(default={"phase": "Pending"}),
    "a subresource": lambda crd, _: crd["versions"][0]["subresources"].update(scale={}),
}


def changed(change: Change) -> JSON:
    """The definition after a change."""
    after = deepcopy(BEFORE)
    change(after["spec"], after["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return after


@pytest.mark.parametrize("what", TAKEN_BACK)
def test_what_is_taken_back_is_named(what: str) -> None:
    """With its path; nothing that follows from it is said beside."""
    change, sentence = TAKEN_BACK[what]
    (found,) = taken_back(as_lines(BEFORE), changed(change))
    assert found.endswith(sentence)


@pytest.mark.parametrize("what", GROWN)
def test_growth_is_none_of_it(what: str) -> None:
    """Whatever was taken is still taken."""
    assert taken_back(as_lines(BEFORE), changed(GROWN[what])) == []


def test_a_kind_cannot_go() -> None:
    """Nor can an unknown word of a schema pass: somebody must say what it means."""
    assert taken_back(as_lines(BEFORE), None) == ["the definition is gone"]
    after = changed(lambda _, spec: spec["properties"]["name"].update({"x-kubernetes-new": True}))
    with pytest.raises(ValueError, match="x-kubernetes-new: there is no rule"):
        taken_back(as_lines(BEFORE), after)


@pytest.mark.parametrize("file", sorted((ROOT / RELEASED).glob("*.txt")), ids=lambda file: file.stem)
def test_these_crds_take_back_nothing_that_was_released(file: Any) -> None:
    """`make release-crds` writes charts/released, at a release and at no other time."""
    now = CRDS / f"{file.stem}.yaml"
    assert taken_back(file.read_text(encoding="utf-8").splitlines(), document(now) if now.exists() else None) == []


def test_every_crd_was_released() -> None:
    """A kind that is newer than the last release is named here, and no longer when that release is made."""
    released = {file.stem for file in (ROOT / RELEASED).glob("*.txt")}
    assert released.isdisjoint(NEWER)
    assert released | NEWER == {file.stem for file in CRDS.glob("*.yaml")}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.resource.full_name)
def test_the_last_release_serves_what_is_stored_and_used(definition: Definition) -> None:
    """So that there is a way back: a version is stored, and used by Muster's processes, one release after it came."""
    resource = definition.resource
    if resource.full_name not in NEWER:
        lines = (ROOT / RELEASED / f"{resource.full_name}.txt").read_text(encoding="utf-8").splitlines()
        assert dict(_read(lines))[resource.version]["served"]
    versions = document(CRDS / f"{resource.full_name}.yaml")["spec"]["versions"]
    assert [each["name"] for each in versions if each["storage"]] == [resource.version]


def test_names_of_the_last_release_still_exist() -> None:
    """Labels and annotations of users' manifests keep their effect: docs/features.md defines when one may end."""
    released = (ROOT / RELEASED_NAMES).read_text(encoding="utf-8").split()
    assert released
    assert sorted(set(released) - set(wire_names())) == []
