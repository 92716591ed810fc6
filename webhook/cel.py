"""Conditions in CEL, by which the API server knows what to send: text that is put together from names. Pure."""

import json
from collections.abc import Sequence

from muster.api.batch import JOBS
from webhook.config import ResourceGroup

_ANNOTATIONS = "object.metadata.annotations"
_OWNERS = "object.metadata.ownerReferences"
OF_A_JOB = (
    f"has({_OWNERS}) && {_OWNERS}.exists(owner, has(owner.controller) && owner.controller && "
    f"owner.kind == '{JOBS.kind}' && owner.apiVersion.startsWith('{JOBS.group}/'))"
)
"""A Volcano Job is the object's controller; other owners say nothing about it."""


def quoted(text: str) -> str:
    """A string. JSON's escapes are CEL's too, but for those beyond Unicode's first plane, which need none."""
    return json.dumps(text, ensure_ascii=False)


def annotated(key: str, value: str) -> str:
    """The object has this annotation."""
    name = quoted(key)
    return f"(has({_ANNOTATIONS}) && {name} in {_ANNOTATIONS} && {_ANNOTATIONS}[{name}] == {quoted(value)})"


def in_a_group(groups: Sequence[ResourceGroup]) -> str:
    """One of the groups takes the pod, and it has no template that was given its group already."""
    namespaces = sorted({namespace for group in groups for namespace in group.namespaces})
    taken = [f"request.namespace in [{', '.join(map(quoted, namespaces))}]"] if namespaces else []
    pairs = dict.fromkeys(pair for group in groups for pair in group.annotations)
    taken += [annotated(key, value) for key, value in pairs]
    return f"({' || '.join(taken)}) && !({OF_A_JOB})"
