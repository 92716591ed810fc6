"""Queries to the API server: dry runs of pods (`DryRuns`), and checks whether a user has a right (`Rights`).

Dry runs use Muster's own rights, because impersonation would require the right to act as any user. Handlers decide
which part of the API server's response to show to the user. Some objects make a controller act with Muster's rights.
For such an object, handlers check by a SubjectAccessReview that the user has the right to act directly.

Results are cached for a few seconds, because many similar Jobs often arrive at the same time. Refusals and failed calls
are not cached.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from cachetools import TTLCache, cachedmethod
from msgspec import field, structs

from muster.api.base import Resource, Wire
from muster.api.kubernetes import admission, core, meta, reviews
from muster.api.kubernetes.devices import DeviceClaim, DeviceRequest, ExactDeviceRequest
from muster.kube.claims import read_claim
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, BadRequest, Forbidden, Invalid, NamespaceEnds, NotFound
from muster.resources.accelerators import Claims
from webhook import review
from webhook.senders import count_question

T = TypeVar("T")
_MAX_REMEMBERED = 1024


def _pod_key(_: object, pod: Mapping[str, Any], namespace: str) -> bytes:
    return hashlib.sha256(msgspec.json.encode([namespace, pod])).digest()


def _spec_key(_: object, spec: reviews.SubjectAccessReviewSpec) -> bytes:
    return msgspec.json.encode(spec, order="sorted")


class _Remembering:
    """Base class of queries whose results are kept for a few seconds. Thread-safe."""

    _kept_s = 5.0

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._known = TTLCache[Any, Any, float](_MAX_REMEMBERED, self._kept_s, monotonic_s)


class DryRuns(_Remembering):
    """Checks of pods by a server-side dry run of their creation."""

    _kept_s = 20.0

    def attempt(self, pod: Mapping[str, Any], namespace: str) -> APIError | None:
        """Return the API server's refusal of this pod, or None if it admits the pod; raise APIError if the call failed.

        The API server is not called if it has admitted an equal pod in the last seconds.
        """
        try:
            self._create(pod, namespace)
        except AlreadyExists:
            return None  # only the generated name exists already: the API server checks names last
        except (Invalid, BadRequest, Forbidden, NamespaceEnds) as refusal:
            return refusal
        return None

    @cachedmethod(attrgetter("_known"), _pod_key, attrgetter("_lock"))
    def _create(self, pod: Mapping[str, Any], namespace: str) -> None:
        count_question()
        self._client.create(core.PODS, pod, namespace, dry_run=True, timeout_s=review.time_left())


class _ServiceSpec(Wire):
    """The spec of a Service, reduced to the field that marks a headless Service."""

    cluster_ip: str = field(name="clusterIP", default="")


class _Service(meta.Object):
    spec: _ServiceSpec = field(default_factory=_ServiceSpec)


_SERVICES = Resource("", "v1", "services", "Service", _Service)


class Services:
    """Look-up of Services, without a cache, because few workloads name a Service, and such a Service is often new."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def cluster_ip(self, name: str, namespace: str) -> str | None:
        """Return the address of a Service: "None" for a headless Service, None if the Service does not exist.

        Raise APIError if the look-up fails.
        """
        found = read_live(self._client, _SERVICES, name, namespace)
        return found.spec.cluster_ip if found else None


def read_live(client: Client, resource: Resource[T], name: str, namespace: str = "") -> T | None:
    """Return the current object from the API server, or None if it does not exist.

    Raise APIError if the API server does not answer.
    """
    timeout_s = review.time_left()
    count_question()
    try:
        return client.get(resource, name, namespace or None, timeout_s=timeout_s)
    except NotFound:
        return None


def _entry_key(_: object, namespace: str, entry: core.PodResourceClaim) -> tuple[str, ...]:
    return namespace, entry.resource_claim_name or "", entry.resource_claim_template_name or ""


class DeviceClaims(_Remembering):
    """Look-up of the device requests in ResourceClaims, with a cache, because the pods of a gang share a template."""

    def claims_in(self, namespace: str) -> Claims:
        """Return a function that looks up the device requests of claims in this namespace.

        The function raises APIError if it cannot determine the requests.
        """
        return partial(self._find, namespace)

    @cachedmethod(attrgetter("_known"), _entry_key, attrgetter("_lock"))
    def _find(self, namespace: str, entry: core.PodResourceClaim) -> DeviceClaim | None:
        count_question()
        found = read_claim(self._client, namespace, entry, timeout_s=review.time_left())
        return found and DeviceClaim([_counted(each) for each in found.requests])


def _counted(request: DeviceRequest) -> DeviceRequest:
    """Return a request reduced to its device class and number, because a claim may contain a megabyte of selectors."""
    alternatives = [_class_and_number(each) for each in request.first_available]
    return DeviceRequest(request.name, request.exactly and _class_and_number(request.exactly), alternatives)


def _class_and_number(exact: ExactDeviceRequest) -> ExactDeviceRequest:
    return structs.replace(exact, selectors=[], tolerations=[], capacity=None)


class Rights(_Remembering):
    """Checks of users' rights, by SubjectAccessReviews."""

    def allows(self, user: admission.UserInfo, action: reviews.ResourceAttributes) -> bool:
        """Return True if the user may perform the action; raises APIError if this cannot be determined.

        Results of the last few seconds are reused, without another call to the API server.
        """
        return self._review(reviews.may(user, action))

    @cachedmethod(attrgetter("_known"), _spec_key, attrgetter("_lock"))
    def _review(self, spec: reviews.SubjectAccessReviewSpec) -> bool:
        count_question()
        asked = reviews.SubjectAccessReview(spec=spec)
        timeout_s = review.time_left()
        return self._client.create(reviews.SUBJECT_ACCESS_REVIEWS, asked, timeout_s=timeout_s).status.allowed
