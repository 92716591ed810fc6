"""The rights that Muster needs in a cluster that exists already, asked for before anything is started or written."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product
from typing import Final, NamedTuple

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from musterctl.chart import roles
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
_RBAC: Final = "rbac.authorization.k8s.io"
_INSTALLS: Final = {
    "namespaces": "create patch",
    "serviceaccounts": "create patch",
    "serviceaccounts/token": "create",
    f"clusterroles.{_RBAC}": "bind create patch",
    f"clusterrolebindings.{_RBAC}": "create patch",
    f"roles.{_RBAC}": "bind create patch",
    f"rolebindings.{_RBAC}": "create patch",
    "customresourcedefinitions.apiextensions.k8s.io": "create get patch",
    f"mutatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    f"validatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    f"validatingadmissionpolicies.{_ADMISSION}": "create patch",
    f"validatingadmissionpolicybindings.{_ADMISSION}": "create patch",
    "clustertrainingruntimes.trainer.kubeflow.org": "create patch",
    "queues.scheduling.volcano.sh": "get",
}
"""For what `up` installs and looks at. Rights that it grants, it must have itself."""
_GRANTS: Final = (roles.WEBHOOK, roles.EXTENDER, roles.SCHEDULER, roles.CONTROLLER, roles.USERS)


def needed() -> list[Right]:
    """Every right that the installation needs, sorted."""
    found = {Right(resource, verb) for resource, verbs in _INSTALLS.items() for verb in verbs.split()}
    for rule in (rule for each in _GRANTS for rule in roles.rules(each)):
        for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
            whole, slash, subresource = resource.partition("/")
            found.add(Right(f"{whole}.{group}".rstrip(".") + slash + subresource, verb))
    return sorted(found)


def missing(client: Client) -> list[Right]:
    """The rights that the client's user does not have. Raises APIError if that cannot be asked."""

    def allowed(right: Right) -> bool:
        whole, _, subresource = right.resource.partition("/")
        resource, _, group = whole.partition(".")
        asked = {"group": group, "resource": resource, "subresource": subresource, "verb": right.verb}
        return client.create(_REVIEWS, {"spec": {"resourceAttributes": asked}}).status.allowed

    wanted = needed()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [right for right, may in zip(wanted, pool.map(allowed, wanted), strict=True) if not may]


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
