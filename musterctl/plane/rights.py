"""The rights that Muster needs in a cluster that exists already, asked for before anything is started or written."""

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product
from typing import Final, NamedTuple

import msgspec

from muster.kube.client import Client
from musterctl.chart import roles
from musterctl.plane.errors import RightsError

_AT_ONCE: Final = 8
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


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


def check(client: Client) -> None:
    """Raises RightsError that names every right that is missing; an API server that does not answer raises APIError."""
    wanted = needed()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda right: _allowed(client, right), wanted)
        missing = [right for right, allowed in zip(wanted, answers, strict=True) if not allowed]
    if missing:
        by_resource = groupby(missing, key=lambda right: right.resource)
        lines = [f"  {', '.join(right.verb for right in group)} {resource}" for resource, group in by_resource]
        raise RightsError(
            f"the user of this kubeconfig may not do what Muster needs at {client.server}:\n"
            + "\n".join(lines)
            + "\nUse a kubeconfig with the rights of a cluster administrator, or have one grant them: "
            "kubectl create clusterrolebinding muster-up --clusterrole=cluster-admin --user=NAME"
        )


def _allowed(client: Client, right: Right) -> bool:
    """True if the client's user has the right."""
    whole, _, subresource = right.resource.partition("/")
    resource, _, group = whole.partition(".")
    asked = {"group": group, "resource": resource, "subresource": subresource, "verb": right.verb}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = msgspec.json.decode(client.request("POST", _REVIEWS, body=msgspec.json.encode(body)))
    return bool(answer["status"]["allowed"])
