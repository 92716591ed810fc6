"""The writes of a process, as its source has them, and an API server in memory that notes the preconditions of each.

A write is known by its call site: module, function and call, such as `placements.PlacementWriter._patch merge_patch`.
"""

import ast
import inspect
import random
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_type
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import structs
from simulated_api import RESOURCES, Api
from simulated_faults import Faults

from controller.trainjob.watched import UnknownKindObject
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import APIError, Invalid, TooManyRequests

VERBS = frozenset(
    {"create", "apply", "merge_patch", "strategic_patch", "json_patch", "delete", "bind", "evict", "request"}
)
NOW = 1_800_000_000.0
_TYPES: dict[str, type[Object]] = {"ConfigMap": UnknownKindObject, "JobSet": UnknownKindObject, "PodGroup": PodGroup}
_CLIENTS = frozenset({"client", "_client", "on_loop"})
_A_WRITE = re.compile(rf"\b(?:{'|'.join(_CLIENTS)})\s*\.\s*(?:{'|'.join(VERBS)})\b")


def sites_of(package: ModuleType) -> Counter[str]:
    """The call sites of writes in a package, and how many calls each has."""
    found: Counter[str] = Counter()
    folder = _folder(package)
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text()
        if _A_WRITE.search(text):  # most files have none, and reading them takes seconds
            found.update(f"{_module(file, folder)}.{site}" for site in _writes_in(ast.parse(text), "", ""))
    return found


def _folder(package: ModuleType) -> Path:
    return Path(inspect.getfile(package)).parent


def _module(file: Path, folder: Path) -> str:
    return ".".join(file.relative_to(folder).with_suffix("").parts)


def _writes_in(tree: ast.AST, function: str, scope: str) -> Iterator[str]:
    """Function and verb of each write below a node, also of one that is only named, as for `partial`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _writes_in(node, function, f"{scope}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _writes_in(node, f"{scope}{node.name}", f"{scope}{node.name}.<locals>.")
        else:
            if isinstance(node, ast.Attribute) and node.attr in VERBS and _last_name(node.value) in _CLIENTS:
                yield f"{function} {node.attr}"
            yield from _writes_in(node, function, scope)


def _last_name(value: ast.expr) -> str:
    return value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""


@dataclass
class Sent:
    """A write as it was sent: its call site, its object, the preconditions that it named, and its answer."""

    site: str
    resource: Resource[Any]
    key: str
    named: frozenset[str]
    refused: str = ""
    """Kind of the error; empty if it was carried out."""
    grace_period_s: int | None = None
    """Of a deletion or an eviction, if it says one."""


class GuardedApi(Api):
    """The API server of one package's process.

    `meddle` is called before a write is checked, `answered` when it is carried out: they may change objects, or raise.
    """

    def __init__(self, package: ModuleType) -> None:
        quiet = Faults(random.Random(0), 0.0, 0.0)  # noqa: S311 - nothing is left to chance: no call fails
        super().__init__(quiet, lambda: NOW, lambda *_: None)
        self._version = 1_000_000
        self._root = _folder(package)
        self._one_at_a_time = threading.RLock()
        self.sent: list[Sent] = []
        self.meddle: Callable[[Sent], None] = lambda _: None
        self.answered: Callable[[Sent], None] = lambda _: None
        self.budget = False
        """True while a disruption budget forbids every eviction."""

    def keep(self, res: Resource[Any], *objects: Any) -> None:
        """Objects as they are, with their UIDs and versions."""
        RESOURCES.setdefault(f"{res.group}/{res.plural}", res)
        for each in objects:
            self.kind(res)[each.metadata.key] = each

    def replaced(self, sent: Sent, precondition: str) -> Any:
        """Puts an object with another UID, or another version of the object, in the place of that of a write."""
        field = {"uid": "uid", "resourceVersion": "resource_version"}[precondition]
        known = self.kind(sent.resource)[sent.key]
        other = structs.replace(known, metadata=structs.replace(known.metadata, **{field: "another"}))
        self.kind(sent.resource)[sent.key] = other
        return other

    def fails(self, error: APIError, *verbs: str, only: str = "", times: int = 1) -> None:
        """The next writes of these verbs, of objects whose keys end so, are answered with this error."""
        left = [times]

        def meddle(sent: Sent) -> None:
            if left[0] and sent.site.rpartition(" ")[2] in verbs and sent.key.endswith(only):
                left[0] -= 1
                raise error

        self.meddle = meddle

    def get(self, res: Resource[Any], name: str, namespace: str | None = None, **more: Any) -> Any:
        """See Client."""
        return _as(res, super().get(res, name, namespace, **more))

    def list(self, res: Resource[Any], *_: Any, **__: Any) -> list[Any]:
        """All of a kind."""
        return self.all(res)

    def create(self, res: Resource[Any], obj: Any, namespace: str | None = None, **more: Any) -> Any:
        """See Client."""
        meta = obj["metadata"] if isinstance(obj, Mapping) else msgspec.to_builtins(obj.metadata)
        with self._sending("create", res, meta["name"], namespace or meta.get("namespace"), {}):
            return _as(res, super().create(res, obj, namespace, **more))

    def apply(self, res: Resource[Any], obj: Any, **more: Any) -> Any:
        """See Client."""
        meta = obj["metadata"]
        with self._sending("apply", res, meta["name"], meta.get("namespace"), meta):
            return _as(res, super().apply(res, obj, **more))

    def merge_patch(
        self, res: Resource[Any], name: str, patch: Mapping[str, Any], namespace: str | None = None, **more: Any
    ) -> Any:
        """See Client."""
        with self._sending("merge_patch", res, name, namespace, patch.get("metadata") or {}):
            return super().merge_patch(res, name, patch, namespace, **more)

    def strategic_patch(
        self, res: Resource[Any], name: str, patch: Mapping[str, Any], namespace: str | None = None, **more: Any
    ) -> Any:
        """See Client; of a list only what the patch says is kept."""
        with self._sending("strategic_patch", res, name, namespace, patch.get("metadata") or {}):
            return super().merge_patch(res, name, patch, namespace, **more)

    def json_patch(
        self, res: Resource[Any], name: str, operations: Sequence[Mapping[str, Any]], namespace: str | None = None
    ) -> Any:
        """See Client; it tests the UID, and changes nothing."""
        tested = {each["path"]: each["value"] for each in operations if each["op"] == "test"}
        uid = tested.get("/metadata/uid")
        with self._sending("json_patch", res, name, namespace, {"uid": uid}):
            found = self.find(res, name, namespace)
            if uid not in {None, found.metadata.uid}:
                raise Invalid("the test of /metadata/uid failed")
            return found

    def delete(self, res: Resource[Any], name: str, namespace: str | None = None, **more: Any) -> None:
        """See Client."""
        with self._sending("delete", res, name, namespace, _named(more)) as sent:
            sent.grace_period_s = more.get("grace_period_s")
            super().delete(res, name, namespace, **more)

    def evict(self, namespace: str, name: str, uid: str, **more: Any) -> None:
        """See Client."""
        with self._sending("evict", PODS, name, namespace, _named({"uid": uid, **more})) as sent:
            sent.grace_period_s = more.get("grace_period_s")
            if self.budget:
                raise TooManyRequests("the budget db needs 1 pod")
            found = self.find(PODS, name, namespace)
            super().delete(PODS, name, namespace, uid=uid, resource_version=more.get("resource_version"))
            if names.BATCH_JOB_NAME in found.metadata.labels:  # the finalizer of its Job keeps it
                self.keep(PODS, found)

    def _put(self, res: Resource[Any], content: dict[str, Any], old: Any) -> Any:
        return super()._put(_typed(res), content, old)

    @contextmanager
    def _sending(
        self, verb: str, res: Resource[Any], name: str, namespace: str | None, meta: Mapping[str, Any]
    ) -> Iterator[Sent]:
        named = frozenset(key for key in ("uid", "resourceVersion") if meta.get(key) is not None)
        sent = Sent(f"{self._caller()} {verb}", res, self._key(res, name, namespace), named)
        with self._one_at_a_time:
            self.sent.append(sent)
            try:
                self.meddle(sent)
                yield sent
                self.answered(sent)
            except APIError as error:
                sent.refused = type(error).__name__
                raise

    def _caller(self) -> str:
        """The innermost function of the package that calls."""
        frame = sys._getframe(1)
        while frame is not None and self._root not in Path(frame.f_code.co_filename).parents:
            frame = frame.f_back  # type: ignore[assignment]
        assert frame is not None, "somebody else writes"
        return f"{_module(Path(frame.f_code.co_filename), self._root)}.{frame.f_code.co_qualname}"


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"uid": options.get("uid"), "resourceVersion": options.get("resource_version")}


def _typed(res: Resource[Any]) -> Resource[Any]:
    """The kind with a type that has metadata, and the fields that tests look at."""
    if issubclass(res.type, msgspec.Struct) and res.type is not Object:
        return res
    return with_type(res, type=_TYPES.get(res.kind, Object))


def _as(res: Resource[Any], found: Any) -> Any:
    """An object as its kind is read."""
    return found if issubclass(res.type, msgspec.Struct) else msgspec.to_builtins(found)
