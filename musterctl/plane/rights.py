"""What Muster has to be allowed in a cluster that is somebody else's, asked before anything is started or written."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Final, NamedTuple

from msgspec import field

from extender.state.feed import FEED
from muster.api.base import Resource, Wire
from muster.api.meta import Object
from muster.kube.client import Client
from musterctl.plane.errors import RightsError

_AT_ONCE: Final = 8


class _ReviewStatus(Wire):
    """The API server's answer."""

    allowed: bool = False


class _Review(Object):
    """A SelfSubjectAccessReview: whether the asker may do something."""

    status: _ReviewStatus = field(default_factory=_ReviewStatus)


_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", _Review, namespaced=False
)


class Right(NamedTuple):
    """One verb on one resource (`pods`, `pods/binding`, `queues.scheduling.volcano.sh`), in all namespaces."""

    resource: str
    verb: str


_ADMISSION: Final = "admissionregistration.k8s.io"
_WRITES: Final = {
    "namespaces": "create patch",
    "customresourcedefinitions.apiextensions.k8s.io": "create get patch",
    f"mutatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    f"validatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    "clustertrainingruntimes.trainer.kubeflow.org": "create patch list watch",
    "trainingruntimes.trainer.kubeflow.org": "list watch",
    "jobs.batch.volcano.sh/status": "patch",
    "commands.bus.volcano.sh": "list watch delete",
    "subjectaccessreviews.authorization.k8s.io": "create",
    "podgroups.scheduling.volcano.sh": "create delete patch",
    "podgroups.scheduling.volcano.sh/status": "patch",
    "queues.scheduling.volcano.sh": "create patch",
    "queues.scheduling.volcano.sh/status": "patch",
    "placements.muster.dev": "create delete patch",
    "placements.muster.dev/status": "patch",
    "pods": "create delete get patch",
    "pods/binding": "create",
    "pods/eviction": "create",
    "pods/status": "patch",
    "podtemplates": "create delete",
    "provisioningrequests.autoscaling.x-k8s.io": "create delete list",
    "events": "create patch",
    "leases.coordination.k8s.io": "create get patch update",
    "services": "create delete get patch",
    "secrets": "create delete get patch",
    "configmaps": "create delete get patch",
    "persistentvolumeclaims": "create get",
    "networkpolicies.networking.k8s.io": "create delete get patch",
}
"""What `up` installs, and what the webhook, the extender and the controller write; what they watch comes on top."""


def needed() -> list[Right]:
    """Every right that Muster's processes and their installation need, sorted."""
    found = {Right(resource, verb) for resource, verbs in _WRITES.items() for verb in verbs.split()}
    for fed in FEED:
        name = f"{fed.resource.plural}.{fed.resource.group}".rstrip(".")
        found |= {Right(name, "list"), Right(name, "watch")}
    return sorted(found)


def missing(client: Client) -> list[Right]:
    """Those of the rights that the client's user does not have. Raises APIError if that cannot be asked."""

    def allowed(right: Right) -> bool:
        whole, _, subresource = right.resource.partition("/")
        resource, _, group = whole.partition(".")
        asked = {"group": group, "resource": resource, "subresource": subresource, "verb": right.verb}
        return client.create(_REVIEWS, {"spec": {"resourceAttributes": asked}}).status.allowed

    rights = needed()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [right for right, may in zip(rights, pool.map(allowed, rights), strict=True) if not may]


def check(client: Client) -> None:
    """Raises RightsError that names every right that is missing; an API server that does not answer raises APIError."""
    lacking = missing(client)
    if lacking:
        raise RightsError(
            f"the user of this kubeconfig may not do what Muster needs at {client.server}:\n"
            + "\n".join(f"  {line}" for line in _lines(lacking))
            + "\nUse a kubeconfig with the rights of a cluster administrator, or have one grant them: "
            "kubectl create clusterrolebinding muster-up --clusterrole=cluster-admin --user=NAME"
        )


def _lines(rights: list[Right]) -> Iterator[str]:
    for resource, group in groupby(rights, key=lambda right: right.resource):
        yield f"{', '.join(right.verb for right in group)} {resource}"
