"""Admission of objects one by one through the webhook's own routes, in this process."""

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
    """One object before and after admission; with errors it would be refused.

    `about` describes an object that stands in no file, such as a pod of a Job.
    """

    before: JSON
    after: JSON
    reasons: dict[Path, Why] = field(default_factory=dict)
    """Path of an addition or change → its reason."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def title(self) -> str:
        """Kind and name, with which messages about the object begin."""
        metadata = self.before.get("metadata") or {}
        return f"{self.before.get('kind', 'object')} {metadata.get('name') or metadata.get('generateName', '')}"


class OfflineAdmission:
    """Admission of new objects as by a webhook with these resource groups.

    Objects that others refer to are looked up in `documents`, then in the `cluster` if there is one. Defaults of the
    API server are not filled in.
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
        """Send the object through all routes that the API server would; APIError if the cluster does not answer.

        The routes that change objects come first, as in the API server. There a refusal ends the matter; here the other
        routes follow, so that all errors are seen at once, unless the object cannot be read.
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
            for operation, why in zip(verdict.patch, verdict.reasons, strict=True):
                _apply(result, operation, why)
        return result


def _apply(result: Admitted, operation: Operation, why: Why) -> None:
    """Apply one operation; one at a time, since "-" in a path means another element of the list each time."""
    if operation["value"] != {}:  # a map that is only made to hold the next value needs no reason of its own
        result.reasons[_path_of(operation, result.after)] = why
    # A copy: the value may be part of the webhook's configuration, and later operations may write into it.
    result.after = jsonpatch.apply_patch(result.after, [deepcopy(operation)], in_place=True)


def _path_of(operation: Operation, document: JSON) -> Path:
    """Return the path of the new value: list indexes are numbers, "-" is the place after the last element."""
    path: list[str | int] = []
    node: Any = document
    for part in jsonpointer.JsonPointer(operation["path"]).parts:
        if isinstance(node, list):
            path.append(len(node) if part == "-" else int(part))
            node = node[int(part)] if part != "-" else None
        else:
            path.append(part)
            node = node.get(part)
    value = operation["value"]
    if isinstance(value, list) and len(value) == 1:
        path.append(0)  # a list that is made for its first element
    return tuple(path)
