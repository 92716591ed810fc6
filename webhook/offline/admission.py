"""Admits objects one by one through the webhook's own routes, in this process."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest, GroupVersionKind
from muster.runtime.framework import Framework
from webhook.app import routes
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.lookup import Lookups
from webhook.offline.lookups import JSON, Documents, lookups
from webhook.patch import Operation, Why
from webhook.registration import routes_of
from webhook.review import MalformedError

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Admitted:
    """One object before and after; with errors it would be refused. `about` says what it is if nobody wrote it."""

    before: JSON
    after: JSON
    reasons: dict[Path, Why] = field(default_factory=dict)
    """Path of what was added or changed → why."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def title(self) -> str:
        """Kind and name, as messages about the object begin."""
        metadata = self.before.get("metadata") or {}
        return f"{self.before.get('kind', 'object')} {metadata.get('name') or metadata.get('generateName', '')}"


class OfflineAdmission:
    """Admits new objects as a webhook with these resource groups would.

    What an object refers to is looked up in `documents`, then in the `cluster` if there is one. Defaults that the API
    server fills in are not filled in here: an object comes as it is written.
    """

    def __init__(
        self,
        documents: Documents,
        framework: Framework,
        cluster: Lookups | None = None,
        *,
        groups: Sequence[ResourceGroup] = (),
    ) -> None:
        self.documents = documents
        self.framework = framework
        self.lookups = lookups(documents, cluster)
        self._handlers = routes(self.lookups, framework, groups=groups)

    def admit(self, document: JSON) -> Admitted:
        """The object after all routes that the API server would send it to; APIError if the cluster does not answer.

        The routes that change objects come first, as they do in the API server. There a refusal ends the matter; here
        the others are asked too, so that all errors are seen at once. Only an object that cannot be read ends it.
        """
        result = Admitted(document, deepcopy(document))
        metadata = document.get("metadata") or {}
        namespace = metadata.get("namespace") or self.documents.namespace
        if namespace in UNTOUCHED_NAMESPACES:
            return result
        group, _, version = str(document.get("apiVersion", "")).rpartition("/")
        kind = str(document.get("kind", ""))
        for route in routes_of(group, f"{kind.lower()}s"):
            request = AdmissionRequest(
                uid="offline",
                kind=GroupVersionKind(group, version, kind),
                name=metadata.get("name", ""),
                namespace=namespace,
                operation="CREATE",
                object=msgspec.Raw(msgspec.json.encode(result.after)),
            )
            try:
                verdict = self._handlers[route](request)
            except (MalformedError, ValueError) as error:  # as in webhook.dispatch
                result.errors.append(FieldError(kind, f"the object can not be read: {error}"))
                break
            result.errors += verdict.errors
            result.warnings += [warning for warning in verdict.warnings if warning not in result.warnings]
            _apply(result, verdict.patch, verdict.reasons)
        return result


def _apply(result: Admitted, operations: Sequence[Operation], reasons: Sequence[Why]) -> None:
    """Applies the operations one by one, as "-" in a path means another element of the list each time."""
    for operation, why in zip(operations, reasons, strict=True):
        path = _path_of(operation, result.after)
        if operation["value"] != {}:  # a map that is only made to put something into it needs no reason of its own
            result.reasons[path] = why
        # A copy: the value may be part of the webhook's configuration, and later operations may write into it.
        result.after = jsonpatch.apply_patch(result.after, [deepcopy(operation)], in_place=True)


def _path_of(operation: Operation, document: JSON) -> Path:
    """Where the value of an operation will stand: list indexes are numbers, "-" is the place after the last element."""
    *parents, last = jsonpointer.JsonPointer(operation["path"]).parts
    node: Any = document
    path: list[str | int] = []
    for part in parents:
        path.append(int(part) if isinstance(node, list) else part)
        node = node[path[-1]]
    if isinstance(node, list):
        path.append(len(node) if last == "-" else int(last))
    else:
        path.append(last)
    value = operation["value"]
    if isinstance(value, list) and len(value) == 1:
        path.append(0)  # a list that is made for its first element
    return tuple(path)
