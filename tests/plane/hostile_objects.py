"""Hostile, valid objects: of each kind that a process watches, the deepest, longest and most repeated that there are.

They follow from the API server's own schemas (OpenAPI v3). An object begins with the fewest fields that its kind asks
for. Then some of its places (lists, maps, texts, and fields of any content) are filled with as much as fits; two at
once, since a cost may be a product of two counts. What the API server refuses is tried smaller.
"""

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from native_gates import NATIVE_KINDS
from tenants import JSON, Tenant

from extender.planner.state.feed import FEED
from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.kube.client import Client
from muster.kube.errors import APIError
from muster.workloads.table import CONTROLLERS

Kind = Literal["list", "map", "text", "any"]
Path = tuple[str | int, ...]
SIZES_BYTES = (1_200_000, 300_000, 60_000, 8_000)
"""What the filled places of an object have together; the first that the API server accepts is taken."""
DEPTHS = (100, 900, 4_000, 9_900)
_MAX_PATH = 16
_DELETED = 0.5
_MARK = "nested-{}-deep"
_NOT_FILLED = {
    *("apiVersion", "kind", "status", "generateName", "ownerReferences", "finalizers", "name", "namespace", "uid"),
    *("resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink", "generation"),
}
_WORDS: JSON = {
    "operator": "In", "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "image": "none",
    "restartPolicy": "Never", "schedulerName": "volcano", "weight": 1, "maxSkew": 1, "protocol": "TCP",
    "queue": "default", "accessModes": ["ReadWriteOnce"], "deviceClassName": "gpu.example.com"
}  # fmt: skip
"""Values of fields whose schema does not say which ones are valid."""
_READ = (*(fed.resource for fed in FEED), *CONTROLLERS.values(), INDEXED_JOBS, CONFIG_MAPS, COMMANDS, TRAIN_JOBS)
KINDS: tuple[Resource[Any], ...] = tuple(
    {
        (each.group, each.plural): each
        for each in (*_READ, TRAINING_RUNTIMES, JOB_FLOWS, JOB_TEMPLATES, CRON_JOBS)
        if each.namespaced and each is not PLACEMENTS and each not in NATIVE_KINDS
    }.values()
)
"""The kinds with a namespace that a process of Muster's reads, tenants may write, and any API server serves."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of an object that can be filled: the keys and indices on the way to it, and its schema."""

    path: Path
    kind: Kind
    schema: JSON


class Schemas:
    """The schemas of an API server; references are followed on the way."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._documents: dict[str, JSON] = {}
        self._places: dict[tuple[str, str], list[Place]] = {}

    def of(self, resource: Resource[Any]) -> JSON | None:
        """The schema of a kind; None if the API server does not serve it."""
        document = self._document(resource)
        version = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        for schema in document.get("components", {}).get("schemas", {}).values():
            if version in schema.get("x-kubernetes-group-version-kind", []):
                return dict(schema)
        return None

    def _document(self, resource: Resource[Any]) -> JSON:
        path = f"apis/{resource.group}/{resource.version}" if resource.group else "api/v1"
        if path not in self._documents:
            try:
                self._documents[path] = json.loads(self._client.request("GET", f"/openapi/v3/{path}"))
            except APIError:
                self._documents[path] = {}
        return self._documents[path]

    def resolved(self, resource: Resource[Any], schema: JSON) -> JSON:
        """The schema itself, or the one that it refers to."""
        reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", []) if "$ref" in each), "")
        if not reference:
            return schema
        found = self._document(resource)["components"]["schemas"][reference.rpartition("/")[2]]
        return self.resolved(resource, found)

    def places(self, resource: Resource[Any]) -> list[Place]:
        """All places of a kind that can be filled."""
        key = (resource.group, resource.plural)
        if key not in self._places:
            schema = self.of(resource)
            self._places[key] = list(self._walk(resource, schema, ())) if schema else []
        return self._places[key]

    def _walk(self, resource: Resource[Any], schema: JSON, path: Path) -> Iterator[Place]:
        schema = self.resolved(resource, schema)
        if len(path) > _MAX_PATH or any(part in _NOT_FILLED for part in path[-1:]):
            return
        if "properties" in schema:
            for name, each in schema["properties"].items():
                yield from self._walk(resource, each, (*path, name))
        elif schema.get("type") == "array":
            yield Place(path, "list", schema)
            yield from self._walk(resource, schema["items"], (*path, 0))
        elif isinstance(schema.get("additionalProperties"), dict):
            yield Place(path, "map", schema)
        elif schema.get("type") == "string":
            if not {"enum", "format", "pattern"} & {*schema}:
                yield Place(path, "text", schema)
        elif schema.get("type", "object") == "object" and "oneOf" not in schema:
            yield Place(path, "any", schema)

    def least(self, resource: Resource[Any], schema: JSON, name: str, number: int = 0) -> Any:
        """The smallest value of a schema, for the field `name`; values of other numbers differ where they can."""
        schema = self.resolved(resource, schema)
        if name in _WORDS and "properties" not in schema:  # a volume's `image` is no name of one
            return copy.deepcopy(_WORDS[name])
        kind = schema.get("type", "object")
        if kind not in {"array", "object"} or schema.get("x-kubernetes-int-or-string") or "oneOf" in schema:
            return _scalar(schema, name, number)
        if kind == "array":
            item = self.least(resource, schema["items"], name.removesuffix("s"), number)
            return [item] if schema.get("minItems") or name == "values" else []
        required = {*schema.get("required", []), *({"values"} & {*schema.get("properties", {})})}
        return {key: self.least(resource, schema["properties"][key], key, number) for key in sorted(required)}


def encoded(obj: JSON) -> bytes:
    """The object as JSON, with nested values in place of marks: no encoder of Python's nests as deep."""

    def nested(mark: re.Match[str]) -> str:
        depth = int(mark[1])
        return '[{"x":' * (depth // 2) + "1" + "}]" * (depth // 2)

    return re.sub(_MARK.format("([0-9]+)").join('""'), nested, json.dumps(obj)).encode()


def _scalar(schema: JSON, name: str, number: int) -> Any:
    """A text that is a label, a name, and a path where one is asked for; a small number; true."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "boolean":
        return True
    if schema.get("type") != "string" or schema.get("format") == "int-or-string":
        return max(schema.get("minimum", 1), 1)
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    return f"/x{number}" if "path" in name.lower() else f"x{number}"


class Maker:
    """Makes hostile objects of all kinds that are served."""

    def __init__(self, schemas: Schemas, chance: random.Random) -> None:
        self._schemas = schemas
        self._chance = chance
        self.kinds = [each for each in KINDS if schemas.of(each)]
        self.refused: set[tuple[str, str, Path]] = set()
        """Group, kind and path of places that are refused, however little they hold."""

    def places(self, resource: Resource[Any]) -> list[Place]:
        """Two places of this kind; those of a field are as likely as those of another, whatever is below it."""
        by_field: dict[Path, list[Place]] = {}
        for place in self._schemas.places(resource):
            if (resource.group, resource.kind, place.path) in self.refused:
                continue
            by_field.setdefault(place.path[:2], []).append(place)
        fields = [self._chance.choice(sorted(by_field)), self._chance.choice(sorted(by_field))]
        return [self._chance.choice(by_field[field]) for field in fields]

    def made(self, resource: Resource[Any], name: str, places: list[Place], size_bytes: int) -> JSON:
        """An object of the kind with these places filled."""
        obj = base(resource, name)
        for place in places:
            self._put(resource, obj, place, self._filled(resource, place, size_bytes // len(places)))
        return obj

    def _filled(self, resource: Resource[Any], place: Place, size_bytes: int) -> Any:
        name = next((part for part in reversed(place.path) if isinstance(part, str)), "")
        if place.kind == "text":
            return "x" * min(size_bytes, place.schema.get("maxLength", size_bytes))
        if place.kind == "any":
            return self._deep(size_bytes)
        if place.kind == "map":
            value = place.schema["additionalProperties"]
            return {f"x{n}": each for n, each in enumerate(self._many(resource, value, name, size_bytes))}
        items = self._many(resource, place.schema["items"], name.removesuffix("s"), size_bytes)
        return items[: place.schema.get("maxItems", len(items))]

    def _many(self, resource: Resource[Any], schema: JSON, name: str, size_bytes: int) -> list[Any]:
        one = len(json.dumps(self._schemas.least(resource, schema, name, 10_000))) + 10
        return [self._schemas.least(resource, schema, name, number) for number in range(max(1, size_bytes // one))]

    def _deep(self, size_bytes: int) -> JSON:
        """A value that is nested as deep as the size allows; `encoded` puts it in place of the mark."""
        return {"x": _MARK.format(self._chance.choice([each for each in DEPTHS if each * 6 < size_bytes] or [100]))}

    def _put(self, resource: Resource[Any], obj: JSON, place: Place, value: Any) -> None:
        """Set the value at the place, and what is missing on the way to it."""
        schema: JSON = self._schemas.of(resource) or {}
        node: Any = obj
        for index, part in enumerate(place.path):
            schema = self._schemas.resolved(resource, schema)
            schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
            if index == len(place.path) - 1:
                break
            name = next((each for each in reversed(place.path[: index + 1]) if isinstance(each, str)), "")
            if isinstance(part, int) and not node:
                node.append(self._schemas.least(resource, schema, name.removesuffix("s")))
            elif not isinstance(part, int) and node.get(part) in (None, [], {}):
                empty = self._schemas.resolved(resource, schema).get("type") == "array"
                node[part] = [] if empty else self._schemas.least(resource, schema, part)
            node = node[part]
        last = place.path[-1]
        if isinstance(last, int):
            node[:] = [value]
        else:
            node[last] = (
                {**node[last], **value} if isinstance(node.get(last), dict) and isinstance(value, dict) else value
            )


def base(resource: Resource[Any], name: str) -> JSON:
    """A small object of this kind that the API server accepts."""
    pod: JSON = {"spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never"}}
    labelled = {"metadata": {"labels": {"x": "y"}}, **copy.deepcopy(pod)}
    labelled["spec"] = {**labelled["spec"], "restartPolicy": "Always"}
    selector = {"matchLabels": {"x": "y"}}
    replicas = {"replicas": 0, "selector": selector, "template": labelled}
    claim = {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    resources = {"requests": {"storage": "1"}}
    step = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}
    runtime_pod = {"spec": {"containers": [{"name": "node", "image": "none"}]}}
    runtime_job = {"name": "node", "template": {**step, "spec": {"template": runtime_pod}}}
    specs: dict[str, JSON] = {
        "Pod": {"schedulerName": "volcano", **pod["spec"]},
        "Job": {"template": copy.deepcopy(pod)},
        "ReplicaSet": replicas,
        "Deployment": replicas,
        "StatefulSet": {**replicas, "serviceName": "x"},
        "DaemonSet": {"selector": selector, "template": labelled},
        "PodGroup": {"minMember": 1},
        "PersistentVolumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": resources},
        "PodDisruptionBudget": {"minAvailable": 1, "selector": selector},
        "ResourceClaim": claim,
        "ResourceClaimTemplate": {"spec": claim},
        "ResourceQuota": {"hard": {"pods": "100"}},
        "TrainJob": {"runtimeRef": {"name": "torch-distributed", "kind": "ClusterTrainingRuntime"}},
        "TrainingRuntime": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [runtime_job]}}},
    }
    of_job = {"tasks": [{"name": "w", "replicas": 1, "template": copy.deepcopy(pod)}], "minAvailable": 1}
    of_volcano: dict[str, JSON] = {
        "Job": of_job,
        "JobTemplate": of_job,
        "JobFlow": {"flows": [{"name": "x"}]},
        "CronJob": {"schedule": "@daily", "jobTemplate": {"spec": of_job}},
    }
    spec = (of_volcano if resource.group.endswith(".volcano.sh") else {}).get(
        resource.kind, specs.get(resource.kind, {})
    )
    metadata: JSON = {"name": name, "labels": {names.QUEUE: "default"} if resource.kind in {"Pod", "TrainJob"} else {}}
    return {"metadata": metadata, **({"spec": copy.deepcopy(spec)} if spec else {})}


class HostileObjects:
    """Creates such objects for one tenant. `told` counts the answers, by kind and number, 0 if it was made."""

    def __init__(self, schemas: Schemas, tenant: Tenant, chance: random.Random) -> None:
        self.tenant = tenant
        self.chance = chance
        self.told: Counter[tuple[str, int]] = Counter()
        self._maker = Maker(schemas, chance)
        self._number = 0

    def act(self) -> None:
        """One object, as large as the API server accepts; sometimes it is deleted at once."""
        resource = self.chance.choice(self._maker.kinds)
        places = self._maker.places(resource)
        accepted = any(self._create(resource, places, size_bytes) for size_bytes in SIZES_BYTES)
        if accepted and self.chance.random() < _DELETED:
            self._delete(resource, f"bad-{self._number}")
        for place in [] if accepted else places:
            if not self._create(resource, [place], SIZES_BYTES[-1]):
                self._maker.refused.add((resource.group, resource.kind, place.path))

    def _create(self, resource: Resource[Any], places: list[Place], size_bytes: int) -> bool:
        """True if the API server accepts an object with these places filled."""
        self._number += 1
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        made = kind | self._maker.made(resource, f"bad-{self._number}", places, size_bytes)
        try:
            self.tenant.client.request("POST", resource.path(self.tenant.namespace), body=encoded(made))
        except APIError as error:
            self.told[resource.plural, error.status] += 1
            return False
        self.told[resource.plural, 0] += 1
        return True

    def end(self) -> None:
        """Nothing is left to wait for."""

    def _delete(self, resource: Resource[Any], name: str) -> None:
        try:
            self.tenant.client.delete(as_data(resource), name, self.tenant.namespace)
        except APIError as error:
            self.told[f"delete {resource.plural}", error.status] += 1


def as_data(resource: Resource[Any]) -> Resource[Any]:
    """The kind with its objects as plain data: the answer to a hostile one need not be readable."""
    return Resource(
        resource.group, resource.version, resource.plural, resource.kind, dict[str, Any], namespaced=resource.namespaced
    )
